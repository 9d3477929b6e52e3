"""Tokenizers that a run learns and stores."""

import re
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
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), changes)
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


def test_text_sample_of_much_text_is_even_and_bounded() -> None:
    sample = module._TextSample(limit=100)
    for number in range(1000):
        sample.add(f"{number:010}")
    numbers = [int(text) for text in sample.texts]
    assert numbers == list(range(0, 1000, numbers[1]))
    assert (5 <= len(numbers) <= 10, sample.count) == (True, 1000)


def test_text_sample_of_little_text_keeps_all_texts_unchanged() -> None:
    sample, document = module._TextSample(limit=10_000), "one two\n" * 1000
    for text in (document, "three"):
        sample.add(text)
    assert sample.texts == [document, "three"]


def test_text_sample_of_large_documents_has_pieces_of_each() -> None:
    sample = module._TextSample(limit=40_000)
    for word in ("one", "two", "six"):
        sample.add(f"{word} " * 10_000)
    assert {text.split()[0] for text in sample.texts} == {"one", "two", "six"}
    assert {word for text in sample.texts for word in text.split()} == {"one", "two", "six"}  # no word is cut
    assert sum(map(len, sample.texts)) <= 40_000


def test_vocabulary_of_a_sample_is_reported_and_held_out_text_is_not_in_it(tmp_path: Path) -> None:
    changes = {"tokenizer": {"kind": "byte_bpe", "vocabulary": 300, "sample_characters": 300}}
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), changes)
    events: list[Event] = []
    prepare_data(run, RunFolder(tmp_path), events.append)
    (text,) = [event.text for event in events if isinstance(event, Message)]
    assert re.fullmatch(
        r"Vocabulary: learned from an even sample, [\d,]+ of [\d,]+ texts \(at most 300 characters per side\)\.", text
    )
