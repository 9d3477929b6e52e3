"""Translate the sentences of documents (`regard.documents`) with a translator."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from regard.documents.translate import Sentence, TranslatedSentence
from regard.tasks.results import Translation
from regard.tasks.search import Beam, Search
from regard.tasks.translation.constraints import Constraints

if TYPE_CHECKING:
    from regard.tasks.translation.translator import Translator


def translate_sentences(
    translator: "Translator",
    sentences: Sequence[Sentence],
    search: Search,
    options: dict[str, Any],
    min_quality: float | None = None,
) -> list[TranslatedSentence]:
    """Translate sentences of a document.

    Args:
        translator: The translator. Without PyTorch or with a search that cannot require phrases, lost placeholders are
            inserted by position; without cross-attention, tags keep the order of the source.
        sentences: The sentences.
        search: Search strategy.
        options: Further options of `Translator.translate`.
        min_quality: The lowest quality without a warning.
    """
    texts = [sentence.text for sentence in sentences]
    constraints: Constraints = options.get("constraints") or Constraints()
    if any(sentence.required for sentence in sentences) and isinstance(search, Beam) and translator.has_torch_model:
        constraints = replace(constraints, required=[sentence.required for sentence in sentences])
    translations = translator.translate(texts, search, **options | {"constraints": constraints})
    indices = [index for index, sentence in enumerate(sentences) if sentence.should_align and translator.can_align]
    if indices:
        from regard.tasks.translation.word_alignment import with_alignment  # imports torch

        sources, found = [texts[index] for index in indices], [translations[index] for index in indices]
        aligned = with_alignment(translator, sources, found, target_language=options.get("target_language"))
        for index, translation in zip(indices, aligned, strict=True):
            translations[index] = translation
    return [
        to_sentence(sentence, result, min_quality) for sentence, result in zip(sentences, translations, strict=True)
    ]


def to_sentence(sentence: Sentence, translation: Translation, min_quality: float | None = None) -> TranslatedSentence:
    """Return a translation as the document needs it, with the reasons to check it."""
    lacking = [term for term in translation.unsatisfied_terms if term not in sentence.required]
    warnings = [f"without the term {', '.join(lacking)}"] if lacking else []
    warnings += translation.find_reasons(min_quality)
    return TranslatedSentence(translation.text, frozenset(translation.alignment or ()), tuple(warnings))
