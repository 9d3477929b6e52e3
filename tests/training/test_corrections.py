"""Tuning on corrections: what is learned, what is refused, and what a refusal leaves behind."""

import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.data.suggestions import Suggestion, SuggestionStore
from regard.store.run_folder import RunFolder
from regard.tasks.load import load
from regard.training.corrections import RefusedError, tune_on_corrections
from regard.training.events import Event, Message
from regard.training.options import TrainOptions
from regard.training.run import fit
from tests.training.runs import make_sentences, make_small_run, translate_sentence, write_corpus

Pairs = list[tuple[str, str]]
LEARNED: dict[str, Any] = {
    "train.steps": 200,
    "train.save_every": 200,
    "validation.every_steps": 200,
    "train.average": 1,
    "train.ema": 0.0,
    "tokenizer": {"kind": "word", "vocabulary": 64},
    "model.d_model": 32,
    "model.languages": ["en", "de"],
    "train.schedule": {"kind": "cosine", "lr": 0.02, "warmup": 20},
}


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has learned enough to prefer a sentence's translation to that of another sentence."""
    folder = tmp_path_factory.mktemp("parent")
    fit(make_small_run("translation", write_corpus(folder / "corpus", 600), LEARNED), folder / "run")
    return folder / "run"


def make_pairs(count: int, seed: int) -> Pairs:
    return [(text, translate_sentence(text)) for text in make_sentences(count, seed)]


def tune(parent: Path, pairs: Pairs, out: Path, *, lr: float = 1e-4, languages: str = "en de") -> list[Event]:
    """Store suggestions and tune on them; return the events."""
    events: list[Event] = []
    with closing(SuggestionStore(out.with_suffix(".db"), 1000)) as store:
        for pair in pairs:
            store.add(Suggestion(*pair, *languages.split()))
    settings = {"train.schedule": {"kind": "constant", "lr": lr}, "device.threads": 1}
    options = TrainOptions(parent=parent, out=out, steps=4, settings=settings)
    tune_on_corrections(options, out.with_suffix(".db"), [events.append])
    return events


def test_corrections_are_learned_in_rounds_with_replay(
    parent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.training.corrections.find_unusable", lambda *_: {})  # a model this small errs
    first, second = make_pairs(60, seed=2), make_pairs(40, seed=3)
    tune(parent, first, tmp_path / "first")
    tune(tmp_path / "first", [*first, *second], tmp_path / "second")
    corrections = RunFolder(tmp_path / "second").corrections
    assert len((corrections / "earlier.jsonl").read_text().splitlines()) == len({*first, *second})
    learned = (corrections / "learned.jsonl").read_text()
    assert all(f'"{source}"' in learned for source, _ in first)  # those held out in the first round, too
    tests = [RunFolder(tmp_path / name).corrections / "test-outputs.jsonl" for name in ("first", "second")]
    assert tests[0].read_text() == tests[1].read_text()  # of the first model: losses cannot add up
    assert load(tmp_path / "second", task="translation").translate(["the dog"])[0].text
    assert not (tmp_path / "second" / "candidate").exists()
    with pytest.raises(RegardError, match="no new suggestions"):
        tune(tmp_path / "second", first, tmp_path / "third")


@pytest.mark.parametrize("attack", ["shuffled", "copied", "advertising"])
def test_poisoned_suggestions_are_refused_before_training(parent: Path, tmp_path: Path, attack: str) -> None:
    pairs = make_pairs(40, seed=2)
    targets = [target for _, target in pairs]
    random.Random(1).shuffle(targets)
    poisoned = {
        "shuffled": [(source, target) for (source, _), target in zip(pairs, targets, strict=True)],
        "copied": [(f"{source} the red dog", f"{source} the red dog") for source, _ in pairs],
        "advertising": [(source, f"{target} Hund mag www.hund.example") for source, target in pairs],
    }
    with pytest.raises(RefusedError, match="corrections failed a check"):
        tune(parent, poisoned[attack], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_model_that_forgets_is_refused_and_not_written(parent: Path, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"worse than the old one:\n  - test set"):
        tune(parent, make_pairs(40, seed=2), tmp_path / "out", lr=1.0)
    assert not (tmp_path / "out").exists()


def test_missing_training_data_and_other_languages_are_reported(parent: Path, tmp_path: Path) -> None:
    shutil.copytree(parent, tmp_path / "moved")
    shutil.rmtree(tmp_path / "moved" / "shards")
    events = tune(tmp_path / "moved", make_pairs(20, seed=2), tmp_path / "out")
    assert any("training data is not available" in event.text for event in events if isinstance(event, Message))
    assert not (RunFolder(tmp_path / "out").corrections / "replay.jsonl").exists()
    with pytest.raises(RegardError, match="no new suggestions"):
        tune(parent, make_pairs(20, seed=2), tmp_path / "french", languages="en fr")
    with pytest.raises(RegardError, match="no data to test"):
        tune(parent / "best", make_pairs(20, seed=2), tmp_path / "model-folder")
