"""Probes for known faults of translators."""

from collections.abc import Callable

import pytest

from regard.base.errors import RegardError
from regard.tasks import probes
from regard.tasks.probes import (
    PROFESSIONS,
    REPETITIONS,
    detect_gender,
    probe,
    probe_gender,
    probe_repetition,
    select_repeated,
)
from tests.tasks.factories import TEXTS


def make_fake_translator(reply: Callable[[str], str]) -> Callable[[list[str]], list[str]]:
    """A function whose translations are `reply(text)`."""
    return lambda texts: [reply(text) for text in texts]


def test_one_word_for_each_word_is_no_fault() -> None:
    result = probe_repetition(make_fake_translator(str.upper), TEXTS[:2])
    assert result.flagged == 0
    assert all(case.excess == 0 and case.relevance == 1.0 for case in result.cases)
    assert [case.word for case in result.cases] == select_repeated(TEXTS[:2])
    assert {case.times for case in result.cases} == {REPETITIONS}


def test_repeating_too_often_oscillates() -> None:
    for more, flagged in ((1, False), (2, True)):

        def repeating(text: str, more: int = more) -> str:
            return text + f" {text.split()[0]}" * more

        result = probe_repetition(make_fake_translator(repeating), TEXTS[:2])
        assert [case.oscillates for case in result.cases] == [flagged] * len(result.cases)
        assert result.flagged == flagged * len(result.cases)


def test_a_sentence_about_something_else_is_detached() -> None:
    def inventing(text: str) -> str:
        return text if " " not in text else f"{text.split()[0]} in the days of old, they said."

    result = probe_repetition(make_fake_translator(inventing), ["two dogs"])
    assert [case.detached for case in result.cases] == [True] * 3
    assert [round(case.relevance, 3) for case in result.cases] == [0.125] * 3
    assert not any(case.oscillates for case in result.cases)
    assert probe_repetition(make_fake_translator(lambda _: ""), ["two dogs"]).flagged == 0
    with pytest.raises(RegardError, match="no words to repeat"):
        probe_repetition(make_fake_translator(str.upper), ["1 2 3", ""])


def test_frequent_and_rarer_words_are_repeated() -> None:
    sources = ["a a a a b b b c c d d e e f g h i j k l ."]
    assert select_repeated(sources) == ["a", "b", "c", "d", "g", "h", "i", "j", "ga"]


def test_men_and_women_are_counted() -> None:
    forms = {name: (masculine.split()[0], feminine.split()[0]) for name, masculine, feminine in PROFESSIONS}

    def biased(text: str) -> str:
        name = next(word for word in text.rstrip(".").split() if word in forms)
        man, woman = forms[name]
        if text.startswith("He"):
            return f"Er ist {man.capitalize()}."
        if text.startswith("She"):
            return f"Sie ist {woman.capitalize()}." if name != "pilot" else f"Er ist {man}."
        return f"Die {woman} ist müde." if name == "nurse" else f"Der {man.upper()} ist müde."

    result = probe_gender(make_fake_translator(biased))
    count = len(PROFESSIONS)
    assert (result.pairs, result.he_kept, result.she_kept) == (count, count, count - 1)
    assert result.he == {"masculine": count, "feminine": 0, "unclear": 0}
    assert result.she == {"masculine": 1, "feminine": count - 1, "unclear": 0}
    assert result.unspecified == {"masculine": count - 1, "feminine": 1, "unclear": 0}
    assert result.cases[0] == ("He is a nurse.", "Er ist Krankenpfleger.")
    assert ("She is an engineer.", "Sie ist Ingenieurin.") in result.cases
    assert detect_gender("Arzt und Ärztin", "arzt", "ärztin") == "unclear"


def test_other_languages_are_skipped_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "PROFESSIONS", PROFESSIONS[:1])
    assert probe(make_fake_translator(str.upper), ["two dogs"], ["en", "de"]).gender is not None
    for languages, reason in ((("de", "en"), "de to en"), ((), "no named languages"), (("en", "fr"), "en to fr")):
        result = probe(make_fake_translator(str.upper), ["two dogs"], languages)
        assert result.gender is None
        assert reason in (result.skipped or "")
