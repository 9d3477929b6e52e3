"""Validation: scores over all bytes, target languages, EMA weights and sample outputs."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.base.errors import RegardError
from regard.base.labels import IGNORE_INDEX
from regard.config.codec import RUN_FILES
from regard.store.model_folder import read_model
from regard.tasks.validation import Scores, ratio_error
from tests.training.factories import make_trainer
from tests.training.runs import make_sentences, make_small_run, write_corpus


@pytest.mark.parametrize("task", ["causal_lm", "translation"])
def test_every_byte_counts_once_wherever_rows_are_cut(task: str, tmp_path: Path) -> None:
    (tmp_path / "ru.txt").write_text("Привет, мир: это книга слов.\n" * 40)
    source = {"kind": "documents", "path": str(tmp_path / "ru.txt")}
    changes: dict[str, Any] = {"tokenizer": {"kind": "byte"}, "data.held_out": 0.2}
    if task == "causal_lm":
        changes |= {"data.train": [source], "data.max_length": 17, "data.batch_tokens": 17 * 8}  # cut inside characters
        changes |= {"train.step_tokens": 17 * 8}
    else:
        changes |= {"data.max_length": 128}
    trainer = make_trainer(task, tmp_path, changes)
    assert trainer.validator is not None
    lines = (tmp_path / "run" / "validation.jsonl").read_text().split("\n")
    texts = [json.loads(line)[0 if task == "causal_lm" else 1] for line in lines if line]
    size = sum(len(text.encode()) for text in texts)
    assert trainer.validator._context.target_bytes == size
    token_count = sum(int((batch.labels != IGNORE_INDEX).sum()) for batch in trainer.validator.loader.iter_epoch())
    scores = trainer.validator().values
    assert scores["bits_per_byte"] * size * math.log(2) == pytest.approx(scores["loss"] * token_count)


@pytest.mark.parametrize(("task", "metric"), [("causal_lm", "loss"), ("translation", "chrf")])
def test_validation_of_a_sample_is_repeatable_and_near_the_whole(task: str, metric: str, tmp_path: Path) -> None:
    changes = {"validation.metric": metric, "validation.sentences": 5, "data.held_out": 0.4}
    whole = make_trainer(task, tmp_path / "whole", changes).validator
    sampled = make_trainer(task, tmp_path / "sampled", changes | {"validation.max_tokens": 1}).validator
    assert whole is not None
    assert sampled is not None
    assert len(list(sampled._context.iter_batches())) == 2 < len(list(whole._context.iter_batches()))
    scores, all_scores = sampled(), whole()
    assert scores.errors.keys() == {metric}
    assert all_scores.errors.keys() == ({"chrf"} if metric == "chrf" else set())  # always a sample of the sentences
    assert sampled() == scores
    assert 0 <= scores.errors[metric] < 100
    assert abs(scores.values["loss"] - all_scores.values["loss"]) < 0.2
    assert scores.values["bits_per_byte"] == pytest.approx(all_scores.values["bits_per_byte"], rel=0.1)


def test_loss_error_of_equal_batches_is_zero_and_of_two_batches_half_their_difference() -> None:
    def error(*batches: tuple[float, float]) -> float:  # likelihood and labels of each
        labels = sum(count for _, count in batches)
        loss = sum(likelihood for likelihood, _ in batches) / labels
        sums = (sum(x * x for x, _ in batches), sum(x * n for x, n in batches), sum(n * n for _, n in batches))
        return ratio_error(loss, labels, len(batches), *sums)

    assert error((20.0, 10.0), (40.0, 20.0)) == pytest.approx(0.0)
    assert error((20.0, 10.0), (30.0, 10.0)) == pytest.approx(0.5)  # losses 2 and 3


def test_a_multilingual_model_gets_its_target_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write_corpus(tmp_path / "corpus")
    forward = {"kind": "lines", "source": files["all.en"], "target": files["all.de"], "languages": ["en", "de"]}
    backward = {"kind": "lines", "source": files["all.de"], "target": files["all.en"], "languages": ["de", "en"]}
    changes = {"data.train": [forward, backward], "tokenizer.specials.languages": ["de", "en"]}
    trainer = make_trainer("translation", tmp_path, changes | {"validation.sentences": 1000})
    assert trainer.validator is not None
    target_languages: list[str] = []
    from regard.tasks.translation.translator import Translator

    translate: Any = Translator.translate

    def record_translate(self: Translator, texts: list[str], search: Any, target_language: list[str]) -> Any:
        target_languages.extend(target_language)
        first_two = translate(self, texts[:2], search, target_language=target_language[:2])
        odd = len(texts) % 2
        return first_two * (len(texts) // 2) + translate(
            self, texts[:odd], search, target_language=target_language[:odd]
        )

    monkeypatch.setattr(Translator, "translate", record_translate)
    assert "bleu" in trainer.validator().values
    targets = {pair.target: pair.languages[-1] for pair in trainer.validator._context.examples}
    assert set(target_languages) == {"de", "en"}
    assert [targets[pair.target] for pair in trainer.validator._context.cache["pairs"]] == target_languages


def test_it_is_the_moving_average_that_is_scored_and_kept(tmp_path: Path) -> None:
    changes = {
        "train.steps": 2,
        "validation.every_steps": 2,
        "train.save_every": 2,
        "train.average": 1,
        "train.ema": 0.9,
    }
    trainer = make_trainer("translation", tmp_path, changes)
    finished = trainer.train()
    assert trainer.validator is not None
    assert trainer.ema is not None
    with trainer.ema.average_parameters():
        expected = trainer.validator().values
    assert finished.best_scores == expected
    assert trainer.validator().values["loss"] != expected["loss"]
    stored = read_model(tmp_path / "run" / "best").model.state_dict()
    for name, average in trainer.ema.weights().items():
        assert torch.equal(stored[name], average)


def test_tags_need_sources_that_say_their_languages(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="does not declare its languages"):
        make_trainer("translation", tmp_path, {"tokenizer.specials.languages": ["de"]})


def test_nothing_to_validate_on_is_reported_at_once(tmp_path: Path) -> None:
    for side in ("en", "de"):
        (tmp_path / f"long.{side}").write_text(" ".join(make_sentences(30)) + "\n")
    too_long = {"kind": "lines", "source": str(tmp_path / "long.en"), "target": str(tmp_path / "long.de")}
    with pytest.raises(RegardError, match="too small for one batch"):
        make_trainer("translation", tmp_path, {"data.held_out": 0.0, "data.validation": [too_long]})


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"validation.metric": "bleu", "validation.sentences": 0}, "validation.sentences"),
        ({"data.held_out": 0.0, "validation.patience": 2}, "validation.patience"),
        ({"data.prepared": "shards"}, "data.held_out"),
        ({"tokenizer.joint": False}, "tokenizer.joint"),
        ({"model.decoder.position": {"kind": "learned", "length": 20}}, "data.max_length"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(changes: dict[str, Any], fault: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=fault):
        make_small_run("translation", write_corpus(tmp_path), changes)


@pytest.mark.parametrize(
    ("task", "metric"),
    [("causal_lm", "bleu"), ("masked_lm", "bits_per_byte"), ("masked_lm", "chrf"), ("masked_lm", "f1")],
)
def test_a_score_that_a_task_does_not_have_is_refused(task: str, metric: str, tmp_path: Path) -> None:
    table = make_small_run(task, write_corpus(tmp_path)).model_dump(mode="json", exclude_none=True)
    with pytest.raises(RegardError, match=r"validation\.metric"):
        RUN_FILES.parse(table, {"validation.metric": metric})


def test_what_is_set_aside_in_training_is_not_translated(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    long_text = " ".join(make_sentences(30))
    for name in ("own.en", "own.de"):
        (tmp_path / name).write_text(f"{long_text}\n" + "the old dog\n" * 5)
    validation = {"kind": "lines", "source": str(tmp_path / "own.en"), "target": str(tmp_path / "own.de")}
    train = {"kind": "lines", "source": files["all.en"], "target": files["all.de"]}
    changes = {"data.train": [train], "data.validation": [validation], "data.held_out": 0.0, "validation.samples": 3}
    trainer = make_trainer("translation", tmp_path, changes)
    assert trainer.validator is not None
    assert trainer.validator._context.examples[0].source == long_text
    assert [sample.source for sample in trainer.validator().samples] == ["the old dog"] * 3


def test_sample_continuations_start_with_the_text(tmp_path: Path) -> None:
    trainer = make_trainer("causal_lm", tmp_path, {"model.decoder.position": {"kind": "learned", "length": 32}})
    assert trainer.validator is not None
    (sample,) = trainer.validator().samples
    text = trainer.validator._context.examples[0].source
    assert sample.source == text[:40]
    assert sample.output
    assert text[40:].startswith(sample.reference)
    assert len(sample.reference) <= len(sample.output)


NAMES = ("Ann", "Bob", "Zoe")


def _write_names(path: Path) -> dict[str, Any]:
    """Sentences of which most words are O; every name is an entity."""
    sentences = [f"the\tO\nold\tO\ndog\tO\nsees\tO\n{NAMES[n % 3]}\tB-PER\nBrown\tI-PER\ntoday\tO\n" for n in range(90)]
    path.write_text("\n".join(sentences) + "\n")
    return {
        "data.train": [{"kind": "conll", "path": str(path)}],
        "model.task": "tagging",
        "model.head": {"kind": "tags", "labels": ["a", "b"]},
        "validation.metric": "f1",
        "validation.every_steps": 1,
    }


def test_the_f1_of_entity_tags_is_that_of_entities(tmp_path: Path) -> None:
    trainer = make_trainer("masked_lm", tmp_path, _write_names(tmp_path / "names.conll"))
    assert trainer.validator is not None
    values = trainer.validator().values
    assert values.keys() == {"loss", "accuracy", "f1"}  # no perplexity: a label is no token
    with torch.no_grad():
        trainer.model.head.tags.weight.zero_()  # type: ignore[union-attr, operator]
        trainer.model.head.tags.bias.copy_(torch.tensor([0.0, 0.0, 9.0]))  # type: ignore[union-attr, operator]
    assert trainer.run.model.head.labels == ("B-PER", "I-PER", "O")  # type: ignore[union-attr]
    values = trainer.validator().values
    assert values["accuracy"] == pytest.approx(5 / 7)
    assert values["f1"] == 0


def test_the_best_model_follows_f1_not_accuracy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make_trainer("masked_lm", tmp_path, _write_names(tmp_path / "names.conll") | {"train.steps": 3})
    scores = iter([{"accuracy": 0.93, "f1": 0.0}, {"accuracy": 0.91, "f1": 0.2}, {"accuracy": 0.95, "f1": 0.1}])
    monkeypatch.setattr(trainer, "_score", lambda: Scores(next(scores)))
    trainer.train()
    assert (trainer.progress.best, trainer.progress.best_step) == (0.2, 2)


def test_the_f1_of_classes_is_the_mean_over_labels(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("".join(f"text {n}\t{'rare' if n % 4 == 0 else 'usual'}\n" for n in range(80)))
    changes = {
        "data.train": [{"kind": "table", "path": str(tmp_path / "rows.tsv"), "label": 2}],
        "data.held_out": 0.0,
        "data.validation": [{"kind": "table", "path": str(tmp_path / "rows.tsv"), "label": 2}],
        "model.task": "text_classification",
        "model.head": {"kind": "classes", "labels": ["a", "b"], "pool": "mean"},
        "validation.metric": "f1",
    }
    trainer = make_trainer("masked_lm", tmp_path, changes)
    assert trainer.validator is not None
    with torch.no_grad():
        trainer.model.head.classes.weight.zero_()  # type: ignore[union-attr, operator]
        trainer.model.head.classes.bias.copy_(torch.tensor([0.0, 9.0]))  # type: ignore[union-attr, operator]
    values = trainer.validator().values
    assert values["accuracy"] == pytest.approx(0.75)
    assert values["f1"] == pytest.approx((0 + 2 * 0.75 / 1.75) / 2)
