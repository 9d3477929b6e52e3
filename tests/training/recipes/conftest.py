"""Corpora of a few hundred lines."""

from collections.abc import Callable
from pathlib import Path

import pytest

from regard.config.sources import DocumentsConfig, LinesConfig
from regard.config.tokenizers import ByteBpeConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.held_out import train_validation_split
from regard.data.shards.prepare import prepare
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from tests.training.recipes.factories import WORDS


@pytest.fixture
def pairs(tmp_path: Path) -> Callable[[int], LinesConfig]:
    def write_pairs(count: int) -> LinesConfig:
        lines = [" ".join(WORDS[(n * k) % len(WORDS)] for k in range(1, 9)) + f" {n}" for n in range(count)]
        for name, texts in (("a.en", lines), ("a.de", [line.upper() for line in lines])):
            (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        return LinesConfig(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.de"), languages=("en", "de"))

    return write_pairs


@pytest.fixture
def book(tmp_path: Path) -> DocumentsConfig:
    (tmp_path / "book.txt").write_text("The quick brown fox.\n" * 500, encoding="utf-8")
    return DocumentsConfig(path=str(tmp_path / "book.txt"))


@pytest.fixture
def shards(tmp_path: Path, pairs: Callable[[int], LinesConfig]) -> Path:
    """The output of `regard prepare` for 600 pairs, 60 of them for validation; its tokenizer has 400 tokens."""
    corpus = Corpus([pairs(600)])
    examples = [example for _, example in corpus.examples(Defects())]
    texts = [text for example in examples for text in (example.source, example.target or "")]
    tokenizers = TokenizerPair.joint(learn(texts, ByteBpeConfig(vocabulary=400)))
    for name, part in zip(("train", "validation"), train_validation_split(corpus, 0.1, 1), strict=True):
        prepare(part, tokenizers, tmp_path / "shards" / name, Defects())
    tokenizers.save(tmp_path / "shards")
    return tmp_path / "shards"
