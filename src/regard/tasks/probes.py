"""Robustness probes for a translation model: repetitive input, and gender-swapped pairs.

**Repetition.** The source is one word, repeated 20 times. The probe flags an output that

- oscillates: its most frequent 4-gram occurs at least 2 times more often than the most frequent 4-gram of the source
  (so one word per source word is correct), or
- is detached from the source: its relevance is below one half. The relevance is the fraction of its words (ignoring
  case and punctuation) that also occur in the translation of the single word. "dog dog dog ..." may become
  "Hund Hund Hund ...", because "dog" becomes "Hund"; a sentence about something else is a hallucination.

A flag is a reason to inspect the output, not proof of an error.

**Gender**, English to German: the translations of "He is a nurse." and "She is a nurse." should keep the pronoun and
the gender of the profession. "The nurse is very tired." does not specify the gender in English, but German must choose;
the probe counts the choices.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from regard.base.errors import RegardError
from regard.measure.breakdown import count_words
from regard.measure.diversity import max_ngram_count

REPETITIONS, NGRAM, MIN_EXCESS = 20, 4, 2
MIN_RELEVANCE = 0.5
NONSENSE = "ga"

Translate = Callable[[list[str]], list[str]]
Gender = Literal["masculine", "feminine", "unclear"]

# English, German masculine forms, German feminine forms
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
class RepetitionCase:
    """A repeated word and its translation."""

    word: str
    times: int
    output: str
    excess: int
    """Count of the output's most frequent 4-gram minus the source's."""
    relevance: float
    """Fraction of the output's words that also occur in the translation of the single word."""
    oscillates: bool
    detached: bool


@dataclass(frozen=True)
class RepetitionProbe:
    """All cases, and the number that oscillate or are detached."""

    flagged: int
    cases: tuple[RepetitionCase, ...]


@dataclass(frozen=True)
class GenderProbe:
    """Counts over all professions, and the cases (source, output)."""

    pairs: int
    he_kept: int
    """Number of translations that keep "he" as "er"."""
    she_kept: int
    """Number of translations that keep "she" as "sie"."""
    he: dict[Gender, int]
    """Gender of the profession after "he"."""
    she: dict[Gender, int]
    """Gender of the profession after "she"."""
    unspecified: dict[Gender, int]
    """Gender of the profession where English does not specify it."""
    cases: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Probes:
    """Both probes; `skipped` is the reason if the gender probe was skipped."""

    repetition: RepetitionProbe
    gender: GenderProbe | None
    skipped: str | None


def probe(translate: Translate, sources: Sequence[str], languages: Sequence[str], target: str | None = None) -> Probes:
    """Run both probes.

    Args:
        translate: Translates a list of texts.
        sources: Sentences in the source language, from which the repeated words are taken.
        languages: The languages of the model.
        target: Language to translate into (multilingual models).
    """
    pair = (*languages[:1], target or (languages[1] if len(languages) == 2 else ""))
    repetition = probe_repetition(translate, sources)
    if pair == ("en", "de"):
        return Probes(repetition, probe_gender(translate), None)
    direction = " to ".join(language or "?" for language in pair) if languages else "no named languages"
    return Probes(repetition, None, f"The gender probe supports only en to de; this model has {direction}.")


def probe_repetition(translate: Translate, sources: Sequence[str]) -> RepetitionProbe:
    """Translate repeated frequent words, rare words and a nonsense syllable, and flag suspicious outputs."""
    words = select_repeated(sources)
    repeated = [" ".join([word] * REPETITIONS) for word in words]
    outputs = translate(words + repeated)
    single_outputs, repeated_outputs = outputs[: len(words)], outputs[len(words) :]
    cases = []
    for word, source, single, output in zip(words, repeated, single_outputs, repeated_outputs, strict=True):
        excess = max_ngram_count(output, NGRAM) - max_ngram_count(source, NGRAM)
        share = relevance(output, single)
        flags = (excess >= MIN_EXCESS, share < MIN_RELEVANCE)
        cases.append(RepetitionCase(word, REPETITIONS, output, excess, share, *flags))
    return RepetitionProbe(sum(case.oscillates or case.detached for case in cases), tuple(cases))


def select_repeated(sources: Sequence[str]) -> list[str]:
    """Return the 4 most frequent words, 4 words of the rarer half, and a nonsense syllable.

    >>> select_repeated(["a dog and a cat ."])
    ['a', 'and', 'cat', 'dog', 'ga']
    """
    counts = Counter({word: times for word, times in count_words(sources).items() if word.isalpha()})
    if not counts:
        raise RegardError("There are no words to repeat.", hint="Give sentences of the source language.")
    by_count = sorted(counts, key=lambda word: (-counts[word], word))
    rarer = by_count[len(by_count) // 2 :]
    return list(dict.fromkeys([*by_count[:4], *rarer[:: max(1, len(rarer) // 4)][:4], NONSENSE]))


def relevance(output: str, single_output: str) -> float:
    """Return the fraction of words that also occur in `single_output`; 1 for an empty output.

    >>> relevance("Hund Hund, Hund und Katze", "Hund!"), relevance("", "Hund!")
    (0.6, 1.0)
    """
    words = [word for word, times in count_words([output.lower()]).items() for _ in range(times) if word.isalnum()]
    return sum(word in _distinct(single_output) for word in words) / len(words) if words else 1.0


def probe_gender(translate: Translate) -> GenderProbe:
    """Translate the templates into German and count the genders."""
    sources: list[str] = []
    for name, _, _ in PROFESSIONS:
        article = "an" if name[0] in "aeiou" else "a"
        sources += [f"He is {article} {name}.", f"She is {article} {name}.", f"The {name} is very tired."]
    outputs = translate(sources)
    he, she, unspecified = outputs[0::3], outputs[1::3], outputs[2::3]
    return GenderProbe(
        pairs=len(PROFESSIONS),
        he_kept=sum("er" in _distinct(text) for text in he),
        she_kept=sum("sie" in _distinct(text) for text in she),
        he=_count_genders(he),
        she=_count_genders(she),
        unspecified=_count_genders(unspecified),
        cases=tuple(zip(sources, outputs, strict=True)),
    )


def detect_gender(text: str, masculine: str, feminine: str) -> Gender:
    """Return the gender of a profession in a German text; "unclear" if neither or both forms occur.

    >>> detect_gender("Die Ärztin ist müde.", "arzt", "ärztin"), detect_gender("Der Hund.", "arzt", "ärztin")
    ('feminine', 'unclear')
    """
    words = _distinct(text)
    has_masculine, has_feminine = bool(words & set(masculine.split())), bool(words & set(feminine.split()))
    return "unclear" if has_masculine == has_feminine else "masculine" if has_masculine else "feminine"


def _count_genders(texts: Sequence[str]) -> dict[Gender, int]:
    counts: dict[Gender, int] = {"masculine": 0, "feminine": 0, "unclear": 0}
    for text, (_, masculine, feminine) in zip(texts, PROFESSIONS, strict=True):
        counts[detect_gender(text, masculine, feminine)] += 1
    return counts


def _distinct(text: str) -> set[str]:
    return set(count_words([text.lower()]))
