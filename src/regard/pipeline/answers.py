"""What a translator or a writer answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from regard.decode.rerank import minimum_bayes_risk
from regard.decode.step import Hypothesis
from regard.measure.likeness import SentenceChrf
from regard.text.tokenizer import Tokenizer

A = TypeVar("A", bound="Written")


@dataclass(frozen=True)
class Written:
    """A text, and how it came about."""

    text: str
    score: float
    """The log-probability of all tokens, END included, divided by their number to the power of alpha."""
    tokens: tuple[int, ...]
    """As they were written, END included if there was one."""
    logs: tuple[float, ...]
    """The log-probability of each token."""
    ended: bool
    """Whether it came to its end; a text that did not was cut off at its longest length."""
    pieces: tuple[str, ...] = ()
    """The text of each token; END has none."""
    utility: float | None = None
    """Where the least risk was looked for: how like all texts that were drawn it is, by chrF."""
    alternatives: "tuple[Written, ...]" = ()
    """The next best texts, where more than one was asked for."""


@dataclass(frozen=True)
class Translation(Written):
    """What was written for a source."""

    alignment: tuple[tuple[int, int], ...] | None = None
    """Where it was asked for: pairs of a source word and a word of the text, both counted from 0."""


NOTHING = Translation("", 0.0, (), (), ended=True)


def answer(
    kind: type[A],
    found: list[Hypothesis],
    tokenizer: Tokenizer,
    best: int,
    *,
    by_risk: bool = False,
    after: Sequence[int] = (),
) -> A:
    """The first of some hypotheses as text, the others as its alternatives; `by_risk` ranks them anew.

    `after` is what stands before the text, if it goes on from something.
    """
    texts = [_told(kind, one, tokenizer, after) for one in found]
    texts = (least_risk(texts) if by_risk else texts)[:best]
    return replace(texts[0], alternatives=tuple(texts[1:]))


def least_risk(found: list[A]) -> list[A]:
    """The different texts, the one most like all of them first; of several ways to write a text, the likeliest."""
    likeliest = {one.text: one for one in sorted(found, key=lambda one: one.score)}
    ranked = minimum_bayes_risk([one.text for one in found], SentenceChrf())
    return [replace(likeliest[one.text], utility=one.utility) for one in ranked]


def _told(kind: type[A], found: Hypothesis, tokenizer: Tokenizer, after: Sequence[int]) -> A:
    pieces = tuple(tokenizer.token_bytes.bytes[token].decode("utf-8", "replace") for token in found.tokens)
    return kind(
        tokenizer.decode(found.without_eos, after), found.score, found.tokens, found.logprobs, found.ended, pieces
    )
