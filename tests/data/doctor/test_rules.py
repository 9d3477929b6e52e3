"""Rules that need one line only: which lines they flag, and which they accept."""

import time

import pytest

from regard.base.errors import RegardError
from regard.data.doctor.profile import CorpusProfile
from regard.data.doctor.rules import character, length, pair
from regard.data.doctor.rules.rule import RULE_BITS, RULES, select_rules
from regard.data.example import Example, Location

CHECKS = CorpusProfile(
    length.LengthStatistics((500, 500), ratio=1.1, ratio_factor=2.0), None, has_pairs=True
).make_checks()
LONG_SENTENCE = "Ein Satz von etwa sechzig Zeichen, der nichts Böses will. "


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        ("empty", "A line.", ""),
        ("empty", " \t", "Eine Zeile."),
        ("copy", "This was not translated.", "This was not translated."),
        ("copy", "This was not translated.", " this was NOT translated."),
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
        ("too-long", "word " * 101, LONG_SENTENCE),
        ("ratio", LONG_SENTENCE, LONG_SENTENCE * 3),
        ("ratio", LONG_SENTENCE * 2, "Kurz."),
        ("numbers", "In 1999", "1998"),
        ("numbers", "13 people", "viele Leute"),
        ("numbers", "3 people", "4 Leute"),
        ("numbers", "1,000 people", "10.000 Leute"),
        ("links", "See www.example.org.", "Siehe dort."),
        ("links", "See https://a.org/en", "Siehe https://a.org/de"),
        ("links", "Ask me@example.org", "Fragen Sie you@example.org"),
        ("brackets", "One (two)", "Eins (zwei"),
        ("brackets", "[One]", "(Eins)"),
        ("html-entity", "Fish &amp; chips", "Fisch"),
        ("html-entity", "It&#39;s", "Es ist"),
        ("html-entity", "It&#x27;s", "Es ist"),
        ("invisible-character", "a\u200bb", "ab"),
        ("invisible-character", "ab", "\u202eab"),
        ("invisible-character", "ab", "wo\u00adrt"),
        ("long-word", "x" * 101, "x"),
    ],
)
def test_rule_reports(rule: str, source: str, target: str) -> None:
    finding = CHECKS[rule](Example(Location("a", 1), source, target))
    assert finding is not None
    assert finding.rule == rule
    assert finding.reason
    for text, spans in ((source, finding.source_spans), (target, finding.target_spans)):
        assert all(0 <= start < end <= len(text) for start, end in spans)


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        ("empty", "A", "B"),
        ("copy", "Angela Merkel", "Angela Merkel"),  # a name
        ("copy", "This was translated.", "Das wurde übersetzt."),
        ("mojibake", "He said: “Fun!”", "Er sagte: „Spaß“ und ging."),
        ("mojibake", "Ä", "Der Buchstabe „Ä“ und Österreich; NÃO, Âge…"),
        ("mojibake", "Icelandic", "Það er Ég, Ísland, Æ; „ÞJÓÐ“"),
        ("mojibake", "Polish and Czech", "żółć, příliš žluťoučký kůň"),
        ("mojibake", "Russian", "Привет, мир"),
        ("mojibake", "Romanian", "Șapte ÎNCĂ"),
        ("mojibake", "Root", "√2 ist irrational"),
        ("control-character", "tabs\tand\nlines", "sind Text"),
        ("invisible-character", "a\u00a0b", "a\tb"),
        ("ratio", "Yes.", "Ja, das ist wahr."),  # short lines vary more
        ("numbers", "1,000.50 on 25 May 2005", "1.000,50 am 25. Mai 2005"),
        ("numbers", "2 000 or 2,000", "2.000 oder 2'000"),
        ("numbers", "two people", "2 Leute"),
        ("numbers", "May 05", "5. Mai"),
        ("numbers", "in ١٩٩٩", "1999"),
        ("links", "See www.example.org.", "Siehe www.example.org!"),
        ("brackets", "a) One", "(a) Eins"),
        ("brackets", "One (two)", "Eins（zwei）"),  # noqa: RUF001 - meant
        ("html-entity", "R&D; AT&T", "A & B; &nonsense;"),
        ("long-word", "x" * 100, "x"),
    ],
)
def test_rule_accepts(rule: str, source: str, target: str) -> None:
    assert CHECKS[rule](Example(Location("a", 1), source, target)) is None


def test_the_offending_part_is_marked() -> None:
    finding = pair.check_numbers(Example(Location("a", 1), "In 1999 and 2,000", "2.000 und 1998"))
    assert finding is not None
    assert (finding.source_spans, finding.target_spans) == (((3, 7),), ((10, 14),))
    garbled = character.check_mojibake(Example(Location("a", 1), "ok", "fÃ¼r und fÃ¼r"))
    assert garbled is not None
    assert garbled.target_spans == ((1, 3), (10, 12))


@pytest.mark.parametrize(
    "text",
    [
        "9" * 1_000_000,
        "1.234" * 100_000,
        "a" * 500_000 + "@",
        "a@" * 100_000,
        "(" * 300_000,
        "&" * 300_000,
        "Ã¼" * 200_000,
    ],
    ids=["digits", "groups", "word", "signs", "brackets", "ampersands", "garbled"],
)
def test_very_long_lines_are_checked_in_linear_time(text: str) -> None:
    start = time.process_time()
    for check in CHECKS.values():
        finding = check(Example(Location("a", 1), text, "Eine 1."))
        assert finding is None or len(finding.reason) < 400
    assert time.process_time() - start < 5


def test_a_language_without_spaces_has_no_long_words() -> None:
    sides = [["这是一个没有空格的句子。" * 5] * 50, ["This is a sentence with spaces."] * 50]
    statistics = length.learn_lengths(sides)
    assert statistics.check_long_run(Example(Location("a", 1), "长" * 200, "Long.")) is None
    assert statistics.check_long_run(Example(Location("a", 1), "长", "x" * 200)) is not None


def test_outliers_do_not_move_the_learned_lengths() -> None:
    pairs = [("source text " * (4 + row % 7), "target side text " * (4 + row % 7)) for row in range(500)]
    pairs[7] = ("x" * 1_000_000, "y")
    statistics = length.learn_lengths([[source for source, _ in pairs], [target for _, target in pairs]])
    assert 1.2 < statistics.ratio < 1.5
    assert 2.0 <= statistics.ratio_factor < 3.0
    assert statistics.max_lengths[0] < 2000
    assert statistics.check_too_long(Example(Location("a", 1), *pairs[7])) is not None


def test_rules_have_titles_and_explanations() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES) <= 32
    assert all(rule.title and rule.explanation.endswith(".") for rule in RULES)
    assert set(CHECKS) <= set(RULE_BITS)


def test_severities_can_be_changed() -> None:
    changed = {rule.name: rule.severity for rule in select_rules(remove=("numbers",), keep=("copy",))}
    assert (changed["numbers"], changed["copy"], changed["empty"]) == ("remove", "notice", "remove")
    with pytest.raises(RegardError, match="no rule 'nothing'"):
        select_rules(remove=("nothing",))
    with pytest.raises(RegardError, match="both removed and kept"):
        select_rules(remove=("copy",), keep=("copy",))
