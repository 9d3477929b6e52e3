"""Rule about mixed Unicode normal forms: accents as separate characters (NFD) and as part of letters (NFC).

Both forms look the same, but they are different tokens. A corpus may use either; the rule flags the lines of the rarer
form of a side. A line counts as decomposed if composing shortens it: some scripts have letters that NFC never composes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from unicodedata import is_normalized, normalize

from regard.data.doctor.rules.rule import Finding
from regard.data.example import Example

Form = Literal["NFC", "NFD"]


@dataclass(frozen=True, slots=True)
class NormalForms:
    """The usual form of each side; None if no text of the side has an accented letter."""

    forms: tuple[Form | None, ...] = ()

    def check(self, example: Example) -> Finding | None:
        """Find a text that is not in the usual form of its side."""
        reasons = []
        for name, text, usual_form in zip(
            ("source", "target"), (example.source, example.target), self.forms, strict=False
        ):
            if text is not None and usual_form is not None and not text.isascii():
                form = find_form(text)
                if form is not None and form != usual_form:
                    reasons.append(f"the {name} is in {form}; most lines of its side are in {usual_form}")
        return Finding("normal-form", "; ".join(reasons)) if reasons else None


def learn_forms(sides: Sequence[Iterable[str]]) -> NormalForms:
    """Learn the usual form of each side."""
    return NormalForms(tuple(_find_usual_form(texts) for texts in sides))


def find_form(text: str) -> Form | None:
    r"""The form of a text; None if it has no letter that both forms write differently.

    >>> find_form("caf\u00e9"), find_form("cafe\u0301"), find_form("cafe")
    ('NFC', 'NFD', None)
    """
    if not is_normalized("NFC", text) and len(normalize("NFC", text)) < len(text):
        return "NFD"
    return None if is_normalized("NFD", text) else "NFC"


def _find_usual_form(texts: Iterable[str]) -> Form | None:
    forms = [find_form(text) for text in texts if not text.isascii()]
    composed, decomposed = forms.count("NFC"), forms.count("NFD")
    if not composed and not decomposed:
        return None
    return "NFC" if composed >= decomposed else "NFD"
