"""Options that say how a text is looked for, and the search that they mean: what `translate` and `generate` share."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError

if TYPE_CHECKING:
    from regard.decode.filters import Filters
    from regard.decode.length_penalty import LengthPenalty
    from regard.pipeline.search import Search

SAMPLING_PANEL = "Drawing words"  # the heading of these options in the help

TopK = Annotated[int | None, typer.Option(min=1, help="The k likeliest words only.", rich_help_panel=SAMPLING_PANEL)]
TopP = Annotated[
    float | None,
    typer.Option(min=0.0, max=1.0, help="The likeliest words that together reach p.", rich_help_panel=SAMPLING_PANEL),
]
MinP = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=1.0, help="Words of at least this share of the likeliest.", rich_help_panel=SAMPLING_PANEL
    ),
]
TypicalP = Annotated[
    float | None,
    typer.Option(min=0.0, max=1.0, help="The least surprising words that reach this.", rich_help_panel=SAMPLING_PANEL),
]
RepetitionPenalty = Annotated[
    float, typer.Option(min=0.0, help="Above 1: words that were written become rarer.", rich_help_panel=SAMPLING_PANEL)
]
NoRepeatNgram = Annotated[
    int | None, typer.Option(min=1, help="Never the same n tokens in a row twice.", rich_help_panel=SAMPLING_PANEL)
]
Seed = Annotated[int | None, typer.Option(help="The same seed draws the same text.", rich_help_panel=SAMPLING_PANEL)]
Temperature = Annotated[
    float,
    typer.Option(
        min=0.0,
        help="0 takes the likeliest word; 1 draws as the model says; more is wilder.",
        rich_help_panel=SAMPLING_PANEL,
    ),
]


class SearchKind(StrEnum):
    """The search, as the command line names them."""

    beam = "beam"
    sample = "sample"
    diverse = "diverse"
    stochastic = "stochastic"
    mbr = "risk"


SAMPLING_KINDS = (SearchKind.sample, SearchKind.mbr)  # the others draw no words
LENGTH_PENALTY_KINDS = (SearchKind.beam, SearchKind.diverse)  # the others do not divide by it
SAMPLING_OPTIONS = ("temperature", "top_k", "top_p", "min_p", "typical", "repetition", "ngram")
LENGTH_OPTIONS = ("alpha", "lengths")


class LengthNormalization(StrEnum):
    """The forms of `regard.decode.length_penalty`."""

    power = "power"
    gnmt = "gnmt"


def make_length_penalty(normalization: LengthNormalization, length_penalty: float) -> "LengthPenalty":
    """What log p is divided by."""
    from regard.decode.length_penalty import gnmt

    return gnmt(length_penalty) if normalization is LengthNormalization.gnmt else length_penalty


def default_count(kind: SearchKind, n_best: int) -> int:
    """How many beginnings or draws a search has, unless it is said."""
    return {SearchKind.sample: n_best, SearchKind.mbr: 32}.get(kind, 5)


def check_unused_options(context: typer.Context, kind: SearchKind) -> None:
    """Options that a search would ignore are refused; a seed is not: it promises the same text again."""
    for names, kinds, lacks in (
        (SAMPLING_OPTIONS, SAMPLING_KINDS, "draws no words"),
        (LENGTH_OPTIONS, LENGTH_PENALTY_KINDS, "weighs no lengths"),
    ):
        if kind not in kinds and (given_options := [name for name in names if _is_given(context, name)]):
            what = f"A search by '{kind}' {lacks}: --{given_options[0].replace('_', '-')} means nothing to it."
            raise RegardError(what, fix=f"Leave it out, or say --search {kinds[0]} or --search {kinds[1]}.")


def _is_given(context: typer.Context, option: str) -> bool:
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def make_search(kind: SearchKind, count: int, length_penalty: "LengthPenalty", filters: "Filters") -> "Search":
    """The search: `count` is the size of a beam, the number of groups, or of texts that are drawn."""
    from regard.decode.filters import Filters
    from regard.pipeline import search

    factories: dict[SearchKind, Any] = {
        SearchKind.beam: lambda: search.Beam(count, length_penalty),
        SearchKind.sample: lambda: search.Sampling(count, filters),
        SearchKind.diverse: lambda: search.DiverseBeam(groups=count, length_penalty=length_penalty),
        SearchKind.stochastic: lambda: search.StochasticBeam(count),
        SearchKind.mbr: lambda: (
            search.MinimumBayesRisk(count) if filters == Filters() else search.MinimumBayesRisk(count, filters)
        ),
    }
    made: Search = factories[kind]()
    return made
