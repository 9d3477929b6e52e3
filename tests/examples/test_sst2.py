"""The script that scores the kept labels of SST-2."""

import sys
from pathlib import Path

import pytest
from examples.sst2 import run


def test_tuning_is_compared_with_prompts_on_the_sentences_that_both_label(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", "compare"])
    monkeypatch.setattr(run, "RESAMPLES", 80)
    run.main()
    output = capsys.readouterr().out
    assert "prompt-0: 85.00 (85.00) on 200 sentences" in output
    assert "full - prompt-16: +24.17" in output


def test_the_difference_of_equal_labels_is_zero() -> None:
    assert run.bootstrap([[True, False]], [[True, False, True]])[0] == 0
    assert Path(run.HERE / "labels").is_dir()
