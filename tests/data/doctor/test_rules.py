"""Rules that need one line only: which lines they flag, and which they accept."""

import time
from typing import Literal
from unicodedata import normalize

import pytest

from regard.base.errors import RegardError
from regard.data.doctor.profile import Check, CorpusProfile
from regard.data.doctor.rules import character, length, normal_form, pair, truncation
from regard.data.doctor.rules.rule import RULE_BITS, RULES, select_rules
from regard.data.example import Example, Location
from tests.data.doctor.synthetic_pairs import Pair, make_pairs

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
        ("tags", "Press <b>OK</b>.", "Drücken Sie OK."),
        ("tags", "Press OK.", 'Drücken Sie <x id="1"/>OK.'),
        ("tags", "Hello {0}, {name}!", "Hallo {0}, {}!"),
        ("tags", "%d of %s files", "%d Dateien"),
        ("tags", "%(count)s files", "%s Dateien"),
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
        ("tags", "Press <b>OK</b>.", "<B>OK</B> drücken."),
        ("tags", '<a title="Home">x</a>', '<a title="Startseite">x</a>'),
        ("tags", "{0} of {1}", "{1}: {0}"),
        ("tags", "5 < 6 and 7 > 6; 50 % of it", "50% davon"),
        ("tags", "I <3 you", "Ich liebe dich"),
        ("html-entity", "R&D; AT&T", "A & B; &nonsense;"),
        ("long-word", "x" * 100, "x"),
    ],
)
def test_rule_accepts(rule: str, source: str, target: str) -> None:
    assert CHECKS[rule](Example(Location("a", 1), source, target)) is None


def find_flagged(check: Check, pairs: list[Pair]) -> list[int]:
    return [row for row, texts in enumerate(pairs) if check(Example(Location("a", row + 1), *texts)) is not None]


def split_pairs(pairs: list[Pair]) -> list[list[str]]:
    return [list(side) for side in zip(*pairs, strict=True)]


def test_targets_cut_at_half_are_found_among_intact_ones() -> None:
    """One target in 50 is cut: at least 9 in 10 are found, and at most 1 in 200 of the others is flagged."""
    pairs = make_pairs(3000)
    cut_rows = set(range(7, 3000, 50))
    for row in cut_rows:
        pairs[row] = (pairs[row][0], pairs[row][1][: len(pairs[row][1]) // 2])
    flagged = set(find_flagged(truncation.learn_truncation(split_pairs(pairs)).check, pairs))
    assert len(flagged & cut_rows) >= 0.9 * len(cut_rows)
    assert len(flagged - cut_rows) <= 0.005 * len(pairs)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("unit", ["characters", "words"])
def test_a_maximum_length_is_found_on_either_side(side: int, unit: str) -> None:
    pairs = make_pairs(2000)
    limit = {"characters": 70, "words": 15}[unit]
    for row, texts in enumerate(pairs):
        text = texts[side][:limit] if unit == "characters" else " ".join(texts[side].split()[:limit])
        pairs[row] = (text, texts[1]) if side == 0 else (texts[0], text)
    statistics = truncation.learn_truncation(split_pairs(pairs))
    assert (unit, limit) in statistics.sides[side].limits
    assert statistics.sides[1 - side].limits == ()
    flagged = find_flagged(statistics.check, pairs)
    cut_count = sum(not truncation.ends_sentence(texts[side]) for texts in pairs)
    assert 0.7 * cut_count < len(flagged) <= cut_count


def test_intact_corpora_are_not_truncated() -> None:
    pairs = make_pairs(3000)
    without_final = [(source.rstrip(".!?"), target.rstrip(".!?")) for source, target in pairs]
    titles = [(source, " ".join(target.split()[-3:]).rstrip(".!?")) for source, target in pairs]  # summaries
    for corpus in (pairs, without_final, titles):
        assert len(find_flagged(truncation.learn_truncation(split_pairs(corpus)).check, corpus)) <= 0.005 * len(corpus)


@pytest.mark.parametrize("usual", ["NFC", "NFD"])
def test_lines_of_the_rarer_normal_form_are_found(usual: Literal["NFC", "NFD"]) -> None:
    """One line in 20 is in the other form; lines without accents have no form."""
    rare: Literal["NFC", "NFD"] = "NFD" if usual == "NFC" else "NFC"
    pairs = [(source, normalize(usual, target)) for source, target in make_pairs(1000)]
    rows = [row for row in range(3, 1000, 20) if not pairs[row][1].isascii()]
    for row in rows:
        pairs[row] = (pairs[row][0], normalize(rare, pairs[row][1]))
    assert find_flagged(normal_form.learn_forms(split_pairs(pairs)).check, pairs) == rows


def test_letters_without_a_composed_form_are_no_mixture() -> None:
    """NFC keeps these letters of Devanagari and Hebrew in two characters; the Angstrom sign becomes a letter."""
    texts = ["क़ ख़", "שׁ", "10 Å", "plain", "日本語"] * 20
    assert find_flagged(normal_form.learn_forms([texts]).check, [(text, "") for text in texts]) == []


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
