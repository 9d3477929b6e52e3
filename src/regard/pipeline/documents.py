"""A whole document through a translator: cut into sentences, translated, and put together with its own white space."""

from dataclasses import dataclass
from typing import Any

from regard.pipeline.results import Translation
from regard.pipeline.translator import Translator
from regard.text.sentences import split_sentences


@dataclass(frozen=True)
class Document:
    """A translated document, and the sentences that it was made of."""

    text: str
    sources: tuple[str, ...]
    translations: tuple[Translation, ...]


def translate_document(translator: Translator, text: str, **options: Any) -> Document:
    """Translate a text of any length; `options` are those of `Translator.translate`."""
    parts = split_sentences(text)
    translations = translator.translate([sentence for sentence, _ in parts], **options)
    joined = "".join(translation.text + space for translation, (_, space) in zip(translations, parts, strict=True))
    return Document(joined, tuple(sentence for sentence, _ in parts), tuple(translations))
