"""Decoding options of `translate` and `generate`, and the search strategy that they select."""

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.options import SAMPLING_PANEL, SEARCH_PANEL, is_given, option

if TYPE_CHECKING:
    from regard.decode.filters import Filters
    from regard.tasks.search import Search

_option = partial(option, panel=SAMPLING_PANEL)
Temperature = Annotated[float, _option("Divide the logits by this value; 0 is greedy.", min=0)]
TopK = Annotated[int | None, _option("Sample from the k most probable tokens.", min=1)]
TopP = Annotated[
    float | None, _option("Sample from the most probable tokens whose probabilities sum to p.", min=0, max=1)
]
MinP = Annotated[
    float | None, _option("Drop tokens whose probability is below p times the highest probability.", min=0, max=1)
]
TypicalP = Annotated[float | None, _option("Locally typical sampling: keep probability mass p.", min=0, max=1)]
RepetitionPenalty = Annotated[float, _option("Values above 1 penalize repeated tokens.", min=0)]
NoRepeatNgram = Annotated[int | None, _option("Never repeat an n-gram of this size.", min=1)]
Seed = Annotated[int | None, _option("Random seed; the same seed samples the same text.", metavar="N")]


class SearchKind(StrEnum):
    """Search strategies by their command-line names."""

    beam = "beam"
    exact = "exact"
    sample = "sample"
    diverse = "diverse"
    stochastic = "stochastic"
    mbr = "mbr"


SearchOption = Annotated[
    SearchKind,
    option(
        "Search strategy: beam, exact (a beam that never stops early), sample, diverse, stochastic, or mbr (minimum "
        "Bayes risk over samples, by chrF).",
        metavar="NAME",
        panel=SEARCH_PANEL,
    ),
]
SAMPLING_KINDS = (SearchKind.sample, SearchKind.mbr)  # strategies that filter and sample tokens
LENGTH_PENALTY_KINDS = (
    SearchKind.beam,
    SearchKind.exact,
    SearchKind.diverse,
)  # strategies that normalize scores by length
SAMPLING_OPTIONS = ("temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty", "no_repeat_ngram")


def default_count(kind: SearchKind, n_best: int) -> int:
    """Return the default beam size, or the default number of samples."""
    return {SearchKind.sample: n_best, SearchKind.mbr: 32}.get(kind, 5)


def check_unused_options(context: typer.Context, kind: SearchKind) -> None:
    """Raise an error for options that the search would ignore.

    `--seed` is always accepted; a deterministic search ignores it.
    """
    for names, kinds, reason in (
        (SAMPLING_OPTIONS, SAMPLING_KINDS, "does not sample"),
        (("length_penalty",), LENGTH_PENALTY_KINDS, "has no length penalty"),
    ):
        if kind not in kinds and (used := [name for name in names if is_given(context, name)]):
            option = f"--{used[0].replace('_', '-')}"
            raise RegardError(
                f"{option} has no effect: --search {kind} {reason}.",
                hint=f"Leave it out, or use {' or '.join(f'--search {name}' for name in kinds)}.",
            )


def make_search(kind: SearchKind, count: int, length_penalty: float, filters: "Filters | None") -> "Search":
    """Create the search strategy.

    Args:
        kind: The strategy.
        count: Beam size, number of diverse groups, or number of samples.
        length_penalty: Used by beam and diverse beam search.
        filters: Used by the strategies that sample; None for the others.
    """
    from regard.tasks import search

    match kind:
        case SearchKind.beam | SearchKind.exact:
            return search.Beam(count, length_penalty, exact=kind is SearchKind.exact)
        case SearchKind.sample:
            return search.Sampling(count, *([] if filters is None else [filters]))
        case SearchKind.diverse:
            return search.DiverseBeam(groups=count, length_penalty=length_penalty)
        case SearchKind.stochastic:
            return search.StochasticBeam(count)
        case SearchKind.mbr:
            from regard.decode.filters import Filters  # imports torch

            return search.MinimumBayesRisk(count, *([] if filters in (None, Filters()) else [filters]))
