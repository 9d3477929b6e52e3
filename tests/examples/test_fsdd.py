"""The scripts of examples/fsdd: tables of both splits, and the baseline."""

import sys
from pathlib import Path

import numpy as np
import pytest
from examples.fsdd import baseline, prepare

from regard.data.readers.detect import make_audio_source
from tests.training.runs import write_wav


def test_tables_and_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(1)
    for digit in range(2):
        for speaker in ("theo", "lucas"):
            for index in range(8):
                times = np.arange(1600) / 8000
                samples = 5000 * np.sin(2 * np.pi * (400 + 800 * digit) * times) + rng.normal(0, 100, times.size)
                write_wav(tmp_path / "recordings" / f"{digit}_{speaker}_{index}.wav", samples.astype("<i2").tobytes())
    tables = tmp_path / "tables"
    monkeypatch.setattr(sys, "argv", ["prepare", str(tmp_path / "recordings"), str(tables)])
    prepare.main()
    counts = {path.name: len(path.read_text().splitlines()) - 1 for path in tables.iterdir()}
    official = {"official-train.tsv": 12, "official-test.tsv": 20, "theo-train.tsv": 16, "theo-test.tsv": 16}
    assert counts == official | {f"words-{name}": count for name, count in official.items()}
    assert all("theo" in line for line in (tables / "theo-test.tsv").read_text().splitlines()[1:])
    assert (tables / "words-theo-test.tsv").read_text().splitlines()[1].endswith("theo_0.wav\tzero")
    assert make_audio_source(str(tables / "words-theo-test.tsv")).second == "text"
    arguments = [str(tables / f"official-{part}.tsv") for part in ("train", "test")]
    monkeypatch.setattr(sys, "argv", ["baseline", *arguments, "--output", str(tmp_path / "labels.txt")])
    baseline.main()
    assert "nearest recording: 100.00% of 20 recordings" in capsys.readouterr().out
    assert (tmp_path / "labels.txt").read_text().split() == ["0"] * 10 + ["1"] * 10
