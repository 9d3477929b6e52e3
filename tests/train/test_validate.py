"""Scores: of all bytes and of every language."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.base.errors import RegardError
from regard.config.codec import RUN_FILES
from regard.data.rows import IGNORE_INDEX
from regard.store.model_folder import read_model
from tests.train.made import trainer
from tests.train.runs import corpus, sentences, small_run


@pytest.mark.parametrize("task", ["continue", "translate"])
def test_every_byte_counts_once_wherever_rows_are_cut(task: str, tmp_path: Path) -> None:
    (tmp_path / "ru.txt").write_text("Привет, мир: это книга слов.\n" * 40)
    source = {"kind": "documents", "path": str(tmp_path / "ru.txt")}
    changes: dict[str, Any] = {"tokenizer": {"kind": "byte"}, "data.held_out": 0.2}
    if task == "continue":
        changes |= {"data.train": [source], "data.longest": 17, "data.batch_tokens": 17 * 8}  # cut inside characters
        changes |= {"train.update_tokens": 17 * 8}
    else:
        changes |= {"data.longest": 128}
    made = trainer(task, tmp_path, changes)
    assert made.validator is not None
    kept = (tmp_path / "run" / "validation.jsonl").read_text().split("\n")
    texts = [json.loads(line)[0 if task == "continue" else 1] for line in kept if line]
    size = sum(len(text.encode()) for text in texts)
    assert made.validator._text_bytes() == size
    places = sum(int((batch.labels != IGNORE_INDEX).sum()) for batch in made.validator.loader.iter_epoch())
    found = made.validator().values
    assert found["bits_per_byte"] * size * math.log(2) == pytest.approx(found["loss"] * places)


def test_a_model_of_several_languages_is_told_which_to_write(tmp_path: Path) -> None:
    files = corpus(tmp_path / "corpus")
    there = {"kind": "lines", "source": files["all.en"], "target": files["all.de"], "languages": ["en", "de"]}
    back = {"kind": "lines", "source": files["all.de"], "target": files["all.en"], "languages": ["de", "en"]}
    changes = {"data.train": [there, back], "tokenizer.specials.languages": ["de", "en"]}
    made = trainer("translate", tmp_path, changes | {"validation.sentences": 1000})
    assert made.validator is not None
    into: list[str] = []
    from regard.pipeline.translator import Translator

    real = Translator.translate

    def watched(self: Translator, texts: list[str], **options: Any) -> Any:
        into.extend(options["into"])
        return real(self, texts[:2], **{**options, "into": options["into"][:2]}) * (len(texts) // 2) + real(
            self, texts[: len(texts) % 2], **{**options, "into": options["into"][: len(texts) % 2]}
        )

    Translator.translate = watched  # type: ignore[method-assign, assignment]
    try:
        assert "bleu" in made.validator().values
    finally:
        Translator.translate = real  # type: ignore[method-assign]
    targets = {pair.target: pair.languages[-1] for pair in made.validator._examples}
    assert set(into) == {"de", "en"}
    assert made.validator._pairs is not None
    assert [targets[pair.target] for pair in made.validator._pairs] == into


def test_it_is_the_moving_average_that_is_scored_and_kept(tmp_path: Path) -> None:
    changes = {"train.updates": 2, "validation.every": 2, "train.save_every": 2, "train.average": 1, "train.ema": 0.9}
    made = trainer("translate", tmp_path, changes)
    finished = made.train()
    assert made.validator is not None
    assert made.ema is not None
    with made.ema.applied():
        wanted = made.validator().values
    assert finished.best == wanted
    assert made.validator().values["loss"] != wanted["loss"]
    kept = read_model(tmp_path / "run" / "best").model.state_dict()
    for name, average in made.ema.weights().items():
        assert torch.equal(kept[name], average)


def test_tags_need_sources_that_say_their_languages(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="does not say which"):
        trainer("translate", tmp_path, {"tokenizer.specials.languages": ["de"]})


def test_nothing_to_validate_on_is_said_at_once(tmp_path: Path) -> None:
    for side in ("en", "de"):
        (tmp_path / f"long.{side}").write_text(" ".join(sentences(30)) + "\n")
    long = {"kind": "lines", "source": str(tmp_path / "long.en"), "target": str(tmp_path / "long.de")}
    with pytest.raises(RegardError, match="No batch can be made"):
        trainer("translate", tmp_path, {"data.held_out": 0.0, "data.validation": [long]})


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"validation.metric": "bleu", "validation.sentences": 0}, "validation.sentences"),
        ({"data.held_out": 0.0, "validation.patience": 2}, "validation.patience"),
        ({"data.prepared": "shards"}, "data.held_out"),
        ({"tokenizer.joint": False}, "tokenizer.joint"),
        ({"model.decoder.position": {"kind": "learned", "length": 20}}, "data.longest"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(changes: dict[str, Any], fault: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=fault):
        small_run("translate", corpus(tmp_path), changes)


@pytest.mark.parametrize(("task", "metric"), [("continue", "bleu"), ("fill", "bits_per_byte"), ("fill", "chrf")])
def test_a_score_that_a_task_does_not_have_is_refused(task: str, metric: str, tmp_path: Path) -> None:
    table = small_run(task, corpus(tmp_path)).model_dump(mode="json", exclude_none=True)
    with pytest.raises(RegardError, match=r"validation\.metric"):
        RUN_FILES().parse(table, {"validation.metric": metric})


def test_what_is_set_aside_in_training_is_not_translated(tmp_path: Path) -> None:
    files = corpus(tmp_path / "corpus")
    long = " ".join(sentences(30))
    for name in ("own.en", "own.de"):
        (tmp_path / name).write_text(f"{long}\n" + "the old dog\n" * 5)
    own = {"kind": "lines", "source": str(tmp_path / "own.en"), "target": str(tmp_path / "own.de")}
    train = {"kind": "lines", "source": files["all.en"], "target": files["all.de"]}
    changes = {"data.train": [train], "data.validation": [own], "data.held_out": 0.0, "validation.shown": 3}
    made = trainer("translate", tmp_path, changes)
    assert made.validator is not None
    assert made.validator._examples[0].source == long
    assert [shown.source for shown in made.validator().shown] == ["the old dog"] * 3


def test_what_a_writer_shows_begins_as_the_text_does(tmp_path: Path) -> None:
    made = trainer("continue", tmp_path, {"model.decoder.position": {"kind": "learned", "length": 32}})
    assert made.validator is not None
    (one,) = made.validator().shown
    text = made.validator._examples[0].source
    assert one.source == text[:40]
    assert one.output
    assert text[40:].startswith(one.reference)
    assert len(one.reference) <= len(one.output)
