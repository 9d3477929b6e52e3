"""What a translator or a writer answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from regard.decode.mbr import minimum_bayes_risk
from regard.decode.protocol import Hypothesis
from regard.measure.sentence_chrf import SentenceChrf
from regard.text.tokenizer import Tokenizer

A = TypeVar("A", bound="GeneratedText")


@dataclass(frozen=True)
class GeneratedText:
    """A text, and how it came about."""

    text: str
    score: float
    """The log-probability of all tokens, END included, divided by their number to the power of alpha."""
    tokens: tuple[int, ...]
    """As they were written, END included if there was one."""
    logprobs: tuple[float, ...]
    """The log-probability of each token."""
    ended: bool
    """Whether it came to its end; a text that did not was cut off at its longest length."""
    token_texts: tuple[str, ...] = ()
    """The text of each token; END has none."""
    utility: float | None = None
    """Where the least risk was looked for: how like all texts that were drawn it is, by chrF."""
    alternatives: "tuple[GeneratedText, ...]" = ()
    """The next best texts, where more than one was asked for."""


@dataclass(frozen=True)
class Translation(GeneratedText):
    """What was written for a source."""

    alignment: tuple[tuple[int, int], ...] | None = None
    """Where it was asked for: pairs of a source word and a word of the text, both counted from 0."""


EMPTY = Translation("", 0.0, (), (), ended=True)


def make_result(
    kind: type[A],
    hypotheses: list[Hypothesis],
    tokenizer: Tokenizer,
    n_best: int,
    *,
    should_rerank: bool = False,
    prompt: Sequence[int] = (),
) -> A:
    """The first of some hypotheses as text, the others as its alternatives; `by_risk` ranks them anew.

    `after` is what stands before the text, if it goes on from something.
    """
    results = [_to_result(kind, hypothesis, tokenizer, prompt) for hypothesis in hypotheses]
    results = (rerank_mbr(results) if should_rerank else results)[:n_best]
    return replace(results[0], alternatives=tuple(results[1:]))


def rerank_mbr(candidates: list[A]) -> list[A]:
    """The different texts, the one most like all of them first; of several ways to write a text, the likeliest."""
    likeliest = {candidate.text: candidate for candidate in sorted(candidates, key=lambda candidate: candidate.score)}
    ranked = minimum_bayes_risk([candidate.text for candidate in candidates], SentenceChrf())
    return [replace(likeliest[candidate.text], utility=candidate.utility) for candidate in ranked]


def _to_result(kind: type[A], hypothesis: Hypothesis, tokenizer: Tokenizer, prompt: Sequence[int]) -> A:
    token_texts = tuple(tokenizer.token_bytes.bytes[token].decode("utf-8", "replace") for token in hypothesis.tokens)
    return kind(
        tokenizer.decode(hypothesis.without_eos, prompt),
        hypothesis.score,
        hypothesis.tokens,
        hypothesis.logprobs,
        hypothesis.ended,
        token_texts,
    )
