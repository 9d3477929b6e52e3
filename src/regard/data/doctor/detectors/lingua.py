"""Language detection by `lingua` (extra `language`), an alternative to the learned profiles.

lingua detects 75 languages, so it also finds a corpus that is entirely in the wrong language. It is far slower than the
profiles.
"""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.data.doctor.detectors.language import LanguageResult

_MIN_CHARACTERS = 20  # characters needed to judge a text
_MAX_TEXTS = 200  # texts per side that decide whether the languages are swapped
_MIN_JUDGED = 10  # texts per side that are needed for it
_MIN_RATIO = 10  # confidence in another language over that in the expected one


class LinguaClassifier:
    """Judges languages with the pretrained models of lingua."""

    def __init__(self, languages: Sequence[str]) -> None:
        package = import_optional("lingua", "language", "Detecting languages by --lingua")
        self._languages = [_find_language(package, code) for code in languages]
        self._detector = package.LanguageDetectorBuilder.from_all_languages().build()

    def classify(self, side: int, texts: Sequence[str]) -> LanguageResult:
        """Which texts are in another language than expected, and which are in the language of the other side."""
        own_language, other_languages = (
            self._languages[side],
            [name for row, name in enumerate(self._languages) if row != side],
        )
        is_wrong, is_other_side = np.zeros(len(texts), bool), np.zeros(len(texts), bool)
        for row, text in enumerate(texts):
            if len(text) >= _MIN_CHARACTERS:
                values = self._detector.compute_language_confidence_values(text)  # the most likely first
                own_confidence = next((value.value for value in values if value.language == own_language), 0.0)
                is_wrong[row] = values[0].value > _MIN_RATIO * own_confidence
                is_other_side[row] = is_wrong[row] and values[0].language in other_languages
        return LanguageResult(is_wrong, is_other_side)


def detect_swap(languages: Sequence[str], sides: Sequence[Sequence[str]]) -> bool | None:
    """Whether most texts of both sides are in the declared language of the other side.

    Returns:
        None if lingua is not installed, does not know a language, or has too little text to judge.
    """
    try:
        package = importlib.import_module("lingua")
        declared = [_find_language(package, code) for code in languages]
    except (ImportError, RegardError):
        return None
    detector = package.LanguageDetectorBuilder.from_languages(*declared).build()
    is_other_side = []
    for side, texts in enumerate(sides):
        long_texts = [text for text in texts if len(text) >= _MIN_CHARACTERS]
        chosen_texts = long_texts[:: max(1, len(long_texts) // _MAX_TEXTS)][:_MAX_TEXTS]
        detected = [detector.detect_language_of(text) for text in chosen_texts]
        judged = [language for language in detected if language is not None]
        if len(judged) < _MIN_JUDGED:
            return None
        is_other_side.append(judged.count(declared[1 - side]) > len(judged) / 2)
    return all(is_other_side)


def _find_language(package: Any, code: str) -> Any:
    iso_code = code.replace("_", "-").split("-")[0].upper()
    iso_member = getattr(package.IsoCode639_1, iso_code, None)
    if iso_member is None:
        raise RegardError(f"lingua does not support the language '{code}'.", hint="Use a code such as en or de.")
    return package.Language.from_iso_code_639_1(iso_member)
