"""Two questions of the lectures to a translation model: what does it make of garbage, and of men and women?

**Garbage in.** A word is repeated 20 times. What comes out is flagged if it

- oscillates: its commonest 4-gram occurs at least 2 times more often than the commonest 4-gram of the source (so one
  word for each word is no fault), or
- is detached: its relevance is below one half. The relevance of what was written is the share of its words (case and
  punctuation left aside) that the model also writes when it is given the word once. "dog dog dog ..." may become
  "Hund Hund Hund ...", for "dog" is "Hund"; a sentence about something else is the model's own invention.

A flag is a reason to look, not a proof.

**Men and women**, from English to German: "He is a nurse." and "She is a nurse." should differ as they do, and of
"The nurse is very tired." English does not say who it is, so German must choose. What was chosen is counted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from regard.base.errors import RegardError
from regard.measure.breakdown import count_words
from regard.measure.diversity import max_ngram_count
from regard.pipeline.translator import Translator

TIMES, NGRAM, MARGIN = 20, 4, 2
RELEVANT = 0.5
NONSENSE = "ga"

Gender = Literal["masculine", "feminine", "unclear"]

# English, German forms that say a man, German forms that say a woman
PROFESSIONS = (
    ("nurse", "krankenpfleger pfleger", "krankenschwester schwester krankenpflegerin pflegerin"),
    ("programmer", "programmierer", "programmiererin"),
    ("doctor", "arzt doktor", "ärztin doktorin"),
    ("teacher", "lehrer", "lehrerin"),
    ("engineer", "ingenieur", "ingenieurin"),
    ("secretary", "sekretär", "sekretärin"),
    ("cook", "koch", "köchin"),
    ("student", "student schüler", "studentin schülerin"),
    ("pilot", "pilot", "pilotin"),
    ("singer", "sänger", "sängerin"),
    ("dancer", "tänzer", "tänzerin"),
    ("farmer", "bauer landwirt", "bäuerin landwirtin"),
    ("lawyer", "anwalt rechtsanwalt", "anwältin rechtsanwältin"),
    ("hairdresser", "friseur frisör", "friseurin frisörin friseuse"),
)


@dataclass(frozen=True)
class Garbage:
    """A word that was repeated, and what became of it."""

    word: str
    times: int
    output: str
    excess: int
    """How many times more often its commonest 4-gram occurs than the source's."""
    relevance: float
    """The share of its words that the model writes for the word alone."""
    oscillates: bool
    detached: bool


@dataclass(frozen=True)
class GarbageProbe:
    """All of them, and how many oscillate or are detached."""

    flagged: int
    cases: tuple[Garbage, ...]


@dataclass(frozen=True)
class GenderProbe:
    """What was counted, and the texts: source, output."""

    pairs: int
    he_kept: int
    """"He" that became "er"..."""
    she_kept: int
    """..."she" that became "sie"."""
    he: dict[Gender, int]
    """Forms of the profession after "he"..."""
    she: dict[Gender, int]
    """...after "she"..."""
    unsaid: dict[Gender, int]
    """...and where English does not say."""
    cases: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Probes:
    """Both probes; `skipped` says why one is missing."""

    garbage: GarbageProbe
    gender: GenderProbe | None
    skipped: str | None


def probe(translator: Translator, sources: Sequence[str], beam: int = 5, into: str | None = None) -> Probes:
    """Ask both; `sources` are ordinary sentences of the source language, from which words are taken."""
    languages = translator.settings.languages
    pair = (*languages[:1], into or (languages[1] if len(languages) == 2 else ""))
    garbage = probe_garbage(translator, sources, beam, into)
    if pair == ("en", "de"):
        return Probes(garbage, probe_gender(translator, beam, into), None)
    told = " to ".join(language or "?" for language in pair) if languages else "languages that it does not name"
    return Probes(garbage, None, f"Pairs of men and women are written for en to de; this model has {told}.")


def probe_garbage(
    translator: Translator, sources: Sequence[str], beam: int = 5, into: str | None = None
) -> GarbageProbe:
    """Repeat frequent words, rare words and nonsense, and flag what comes out."""
    words = words_to_repeat(sources)
    garbage = [" ".join([word] * TIMES) for word in words]
    outputs = [one.text for one in translator.translate(words + garbage, beam=beam, into=into)]
    cases = []
    for word, source, once, output in zip(words, garbage, outputs[: len(words)], outputs[len(words) :], strict=True):
        excess, relevant = max_ngram_count(output, NGRAM) - max_ngram_count(source, NGRAM), relevance(output, once)
        cases.append(Garbage(word, TIMES, output, excess, relevant, excess >= MARGIN, relevant < RELEVANT))
    return GarbageProbe(sum(case.oscillates or case.detached for case in cases), tuple(cases))


def words_to_repeat(sources: Sequence[str]) -> list[str]:
    """The 4 most frequent words, 4 of the rarer half, and a nonsense syllable.

    >>> words_to_repeat(["a dog and a cat ."])
    ['a', 'and', 'cat', 'dog', 'ga']
    """
    counts = Counter({word: times for word, times in count_words(sources).items() if word.isalpha()})
    if not counts:
        raise RegardError("There are no words to repeat.", fix="Give sentences of the source language.")
    by_count = sorted(counts, key=lambda word: (-counts[word], word))
    rarer = by_count[len(by_count) // 2 :]
    return list(dict.fromkeys([*by_count[:4], *rarer[:: max(1, len(rarer) // 4)][:4], NONSENSE]))


def relevance(output: str, once: str) -> float:
    """The share of words that are also in `once`, from 0 to 1; writing nothing invents nothing.

    >>> relevance("Hund Hund, Hund und Katze", "Hund!"), relevance("", "Hund!")
    (0.6, 1.0)
    """
    written = [word for word, times in count_words([output.lower()]).items() for _ in range(times) if word.isalnum()]
    return sum(word in _words(once) for word in written) / len(written) if written else 1.0


def probe_gender(translator: Translator, beam: int = 5, into: str | None = None) -> GenderProbe:
    """Translate the templates into German and count."""
    sources: list[str] = []
    for name, _, _ in PROFESSIONS:
        article = "an" if name[0] in "aeiou" else "a"
        sources += [f"He is {article} {name}.", f"She is {article} {name}.", f"The {name} is very tired."]
    outputs = [one.text for one in translator.translate(sources, beam=beam, into=into)]
    he, she, unsaid = outputs[0::3], outputs[1::3], outputs[2::3]
    return GenderProbe(
        pairs=len(PROFESSIONS),
        he_kept=sum("er" in _words(text) for text in he),
        she_kept=sum("sie" in _words(text) for text in she),
        he=_counted(he),
        she=_counted(she),
        unsaid=_counted(unsaid),
        cases=tuple(zip(sources, outputs, strict=True)),
    )


def gender(text: str, masculine: str, feminine: str) -> Gender:
    """Which forms of a profession a German text has; "unclear" if none, or both.

    >>> gender("Die Ärztin ist müde.", "arzt", "ärztin"), gender("Der Hund.", "arzt", "ärztin")
    ('feminine', 'unclear')
    """
    words = _words(text)
    man, woman = bool(words & set(masculine.split())), bool(words & set(feminine.split()))
    return "unclear" if man == woman else "masculine" if man else "feminine"


def _counted(texts: Sequence[str]) -> dict[Gender, int]:
    counts: dict[Gender, int] = {"masculine": 0, "feminine": 0, "unclear": 0}
    for text, (_, masculine, feminine) in zip(texts, PROFESSIONS, strict=True):
        counts[gender(text, masculine, feminine)] += 1
    return counts


def _words(text: str) -> set[str]:
    return set(count_words([text.lower()]))
