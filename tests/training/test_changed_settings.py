"""Settings that differ when a run is resumed."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.codec import RUN_FILES
from regard.config.toml_file import to_dict
from regard.training.changed_settings import check_changes, differences
from regard.training.run import fit, resume
from tests.training.runs import SHORT_RUN, make_small_run, write_corpus


def test_differences_are_listed_key_by_key() -> None:
    before = {"a": {"b": 1, "c": [1]}, "d": 2}
    assert list(differences(before, {"a": {"b": 1, "c": [2]}, "e": 3})) == [
        ("a.c", [1], [2]),
        ("d", 2, "(not set)"),
        ("e", "(not set)", 3),
    ]


def test_settings_that_are_new_since_a_run_began_had_their_defaults(tmp_path: Path) -> None:
    run = make_small_run("translation", write_corpus(tmp_path))
    before = to_dict(run)
    del before["model"]["max_length_ratio"], before["train"]["max_grad_norm"]
    check_changes(before, run, is_accepted=False, is_extended=False, location="run.toml")
    before["train"]["max_grad_norm"] = 0.123
    with pytest.raises(RegardError, match=r"train\.max_grad_norm: was 0\.123"):
        check_changes(before, run, is_accepted=False, is_extended=False, location="run.toml")


def test_settings_of_processes_need_no_acceptance(tmp_path: Path) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), SHORT_RUN)
    fit(run, tmp_path / "run", pause_at=2)
    changes = {"parallel.mode": "fsdp", "parallel.tensor": 2}  # one process ignores them
    assert resume(tmp_path / "run", changes=changes).reason == "finished"
    assert to_dict(RUN_FILES.load(tmp_path / "run" / "run.toml"))["parallel"]["tensor"] == 2
