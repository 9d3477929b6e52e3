"""The folder of a run: what a kill left is mended, and what was written is on disk before a checkpoint says so."""

import os
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.store.run_folder import JsonlWriter, RunFolder


def test_whoever_holds_the_folder_mends_it(tmp_path: Path) -> None:
    run_folder = RunFolder(tmp_path)
    for half in ("best.old", "average.old", "average"):
        (tmp_path / half).mkdir()
    (tmp_path / ".run.toml.x1.tmp").write_text("half")
    with run_folder.lock():
        assert sorted(path.name for path in tmp_path.iterdir()) == ["average", "best"]


def test_a_journal_is_on_disk_before_its_size_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    journal = JsonlWriter(tmp_path / "metrics.jsonl")
    journal.write(step=1, loss=2.5)
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_size))
    size = journal.size
    assert size == len('{"step": 1, "loss": 2.5}\n')
    assert flushed == [size]


def test_a_journal_is_cut_back_but_never_made_up(tmp_path: Path) -> None:
    journal = JsonlWriter(tmp_path / "metrics.jsonl")
    journal.write(step=1)
    size = journal.size
    journal.write(step=2)
    journal.truncate(size)
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 1}\n'
    with pytest.raises(RegardError, match="Lines are missing"):
        journal.truncate(size + 1)
