"""Required phrases and terms of a glossary: translate as usual, then search again where one is missing.

Most translations already contain their terms, and a fast engine finds them. The others are translated again in PyTorch
by `regard.decode.constrained_beam`. A term that is still missing is reported in `Translation.unsatisfied_terms`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from regard.base.errors import RegardError
from regard.tasks.results import Translation
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
    translations = translator.translate_sources(
        sources, search, constraints=None if others == Constraints() else others, report=report, **options
    )
    lacking = [
        index
        for index, (result, terms) in enumerate(zip(translations, required, strict=True))
        if any(_find_missing(text.text, terms) for text in (result, *result.alternatives))
    ]
    if lacking:
        again = translator.in_torch._translate_batches(
            [sources[index] for index in lacking],
            search,
            constraints=constraints.select(lacking),
            report=None,
            **options,
        )
        for index, result in zip(lacking, again, strict=True):
            if len(_find_missing(result.text, required[index])) <= len(
                _find_missing(translations[index].text, required[index])
            ):
                translations[index] = result
    return [
        replace(result, unsatisfied_terms=tuple(term.source for term in _find_missing(result.text, terms)))
        for result, terms in zip(translations, required, strict=True)
    ]


def _find_missing(text: str, terms: Sequence[Term]) -> list[Term]:
    return [term for term in terms if not term.is_in(text)]
