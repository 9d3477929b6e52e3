"""Options that say how a text is looked for, and the search that they mean: what `translate` and `generate` share."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError

if TYPE_CHECKING:
    from regard.decode.filters import Filters
    from regard.decode.lengths import LengthPenalty
    from regard.pipeline.searches import Search

DRAWN = "Drawing words"  # the heading of these options in the help

TopK = Annotated[int | None, typer.Option(min=1, help="The k likeliest words only.", rich_help_panel=DRAWN)]
TopP = Annotated[
    float | None,
    typer.Option(min=0.0, max=1.0, help="The likeliest words that together reach p.", rich_help_panel=DRAWN),
]
MinP = Annotated[
    float | None,
    typer.Option(min=0.0, max=1.0, help="Words of at least this share of the likeliest.", rich_help_panel=DRAWN),
]
Typical = Annotated[
    float | None,
    typer.Option(min=0.0, max=1.0, help="The least surprising words that reach this.", rich_help_panel=DRAWN),
]
Repetition = Annotated[
    float, typer.Option(min=0.0, help="Above 1: words that were written become rarer.", rich_help_panel=DRAWN)
]
Ngram = Annotated[
    int | None, typer.Option(min=1, help="Never the same n tokens in a row twice.", rich_help_panel=DRAWN)
]
Seed = Annotated[int | None, typer.Option(help="The same seed draws the same text.", rich_help_panel=DRAWN)]
Temperature = Annotated[
    float,
    typer.Option(
        min=0.0, help="0 takes the likeliest word; 1 draws as the model says; more is wilder.", rich_help_panel=DRAWN
    ),
]


class Way(StrEnum):
    """The searches, as the command line names them."""

    beam = "beam"
    sample = "sample"
    diverse = "diverse"
    stochastic = "stochastic"
    risk = "risk"


DRAWING = (Way.sample, Way.risk)  # the others draw no words
BY_LENGTH = (Way.beam, Way.diverse)  # the others do not divide by it
FILTERS = ("temperature", "top_k", "top_p", "min_p", "typical", "repetition", "ngram")
LENGTHS = ("alpha", "lengths")


class Lengths(StrEnum):
    """The forms of `regard.decode.lengths`."""

    power = "power"
    gnmt = "gnmt"


def length_of(form: Lengths, alpha: float) -> "LengthPenalty":
    """What log p is divided by."""
    from regard.decode.lengths import gnmt

    return gnmt(alpha) if form is Lengths.gnmt else alpha


def usual(way: Way, best: int) -> int:
    """How many beginnings or draws a search has, unless it is said."""
    return {Way.sample: best, Way.risk: 32}.get(way, 5)


def refuse_unused(context: typer.Context, way: Way) -> None:
    """Options that a search would ignore are refused; a seed is not: it promises the same text again."""
    for names, ways, lacks in ((FILTERS, DRAWING, "draws no words"), (LENGTHS, BY_LENGTH, "weighs no lengths")):
        if way not in ways and (given := [name for name in names if _is_given(context, name)]):
            what = f"A search by '{way}' {lacks}: --{given[0].replace('_', '-')} means nothing to it."
            raise RegardError(what, fix=f"Leave it out, or say --search {ways[0]} or --search {ways[1]}.")


def _is_given(context: typer.Context, option: str) -> bool:
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def search_of(way: Way, count: int, alpha: "LengthPenalty", filters: "Filters") -> "Search":
    """The search: `count` is the size of a beam, the number of groups, or of texts that are drawn."""
    from regard.decode.filters import Filters
    from regard.pipeline import searches  # torch: only when it is needed

    makers: dict[Way, Any] = {
        Way.beam: lambda: searches.Beam(count, alpha),
        Way.sample: lambda: searches.Sampling(count, filters),
        Way.diverse: lambda: searches.DiverseBeam(groups=count, length_penalty=alpha),
        Way.stochastic: lambda: searches.StochasticBeam(count),
        Way.risk: lambda: (
            searches.MinimumBayesRisk(count) if filters == Filters() else searches.MinimumBayesRisk(count, filters)
        ),
    }
    found: Search = makers[way]()
    return found
