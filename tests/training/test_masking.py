"""The masking of masked language modeling is a setting of a run: `[task_options]`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.base.errors import ConfigError
from regard.base.labels import IGNORE_INDEX
from regard.config.sources import DocumentsConfig
from regard.config.task_spec import MaskingOptions
from regard.store.run_folder import RunFolder
from regard.training.batches import make_loader
from regard.training.data import RunData, prepare_data
from regard.training.recipes.configure import configure
from regard.training.run import fit, resume
from tests.commands import run_command
from tests.training.runs import compute_fingerprints, make_small_run, write_corpus

BERT: dict[str, Any] = {"task_options.replacement": "bert", "task_options.whole_words": True}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def run_data(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> RunData:
    # With a vocabulary of 270 most words have several tokens.
    run = make_small_run("masked_lm", files, {"tokenizer.vocabulary": 270})
    return prepare_data(run, RunFolder(tmp_path_factory.mktemp("run")), lambda _: None)


def read_rows(files: dict[str, str], run_data: RunData, changes: dict[str, Any]) -> list[tuple[list[int], list[int]]]:
    """Return the inputs and labels of each text of the first epoch, without special tokens."""
    loader = make_loader(make_small_run("masked_lm", files, changes), run_data.train, run_data.tokenizers)
    rows = []
    for batch in loader.iter_epoch(0):
        assert batch.source is not None
        assert batch.source_valid is not None
        for source, labels, length in zip(
            batch.source.tolist(), batch.labels.tolist(), batch.source_valid.sum(dim=1).tolist(), strict=True
        ):
            rows.append((source[1 : length - 1], labels[1 : length - 1]))
    return rows


def count_masked(rows: list[tuple[list[int], list[int]]]) -> float:
    labels = np.concatenate([labels for _, labels in rows])
    return float((labels != IGNORE_INDEX).mean())


def test_a_run_without_the_table_has_the_defaults(files: dict[str, str], run_data: RunData) -> None:
    assert make_small_run("masked_lm", files).task_options == {}
    plain = read_rows(files, run_data, {})
    assert plain == read_rows(files, run_data, {"task_options": {"probability": 0.15, "replacement": "mask"}})
    mask = run_data.tokenizers.source.specials.mask
    assert all((token == mask) == (label >= 0) for row in plain for token, label in zip(*row, strict=True))


def test_more_tokens_are_masked(files: dict[str, str], run_data: RunData) -> None:
    few, many = (read_rows(files, run_data, {"task_options.probability": p}) for p in (0.15, 0.5))
    assert 0.1 < count_masked(few) < 0.25  # at least one token of each short text
    assert 0.45 < count_masked(many) < 0.55


def test_masked_tokens_are_replaced_as_in_bert(files: dict[str, str], run_data: RunData) -> None:
    rows = read_rows(files, run_data, {"task_options.replacement": "bert", "task_options.probability": 0.5})
    masked = [(token, label) for row in rows for token, label in zip(*row, strict=True) if label >= 0]
    mask = run_data.tokenizers.source.specials.mask
    assert np.mean([token == mask for token, _ in masked]) == pytest.approx(0.8, abs=0.05)
    assert np.mean([token == label for token, label in masked]) == pytest.approx(0.1, abs=0.04)


def test_words_are_masked_as_a_whole(files: dict[str, str], run_data: RunData) -> None:
    tokenizer = run_data.tokenizers.source

    def count_partial(rows: list[tuple[list[int], list[int]]]) -> tuple[int, int]:
        """Count the words with masked tokens that are masked in part, and completely."""
        partial = complete = 0
        for inputs, labels in rows:
            tokens = [label if label >= 0 else token for token, label in zip(inputs, labels, strict=True)]
            words = np.cumsum([tokenizer.token_bytes.is_start[token] for token in tokens])
            for word in set(words.tolist()):
                states = {label >= 0 for label, number in zip(labels, words, strict=True) if number == word}
                partial, complete = partial + (len(states) == 2), complete + (states == {True})
        return partial, complete

    partial, _ = count_partial(read_rows(files, run_data, {}))
    assert partial > 50
    none, complete = count_partial(read_rows(files, run_data, {"task_options.whole_words": True}))
    assert none == 0
    assert complete > 100


def test_a_stopped_run_ends_as_an_undisturbed_one(tmp_path: Path, files: dict[str, str]) -> None:
    run = make_small_run("masked_lm", files, {**BERT, "train.steps": 8, "train.save_every": 3})
    fit(run, tmp_path / "whole")
    fit(run, tmp_path / "stopped", pause_at=4)
    resume(tmp_path / "stopped")
    assert compute_fingerprints(tmp_path / "stopped") == compute_fingerprints(tmp_path / "whole")
    fit(make_small_run("masked_lm", files, {"train.steps": 8, "train.save_every": 3}), tmp_path / "plain")
    assert compute_fingerprints(tmp_path / "plain") != compute_fingerprints(tmp_path / "whole")


@pytest.mark.parametrize(
    ("task", "changes", "fault"),
    [
        (
            "translation",
            {"task_options.whole_words": True},
            "task_options: is set, but the task 'translation' has no options",
        ),
        ("causal_lm", {"task_options.probability": 0.2}, "the task 'causal_lm' has no options"),
        ("masked_lm", {"task_options.probability": 1.0}, "task_options.probability: is 1.0"),
        ("masked_lm", {"task_options.probability": 0.0}, "task_options.probability: is 0.0"),
        ("masked_lm", {"task_options.replacement": "random"}, "'mask' or 'bert'"),
    ],
)
def test_what_does_not_apply_is_refused(files: dict[str, str], task: str, changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        make_small_run(task, files, changes)


def test_an_automatic_run_lists_its_masking(files: dict[str, str]) -> None:
    book = DocumentsConfig(path=files["book.txt"])
    auto_run = configure(book, preset="encoder-tiny")
    assert auto_run.run.options == MaskingOptions()
    assert any(reason.startswith("Masking: 15 % of") for reason in auto_run.reasons)
    changed = configure(book, preset="encoder-tiny", changes=BERT)
    assert changed.run.options == MaskingOptions(replacement="bert", whole_words=True)
    assert any(reason.startswith("Masking: set by you") for reason in changed.reasons)


def test_the_command_sets_it(files: dict[str, str], tmp_path: Path) -> None:
    arguments = ("--text", files["book.txt"], "--preset", "encoder-tiny", "--out", str(tmp_path / "run"), "--dry-run")
    done = run_command("train", *arguments, "--set", "task_options.whole_words=true")
    assert done.code == 0, done.errors
    assert "task_options.whole_words" in done.output + done.errors
    refused = run_command(
        "train", files["all.en"], files["all.de"], *arguments[4:], "--set", "task_options.whole_words=true"
    )
    assert refused.code == 1
    assert "has no options" in refused.errors
