"""Required phrases and terms of a glossary: translate as usual, then search again where one is missing.

Most translations already contain their terms, or another hypothesis of the same beam does, and a fast engine finds
them. The others are translated again in PyTorch by `regard.decode.constrained_beam`, which requires only the
missing terms: each required token takes beams from the others. If the new translation lacks a term, a third search
requires all of them. Terms that are still missing are reported in `Translation.unsatisfied_terms`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from regard.base.errors import RegardError
from regard.tasks.results import EMPTY, GeneratedText, Translation
from regard.tasks.search import Beam, Search
from regard.tasks.translation.constraints import Constraints, to_term
from regard.text.glossary import Term

if TYPE_CHECKING:
    from regard.tasks.translation.translator import Translator


def translate_required(
    translator: "Translator",
    sources: Sequence[list[int]],
    search: Search,
    constraints: Constraints,
    options: dict[str, Any],
    report: Callable[[int], None] | None,
) -> list[Translation]:
    """Translate sources so that the required terms appear.

    Args:
        translator: The translator.
        sources: Encoded sources.
        search: A beam search.
        constraints: The required terms, and other constraints.
        options: Further options of `Translator.translate_sources`.
        report: Called with the number of translated texts.

    Raises:
        RegardError: The search is not a beam search.
    """
    if not isinstance(search, Beam):
        raise RegardError(f"{type(search).__name__} does not support required phrases.", hint="Use Beam.")
    required = [
        [to_term(term) for term in terms] if source else []  # an empty text has an empty translation
        for source, terms in zip(sources, constraints.required or (), strict=True)
    ]
    others = replace(constraints, required=None)
    translations: list[Translation] = [EMPTY] * len(sources)
    for indices, count in _group(required, options["n_best"], search.beam_size):
        results = translator.translate_sources(
            [sources[index] for index in indices],
            search,
            constraints=None if others == Constraints() else others.select(indices),
            report=report,
            **_select(options, indices) | {"n_best": count},
        )
        for index, result in zip(indices, results, strict=True):
            translations[index] = result if count == options["n_best"] else _choose(result, required[index])
    tried: dict[int, list[Term]] = {}
    for requires_all in (False, True):
        missing = {
            index: _find_missing(terms, result, *result.alternatives)
            for index, (result, terms) in enumerate(zip(translations, required, strict=True))
        }
        lacking = [index for index, terms in missing.items() if terms and tried.get(index) != required[index]]
        if not lacking:
            break
        tried = {index: required[index] if requires_all else missing[index] for index in lacking}
        again = translator.in_torch._translate_batches(
            [sources[index] for index in lacking],
            search,
            constraints=replace(others.select(lacking), required=list(tried.values())),
            report=None,
            **_select(options, lacking),
        )
        for index, result in zip(lacking, again, strict=True):
            translations[index] = min(
                (result, translations[index]), key=lambda found: len(_find_missing(required[index], found))
            )
    return [
        replace(result, unsatisfied_terms=tuple(term.source for term in _find_missing(terms, result)))
        for result, terms in zip(translations, required, strict=True)
    ]


def _group(required: Sequence[Sequence[Term]], n_best: int, beam_size: int) -> list[tuple[list[int], int]]:
    """Return the texts without and with terms, and the number of hypotheses that each group needs."""
    groups = [([index for index, terms in enumerate(required) if bool(terms) == has_terms]) for has_terms in (0, 1)]
    counts = (n_best, beam_size if n_best == 1 else n_best)
    return [(indices, count) for indices, count in zip(groups, counts, strict=True) if indices]


def _choose(result: Translation, terms: Sequence[Term]) -> Translation:
    """Return the best hypothesis of a beam that lacks the fewest terms, as a translation of its own."""
    if not _find_missing(terms, result):
        return replace(result, alternatives=())
    best = min((result, *result.alternatives), key=lambda found: len(_find_missing(terms, found)))
    assert isinstance(best, Translation)  # noqa: S101 - alternatives have the same type
    return replace(best, alternatives=())


def _select(options: dict[str, Any], indices: Sequence[int]) -> dict[str, Any]:
    """Return the options for the texts at `indices`."""
    seed = options["seed"]
    return options if seed is None or isinstance(seed, int) else options | {"seed": [seed[index] for index in indices]}


def _find_missing(terms: Sequence[Term], *results: GeneratedText) -> list[Term]:
    """Return the terms that at least one of the results lacks."""
    return [term for term in terms if not all(term.is_in(result.text) for result in results)]
