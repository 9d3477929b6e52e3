"""`regard train RUN --without LIST` differs from the run only from the first use of a removed sample on."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.config.codec import RUN_FILES
from regard.training.api import start
from regard.training.options import TrainOptions, UsageError
from regard.training.run import fit, resume
from regard.training.without import read_removed
from tests.training.runs import compute_fingerprints, make_small_run, read_metrics, write_corpus

CHANGES: dict[str, Any] = {"data.batch_tokens": 64, "train.step_tokens": 64, "train.steps": 30, "train.save_every": 10}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("without")
    files = write_corpus(folder / "corpus")
    fit(make_small_run("translation", files, CHANGES), folder / "run")
    return folder / "run"


def read_lines(run: Path, side: str) -> list[str]:
    return (run.parent / "corpus" / f"all.{side}").read_text().splitlines()


def write_list(folder: Path, *lines: str) -> Path:
    path = folder / "list.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_runs_are_equal_until_the_first_use(original: Path, tmp_path: Path) -> None:
    removed = find_late_line(original)
    without = write_list(
        tmp_path, f"{read_lines(original, 'en')[removed - 1]}\t{read_lines(original, 'de')[removed - 1]}"
    )
    finished = start(TrainOptions(run=original, without=without, out=tmp_path / "new"))
    assert finished.reason == "finished"
    before, after = read_metrics(original), read_metrics(tmp_path / "new")
    assert [line["step"] for line in before] == [line["step"] for line in after]
    different = [line["step"] for line, other in zip(before, after, strict=True) if line != other]
    assert 5 < different[0] < 20
    run = RUN_FILES.load(tmp_path / "new" / "run.toml")
    assert run.data.removed == {str(original.parent / "corpus" / "all.en"): (removed,)}


def find_late_line(original: Path) -> int:
    """Return a line that the run first uses between steps 8 and 16."""
    from regard.store.run_folder import RunFolder
    from regard.training.batches import make_loader
    from regard.training.data import prepare_data

    run = RUN_FILES.load(original / "run.toml")
    data = prepare_data(run, RunFolder(original), lambda _: None)
    steps = make_loader(run, data.train, data.tokenizer_pair, gradient_accumulation=run.gradient_accumulation).steps()
    seen: set[int] = set()
    for number, step in enumerate(steps, 1):
        samples = {sample for batch in step.batches for sample in batch.samples.tolist()} - seen
        if number >= 8 and samples:
            return data.train.locate(min(samples)).line
        seen |= samples
    raise AssertionError


def test_resumed_run_without_samples_equals_an_uninterrupted_one(original: Path, tmp_path: Path) -> None:
    without = write_list(tmp_path, str(find_late_line(original)))
    start(TrainOptions(run=original, without=without, out=tmp_path / "whole"))
    stops = iter([False] * 14 + [True])
    start(
        TrainOptions(run=original, without=without, out=tmp_path / "stopped"),
        [lambda event: next(stops, False) if type(event).__name__ == "StepFinished" else None],
    )
    resume(tmp_path / "stopped")
    assert compute_fingerprints(tmp_path / "stopped") == compute_fingerprints(tmp_path / "whole")


def test_list_names_lines_files_and_pairs(original: Path, tmp_path: Path) -> None:
    run = RUN_FILES.load(original / "run.toml")
    file = str(original.parent / "corpus" / "all.en")
    english, german = read_lines(original, "en"), read_lines(original, "de")
    copies = tuple(n for n, line in enumerate(english, 1) if line == english[4])
    without = write_list(tmp_path, "12", f"{file}:3", "", f"{english[4]}\t{german[4]}")
    assert read_removed(without, run) == {file: tuple(sorted({3, 12, *copies}))}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("twelve", r"Cannot read 'twelve'"),
        ("no such\tpair", "1 of 1 pairs are not in the training corpus"),
        ("", "The list of samples to remove is empty"),
    ],
)
def test_list_that_cannot_be_used_is_refused(original: Path, tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        read_removed(write_list(tmp_path, line), RUN_FILES.load(original / "run.toml"))


def test_run_whose_settings_changed_is_refused(original: Path, tmp_path: Path) -> None:
    run = shutil.copytree(original, tmp_path / "run")
    (run / "accepted.json").write_text("{}")
    with pytest.raises(RegardError, match="settings of this run changed"):
        start(TrainOptions(run=run, without=write_list(tmp_path, "3"), out=tmp_path / "new"))


def test_options_that_would_change_the_run_are_refused(original: Path, tmp_path: Path) -> None:
    without = write_list(tmp_path, "3")
    for options in (
        TrainOptions(run=original, without=without, out=tmp_path / "new", steps=4),
        TrainOptions(run=tmp_path, without=without, out=tmp_path / "new"),
        TrainOptions(run=original, without=without),
    ):
        with pytest.raises(UsageError):
            options.check()


@pytest.mark.parametrize("changes", [{"train.minutes": 1.0}, {"distillation.teachers": ["teacher"]}])
def test_settings_that_make_removal_inexact_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    files = write_corpus(tmp_path / "corpus", 20)
    with pytest.raises(RegardError, match=r"data\.removed"):
        make_small_run("translation", files, {"data.removed": {files["all.en"]: [3]}, **changes})


def test_changed_corpus_is_refused(original: Path, tmp_path: Path) -> None:
    file = original.parent / "corpus" / "all.de"
    content = file.read_bytes()
    try:
        file.write_bytes(content + b"Haus\n")
        with pytest.raises(RegardError, match="different content"):
            start(TrainOptions(run=original, without=write_list(tmp_path, "3"), out=tmp_path / "new"))
    finally:
        file.write_bytes(content)
