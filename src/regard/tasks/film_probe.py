"""Inputs that a training film follows: examples with short outputs, chosen by the task."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from regard.store.examples import ValidationExample
from regard.tasks.requests import DEFAULT_OPTIONS, ReplayOptions
from regard.tasks.search import Beam
from regard.text.tokenizer import Tokenizer

MAX_TOKENS = 48  # of an input or a reference: longer maps are not readable on a page
EXTRA_TOKENS = 4  # an output may be this much longer than its reference


@dataclass(frozen=True)
class FilmProbe:
    """One input and its expected output."""

    text: str
    reference: str = ""
    """The expected output; "" if it is unknown."""
    labels: Sequence[int] = ()
    """Tokens or label of the reference; empty if it is unknown."""
    options: ReplayOptions = DEFAULT_OPTIONS


def greedy(labels: Sequence[int], target_language: str | None = None) -> ReplayOptions:
    """Return the options of a greedy search that stops soon after the length of its reference.

    A model that has not learned to stop would otherwise make the first frames the slowest and the largest.
    """
    return ReplayOptions(Beam(1), max_new_tokens=len(labels) + EXTRA_TOKENS, target_language=target_language)


def iter_short(examples: Sequence[ValidationExample], tokenizer: Tokenizer) -> Iterator[ValidationExample]:
    """Yield the examples whose source has words, but not more tokens than a film shows."""
    return (example for example in examples if 0 < len(tokenizer.encode_ids([example.source])[0]) < MAX_TOKENS)
