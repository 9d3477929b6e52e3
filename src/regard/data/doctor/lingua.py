"""Languages by `lingua` (extra `language`): for when the languages are known and a profile of the corpus will not do.

It knows 75 languages, so it also sees a corpus that is in the wrong language from the first line to the last. It is
slower than the profiles by far.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.data.doctor.language import Judgement

_SHORTEST = 20  # characters to judge by
_TIMES = 10  # how much likelier another language must be than the right one


class Lingua:
    """A judge of languages that was trained elsewhere."""

    def __init__(self, languages: Sequence[str]) -> None:
        package = import_optional("lingua", "language", "Detecting languages by --lingua")
        self._languages = [_known(package, code) for code in languages]
        self._detector = package.LanguageDetectorBuilder.from_all_languages().build()

    def judge(self, side: int, texts: Sequence[str]) -> Judgement:
        """Which texts are most likely in another language than their side's, and which are in the other side's."""
        own, others = self._languages[side], [name for place, name in enumerate(self._languages) if place != side]
        wrong, other = np.zeros(len(texts), bool), np.zeros(len(texts), bool)
        for place, text in enumerate(texts):
            if len(text) >= _SHORTEST:
                values = self._detector.compute_language_confidence_values(text)  # the likeliest first
                right = next((value.value for value in values if value.language == own), 0.0)
                wrong[place] = values[0].value > _TIMES * right
                other[place] = wrong[place] and values[0].language in others
        return Judgement(wrong, other)


def _known(package: Any, code: str) -> Any:
    short = code.replace("_", "-").split("-")[0].upper()
    name = getattr(package.IsoCode639_1, short, None)
    if name is None:
        raise RegardError(f"lingua knows no language '{code}'.", fix="Use a two-letter code such as en or de.")
    return package.Language.from_iso_code_639_1(name)
