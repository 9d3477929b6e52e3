"""Recipes for text: units, vocabulary and masking."""

from pathlib import Path

import pytest

from regard.config.sources import DocumentsConfig, LinesConfig
from regard.config.tokenizers import ByteBpeConfig, CharacterLevelConfig
from regard.tasks.recipes.vocabulary import bytes_per_token
from regard.training.recipes.configure import configure
from tests.training.recipes.factories import find_reason


def test_few_words_need_a_small_vocabulary(tmp_path: Path) -> None:
    for name in ("a.in", "a.out"):
        (tmp_path / name).write_text("jump left twice\nwalk right\n" * 300, encoding="utf-8")
    auto_run = configure(LinesConfig(source=str(tmp_path / "a.in"), target=str(tmp_path / "a.out")))
    assert auto_run.run.tokenizer == ByteBpeConfig(vocabulary=512)
    assert "only 5 distinct words" in find_reason(auto_run, "Vocabulary:")
    for name in ("a.in", "a.out"):
        (tmp_path / name).write_text("".join(f"a sentence with word{n}\n" for n in range(300)), encoding="utf-8")
    assert configure(
        LinesConfig(source=str(tmp_path / "a.in"), target=str(tmp_path / "a.out"))
    ).run.tokenizer == ByteBpeConfig(vocabulary=606)


def test_words_are_read_letter_by_letter_and_count_less_than_sentences(tmp_path: Path) -> None:
    for name in ("a.in", "a.out"):
        (tmp_path / name).write_text("".join(f"word{n}\n" for n in range(12_000)), encoding="utf-8")
    auto_run = configure(LinesConfig(source=str(tmp_path / "a.in"), target=str(tmp_path / "a.out")))
    assert auto_run.run.tokenizer == ByteBpeConfig(vocabulary=512)
    assert "the examples are words (8 characters)" in find_reason(auto_run, "Vocabulary:")
    assert "12,000 pairs of 8 characters: preset mini" in auto_run.reasons[0]


def test_a_text_of_too_many_characters_is_counted_in_subword_tokens(tmp_path: Path) -> None:
    rare_characters = "".join(map(chr, range(0x4E00, 0x4E00 + 600)))
    for name, prefix in (("plain", ""), ("rare", rare_characters)):
        (tmp_path / name).write_text(prefix + " ".join(f"word{n % 3000}" for n in range(40_000)), encoding="utf-8")
    plain_run, rare_run = (configure(DocumentsConfig(path=str(tmp_path / name))).run for name in ("plain", "rare"))
    assert isinstance(plain_run.tokenizer, CharacterLevelConfig)
    assert isinstance(rare_run.tokenizer, ByteBpeConfig)
    assert 3 < plain_run.train.steps / rare_run.train.steps < 4.5  # characters per token


def test_many_characters_are_no_small_vocabulary(tmp_path: Path) -> None:
    text = "".join(chr(0x4E00 + n) for n in range(600)) * 10
    (tmp_path / "book.txt").write_text(text, encoding="utf-8")
    run = configure(DocumentsConfig(path=str(tmp_path / "book.txt"))).run
    assert isinstance(run.tokenizer, ByteBpeConfig)


@pytest.mark.parametrize("text", ["line", "document"])
def test_masked_tokens_of_a_long_document_are_learned_as_often_as_of_lines(text: str, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("The quick brown fox jumps over the lazy dog.\n" * 20_000, encoding="utf-8")
    path = str(tmp_path / "book.txt")
    auto_run = configure(
        DocumentsConfig(path=path) if text == "document" else LinesConfig(source=path), preset="encoder-small"
    )
    assert auto_run.run.model.task == "masked_lm"
    tokens = 45 * 20_000 / bytes_per_token(auto_run.run.tokenizer.vocabulary)  # type: ignore[union-attr]
    tokens_seen = auto_run.run.train.steps * auto_run.run.train.step_tokens
    assert tokens_seen == pytest.approx(20 * tokens, rel=0.3)


def test_bytes_per_token() -> None:
    assert 2.5 < bytes_per_token(1000) < bytes_per_token(32000) < 5.5
    assert bytes_per_token(2) == 1.0
