r"""A glossary: terms of the source language and the forms that their translations may have.

One term per line, with its target forms in further columns, separated by tabs. A line without target forms keeps its
term: it is not translated.

    house	Haus	Hauses	Häuser
    Regard

A term occurs in a text as whole words; in scripts without spaces between words, anywhere. A term in lower case also
matches upper case ("House"), a term with capitals only itself ("US" is not "us"). Where terms overlap, the first one
counts, and the longest of those that begin with the same word. A target form is case-sensitive, but may begin with a
capital at the beginning of the translation.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from regard.base import limits
from regard.base.errors import RegardError
from regard.base.files import read_regular_file

# Thai, Lao, Myanmar, Khmer, kana, ideographs and Hangul: terms may begin and end anywhere.
SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[^\W{SPACELESS}]+|\S")
_INSIDE = re.compile(rf"[^\W{SPACELESS}]")


@dataclass(frozen=True)
class Term:
    """A term of a source, and the forms of which the translation must contain one."""

    source: str
    forms: tuple[str, ...]

    def is_in(self, translation: str) -> bool:
        """Return whether a translation contains one of the forms.

        >>> term = Term("house", ("Haus", "Häuser"))
        >>> term.is_in("Unsere Häuser."), term.is_in("Der Haushalt."), Term("big", ("groß",)).is_in("Groß genug!")
        (True, False, True)
        """
        text, words = _split_text(translation)
        return any(
            _join(text[start:end]) in (form, capitalize(form) if start == words[0][1] else form)
            for form, phrase in self._phrases
            for start, end in _find(words, phrase)
        )

    @cached_property
    def _phrases(self) -> "list[tuple[str, Sequence[_Word]]]":
        """The forms with their words."""
        return [(form, _split(form)) for form in map(_join, map(_normalize, self.forms))]


class Glossary:
    """Terms of the source language with their target forms; a term without forms is not translated.

    >>> glossary = Glossary({"house": ["Haus", "Häuser"], "White House": ["Weißes Haus"], "Regard": []})
    >>> [term.source for term in glossary.find_terms("Houses, a house, the White House.")]
    ['house', 'White House']
    """

    def __init__(self, terms: Mapping[str, Sequence[str]]) -> None:
        self.terms = [
            Term(_join(_normalize(source)), tuple(_join(_normalize(form)) for form in forms or [source]))
            for source, forms in terms.items()
        ]
        for term in self.terms:
            if not term.source or not term.forms or not all(term.forms):
                message = f"A term or one of its target forms is empty: {term.source!r}, {list(term.forms)}."
                raise RegardError(message, hint="Leave it out.")
        self._by_first_word: dict[str, list[tuple[Term, list[_Word]]]] = {}
        for term in self.terms:
            words = _split(term.source)
            self._by_first_word.setdefault(words[0][0].lower(), []).append((term, words))
        for entries in self._by_first_word.values():
            entries.sort(key=lambda entry: -len(entry[1]))

    @classmethod
    def load(cls, path: Path) -> "Glossary":
        """Read a file of tab-separated lines.

        Raises:
            RegardError: It cannot be read, or a line has no term.
        """
        try:
            text = read_regular_file(path, limits.DOCUMENT).decode("utf-8-sig")
        except OSError as error:
            raise RegardError(f"The glossary cannot be read: {error.strerror}.", location=str(path)) from error
        except UnicodeDecodeError as error:
            raise RegardError("The glossary is not UTF-8.", location=str(path), hint="Convert it to UTF-8.") from error
        return cls.parse(text, location=str(path))

    @classmethod
    def parse(cls, text: str, location: str = "glossary") -> "Glossary":
        r"""Read tab-separated lines; lines with the same term are joined.

        >>> [term.forms for term in Glossary.parse("house\tHaus\nRegard\nhouse\tHäuser").terms]
        [('Haus', 'Häuser'), ('Regard',)]
        """
        terms: dict[str, list[str]] = {}
        for number, line in enumerate(text.split("\n"), 1):
            source, *forms = map(str.strip, line.removesuffix("\r").split("\t"))
            forms = [form for form in forms if form]
            if not source and forms:
                raise RegardError(
                    "The line has no term.", location=f"{location}:{number}", hint="Write TERM<tab>TARGET FORM."
                )
            if source:
                known = terms.setdefault(source, [])
                known += [form for form in forms if form not in known]
        if not terms:
            raise RegardError("The glossary has no terms.", location=location, hint="Write TERM<tab>TARGET FORM.")
        return cls(terms)

    def find_terms(self, text: str) -> list[Term]:
        """Return the terms that occur in a source, each once."""
        text = _normalize(text)
        words, found, index = _split(text), dict[Term, None](), 0
        while index < len(words):
            entries = self._by_first_word.get(words[index][0].lower(), ())
            match = next((entry for entry in entries if _occurs(entry[0], entry[1], text, words, index)), None)
            if match is not None:
                found[match[0]] = None
            index += 1 if match is None else len(match[1])
        return list(found)


_Word = tuple[str, int, int]  # a word with its start and end in the text


def is_word_character(character: str) -> bool:
    """Return whether a character next to a word belongs to it.

    >>> [is_word_character(character) for character in "aß9-語"]
    [True, True, True, False, False]
    """
    return _INSIDE.match(character) is not None


def _split(text: str) -> list[_Word]:
    return [(match[0], match.start(), match.end()) for match in _WORD.finditer(text)]


@lru_cache(maxsize=16)  # several terms are looked for in one translation
def _split_text(text: str) -> tuple[str, list[_Word]]:
    """Return a normalized text and its words."""
    text = _normalize(text)
    return text, _split(text)


def _find(words: Sequence[_Word], phrase: Sequence[_Word]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of every place where the words of a phrase occur, in any case."""
    wanted, count = [word.lower() for word, _, _ in phrase], len(phrase)
    lower = [word.lower() for word, _, _ in words]
    for index in range(len(words) - count + 1):
        if lower[index : index + count] == wanted:
            yield words[index][1], words[index + count - 1][2]


def _occurs(term: Term, phrase: Sequence[_Word], text: str, words: Sequence[_Word], index: int) -> bool:
    """Return whether a term occurs at a word of the text."""
    places = list(_find(words[index : index + len(phrase)], phrase))
    found = _join(text[slice(*places[0])]) if places else ""
    return found == term.source or (term.source == term.source.lower() and found.lower() == term.source)


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _join(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


def capitalize(text: str) -> str:
    """Return a text with a capital as its first letter; the others stay as they are."""
    return text[:1].upper() + text[1:]
