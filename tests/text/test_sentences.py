"""Sentence splitting loses no text and handles common cases."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.sentences import split_sentences

# ruff: noqa: RUF001

LONGER = 10  # times the characters


@given(st.text(alphabet='aB.!? \n\t"”)。1…', max_size=40) | st.text(max_size=40))
def test_concatenated_sentences_are_the_text(text: str) -> None:
    pairs = split_sentences(text)
    assert "".join(sentence + space for sentence, space in pairs) == text
    assert all(not space or space.isspace() for _, space in pairs)
    assert not any(sentence.endswith(("\n", " \n")) for sentence, _ in pairs)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Mr. Smith met Dr. No. They left.", ["Mr. Smith met Dr. No. They left."]),  # "No." is an abbreviation as well
        ("J. S. Bach wrote it. He did.", ["J. S. Bach wrote it.", "He did."]),
        ("Das ist z. B. gut. Sehr gut.", ["Das ist z. B. gut.", "Sehr gut."]),
        ("It costs 3.50 euros. Really?", ["It costs 3.50 euros.", "Really?"]),
        ("1. The first point. 2. The second.", ["1. The first point.", "2. The second."]),
        ('He asked, "Why?" and left. "No."', ['He asked, "Why?" and left.', '"No."']),
        ("今日は。明日は！", ["今日は。", "明日は！"]),
        ("「行こう。」と言った。何？！はい。", ["「行こう。」と言った。", "何？！", "はい。"]),
        ("A heading\nand its text", ["A heading", "and its text"]),
        ("1.\tA heading \t12", ["1.", "A heading", "12"]),
        ("e.g. this. That", ["e.g. this.", "That"]),
    ],
)
def test_common_cases(text: str, sentences: list[str]) -> None:
    assert [sentence for sentence, _ in split_sentences(text)] == sentences


@pytest.mark.parametrize("unit", ["a. ", "1. ", ".", ".)", " ", "\n", "!? ", "。", "Dr. "])
@pytest.mark.parametrize(("start", "end"), [("", ""), ("a ", "b")])
def test_sentences_are_split_in_linear_time(unit: str, start: str, end: str) -> None:
    seconds: dict[int, float] = {}
    for _ in range(3):  # a busy machine adds to the CPU time, and never takes from it
        for length in (20_000, 20_000 * LONGER):
            text = start + unit * (length // len(unit)) + end
            begin = time.process_time()
            assert "".join(sentence + space for sentence, space in split_sentences(text)) == text
            seconds[length] = min(seconds.get(length, float("inf")), time.process_time() - begin)
    short, long = seconds.values()
    assert long < LONGER**1.5 * short  # linear: LONGER, quadratic: LONGER**2
