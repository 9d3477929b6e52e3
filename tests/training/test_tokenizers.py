"""Tokenizers that a run learns and stores."""

from itertools import pairwise
from pathlib import Path

import pytest

from regard.store.run_folder import RunFolder
from regard.training import tokenizers as module
from regard.training.data import prepare_data
from regard.training.events import Event, Message
from tests.training.runs import make_prompt_run, make_small_run, read_data, write_corpus


def test_the_vocabulary_has_the_words_of_responses(tmp_path: Path) -> None:
    run = make_prompt_run(tmp_path, ["one", "two"] * 30, ["c1 c2 c3", "c4"] * 30)
    data = prepare_data(run, RunFolder(tmp_path), lambda _: None)
    assert data.tokenizers is not None
    words = {"one", "two", "c1", "c2", "c3", "c4"}
    assert words <= set(data.tokenizers.source.vocabulary)


def test_tokenizers_are_saved_completely_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {
        "tokenizer.joint": False,
        "model.target": {"kind": "tokens", "vocabulary": 300},
        "model.head.tied": False,
    }
    run = make_small_run("translate", write_corpus(tmp_path / "corpus"), changes)
    with monkeypatch.context() as patched:
        from regard.text.tokenizer import Tokenizer

        original = Tokenizer.save

        def interrupt(self: Tokenizer, path: Path) -> None:
            if path.name == "target.json":
                raise KeyboardInterrupt
            original(self, path)

        patched.setattr(Tokenizer, "save", interrupt)
        with pytest.raises(KeyboardInterrupt):
            read_data(run, tmp_path / "run")
    assert read_data(run, tmp_path / "run").tokenizers.target.size == 300


def test_a_vocabulary_of_much_text_is_learned_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE_CHARACTERS", 100)
    events: list[Event] = []
    texts = [f"{number:010}" for number in range(1000)]
    sampler = module._Subsampler(events.append)
    numbers = [int(text) for text in texts if sampler.should_keep(text)]
    assert numbers[:10] == list(range(10))
    assert {later - number for number, later in pairwise(numbers)} >= {1, 2, 4, 8, 16}
    assert len(numbers) < 80
    assert numbers[-1] > 900
    assert [event.text for event in events if isinstance(event, Message)] == [
        "More than 100 characters: the vocabulary is learned from a sample of the rest."
    ]
    sampler = module._Subsampler(events.append)
    assert all(map(sampler.should_keep, texts[:9]))
    assert len(events) == 1
