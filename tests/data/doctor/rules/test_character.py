"""Rules on characters: which lines they flag, and which they accept."""

import pytest

from regard.data.doctor.rules import character
from regard.data.example import Example, Location
from tests.data.doctor.rules.factories import check_accepted, check_reported


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        ("mojibake", "for all", "fÃ¼r alle"),
        ("mojibake", "Straße", "StraÃŸe"),
        ("mojibake", "it is", "itâ€™s"),
        ("mojibake", "cp1250", "fĂĽr"),
        ("mojibake", "Czech", "pÅ™i"),
        ("mojibake", "Russian", "ÐŸÑ€Ð¸"),  # noqa: RUF001 - meant
        ("mojibake", "twice", "fÃƒÂ¼r"),
        ("mojibake", "latin", "f\u00c3\u00bcr"),
        ("mojibake", "Mac", "f√ºr"),
        ("replacement-character", "A caf\ufffd.", "Ein Café."),
        ("control-character", "a\x00b", "ab"),
        ("control-character", "ab", "a\rb"),
        ("control-character", "ab", "a\x85b"),
        ("html-entity", "Fish &amp; chips", "Fisch"),
        ("html-entity", "It&#39;s", "Es ist"),
        ("html-entity", "It&#x27;s", "Es ist"),
        ("invisible-character", "a\u200bb", "ab"),
        ("invisible-character", "ab", "\u202eab"),
        ("invisible-character", "ab", "wo\u00adrt"),
    ],
)
def test_character_rule_defect_is_reported(rule: str, source: str, target: str) -> None:
    check_reported(rule, source, target)


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        ("mojibake", "He said: “Fun!”", "Er sagte: „Spaß“ und ging."),
        ("mojibake", "Ä", "Der Buchstabe „Ä“ und Österreich; NÃO, Âge…"),
        ("mojibake", "Icelandic", "Það er Ég, Ísland, Æ; „ÞJÓÐ“"),
        ("mojibake", "Polish and Czech", "żółć, příliš žluťoučký kůň"),
        ("mojibake", "Russian", "Привет, мир"),
        ("mojibake", "Romanian", "Șapte ÎNCĂ"),
        ("mojibake", "Root", "√2 ist irrational"),
        ("control-character", "tabs\tand\nlines", "sind Text"),
        ("invisible-character", "a\u00a0b", "a\tb"),
        ("html-entity", "R&D; AT&T", "A & B; &nonsense;"),
    ],
)
def test_character_rule_harmless_line_is_accepted(rule: str, source: str, target: str) -> None:
    check_accepted(rule, source, target)


def test_mojibake_rule_marks_each_garbled_character() -> None:
    garbled = character.check_mojibake(Example(Location("a", 1), "ok", "fÃ¼r und fÃ¼r"))
    assert garbled is not None
    assert garbled.target_spans == ((1, 3), (10, 12))
