"""Decoding inverts encoding: 500 strings per property, 10,000 with HYPOTHESIS_PROFILE=long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.config.tokenizers import (
    AnyTokenizerConfig,
    BpeConfig,
    ByteBpeConfig,
    ByteLevelConfig,
    CharacterLevelConfig,
    UnigramConfig,
    WordLevelConfig,
)
from regard.text.learn import learn
from tests.text.factories import ALPHABET, ANY_TEXT, LEARNED_TEXT, TEXTS, get_tokenizer

WORDS = st.lists(
    st.text([character for character in ALPHABET if character not in " \n"], min_size=1, max_size=8),
    min_size=1,
    max_size=8,
)


@given(text=ANY_TEXT)
def test_any_string(text: str) -> None:
    for name in ("byte_bpe", "byte", "byte_bpe tagged"):
        tokenizer = get_tokenizer(name)
        encoding = tokenizer.encode(text)
        assert tokenizer.decode(encoding.ids) == text, name
        assert not tokenizer.specials.control & set(encoding.ids), "special strings in a text are text"
        assert tokenizer.encode_ids([text, text]) == [encoding.ids, encoding.ids]


@given(text=ANY_TEXT)
def test_a_normalised_string(text: str) -> None:
    for name in ("byte_bpe normal", "unigram normal"):
        tokenizer = get_tokenizer(name)
        ids = tokenizer.encode(text).ids
        if tokenizer.specials.unk not in ids and "▁" not in text:
            assert tokenizer.decode(ids) == tokenizer.normalize(text), name


def test_normalisation_follows_the_settings() -> None:
    tokenizer = get_tokenizer("byte_bpe normal")
    assert tokenizer.decode(tokenizer.encode("É ﬁx E\u0301 <url> 한국").ids) == "e fix e <url> 한국"


@given(text=LEARNED_TEXT)
def test_strings_of_learned_characters(text: str) -> None:
    for name in ("bpe", "unigram", "character", "bpe tagged", "unigram tagged", "character tagged"):
        tokenizer = get_tokenizer(name)
        ids = tokenizer.encode(text).ids
        assert tokenizer.decode(ids) == text, name
        assert not tokenizer.specials.control & set(ids), "special strings in a text are text"


@given(words=st.lists(st.sampled_from(["Peter", "peck", "<pad>", "zzz"]), max_size=8))
def test_word_level(words: list[str]) -> None:
    """The word level decodes known words, shows unknown ones as <unk>, and joins them with one space."""
    tokenizer = get_tokenizer("word")
    ids = tokenizer.encode("  ".join(words)).ids
    assert tokenizer.decode(ids) == " ".join(word if word in ("Peter", "peck") else "<unk>" for word in words)


@given(text=ANY_TEXT)
def test_offsets_cover_the_text_in_order(text: str) -> None:
    for name in ("byte_bpe", "byte_bpe tagged", "bpe", "unigram", "character", "byte_bpe normal"):
        encoding = get_tokenizer(name).encode(text)
        assert len(encoding.ids) == len(encoding.offsets) == len(encoding.word_ids)
        assert all(0 <= start <= end <= len(text) for start, end in encoding.offsets)
        assert [start for start, _ in encoding.offsets] == sorted(start for start, _ in encoding.offsets)
        if name != "byte_bpe normal":  # removed accents belong to no token
            covered = {position for start, end in encoding.offsets for position in range(start, end)}
            assert covered == set(range(len(text))), name


@given(words=WORDS)
def test_words_are_separated_by_spaces(words: list[str]) -> None:
    text = " ".join(words)
    for name in ("byte_bpe", "byte", "bpe", "unigram", "character"):
        encoding = get_tokenizer(name).encode(text)
        positions: list[set[int]] = [set() for _ in words]
        for (start, end), word in zip(encoding.offsets, encoding.word_ids, strict=True):
            assert word is not None
            positions[word] |= set(range(start, end))
        assert ["".join(text[position] for position in sorted(word)).strip(" ") for word in positions] == words, name


@pytest.mark.parametrize("text", ["Two  dogs play", " Two dogs play", "Two dogs play ", "  Two   dogs  play  "])
def test_more_spaces_make_no_words(text: str) -> None:
    for name in ("byte_bpe", "byte", "bpe", "unigram", "character"):
        encoding = get_tokenizer(name).encode(text)
        positions: dict[int, set[int]] = {}
        for (start, end), word in zip(encoding.offsets, encoding.word_ids, strict=True):
            assert word is not None
            positions.setdefault(word, set()).update(range(start, end))
        words = ["".join(text[place] for place in sorted(positions[number])).strip(" ") for number in sorted(positions)]
        assert words == ["Two", "dogs", "play"], name


KINDS: list[AnyTokenizerConfig] = [
    *(ByteBpeConfig(vocabulary=290), BpeConfig(vocabulary=40), UnigramConfig(vocabulary=40)),
    *(WordLevelConfig(vocabulary=20), CharacterLevelConfig(), ByteLevelConfig()),
]


@pytest.mark.parametrize("settings", KINDS, ids=lambda settings: settings.kind)
def test_a_new_token_is_always_one_token(settings: AnyTokenizerConfig) -> None:
    before = learn(TEXTS, settings)
    tokenizer = before.add_tokens(["<zebra>", "a cat", "<zebra>"])
    assert tokenizer.size == before.size + 2
    assert tokenizer.specials.extra == before.specials.extra | {"<zebra>": before.size, "a cat": before.size + 1}
    text = "the <zebra> sees a cat and the dog"
    ids = tokenizer.encode_ids([text])[0]
    assert [ids.count(token) for token in (before.size, before.size + 1)] == [1, 1]
    assert tokenizer.decode(ids) == text
    assert tokenizer.encode_ids(["the dog sees"]) == before.encode_ids(["the dog sees"])
    assert tokenizer.add_tokens(["a cat"]) is tokenizer


def test_texts_that_cannot_be_tokens_are_refused() -> None:
    tokenizer = learn(TEXTS, ByteBpeConfig(vocabulary=290))
    for text, message in (("<pad>", "special token"), ("x", "too short")):
        with pytest.raises(RegardError, match=message):
            tokenizer.add_tokens([text])
