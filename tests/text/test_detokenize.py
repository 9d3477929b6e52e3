"""Streaming decoding equals decoding the whole sequence and never returns part of a character."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.base.errors import RegardError
from tests.text.factories import ANY_TEXT, KINDS, get_tokenizer


def push_all(name: str, ids: list[int]) -> list[str]:
    decoder = get_tokenizer(name).make_streaming_decoder()
    return [*(decoder.push(token) for token in ids), decoder.finish()]


@given(numbers=st.lists(st.integers(0, 2**16), max_size=30))
def test_streaming_equals_decode(numbers: list[int]) -> None:
    for name in KINDS:
        tokenizer = get_tokenizer(name)
        ids = [number % tokenizer.size for number in numbers]
        assert "".join(push_all(name, ids)) == tokenizer.decode(ids), name
        if not tokenizer.specials.extra and tokenizer.specials.unk not in ids:
            assert tokenizer.decode(ids) == tokenizer.backend.decode(ids, skip_special_tokens=True), "tokenizers' own"


@given(text=ANY_TEXT)
def test_only_whole_characters(text: str) -> None:
    chunks = push_all("byte", get_tokenizer("byte").encode(text).ids)
    assert "".join(chunks) == text
    assert all(len(chunk) <= 1 for chunk in chunks), "a byte completes at most one character"
    assert "".join(chunks).count("\ufffd") == text.count("\ufffd")


def test_character_is_returned_with_its_last_byte() -> None:
    assert push_all("byte", get_tokenizer("byte").encode("a€b").ids) == ["a", "", "", "€", "b", ""]
    assert push_all("byte", get_tokenizer("byte").encode("€").ids[:2]) == ["", "", "\ufffd"]


def test_space_that_may_be_final_is_held_back() -> None:
    tokenizer = get_tokenizer("bpe")
    ids = tokenizer.encode("a peck ").ids
    assert tokenizer.vocabulary[ids[0]] == "a▁"
    chunks = push_all("bpe", ids)
    assert chunks[0] == "a"
    assert chunks[1].startswith(" ")
    assert "".join(chunks) == "a peck "
    assert "".join(push_all("unigram", get_tokenizer("unigram").encode(" a peck").ids)) == " a peck"


@pytest.mark.parametrize("name", ["byte_bpe", "bpe", "word"])
def test_id_outside_the_vocabulary_is_refused(name: str) -> None:
    tokenizer = get_tokenizer(name)
    for invalid_id in (tokenizer.size, -1):
        with pytest.raises(RegardError, match=f"no token {invalid_id}"):
            tokenizer.decode([0, invalid_id])
        with pytest.raises(RegardError, match=f"no token {invalid_id}"):
            tokenizer.make_streaming_decoder().push(invalid_id)
