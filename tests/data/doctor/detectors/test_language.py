"""Languages that are learned from a corpus."""

import random

import numpy as np
import pytest

from regard.data.doctor.detectors import language
from regard.data.doctor.detectors.language import Profiles, _learn_table

ENGLISH = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "is",
    "that",
    "this",
    "house",
    "which",
    "with",
    "people",
    "there",
    "would",
    "they",
]


GERMAN = [
    "der",
    "die",
    "und",
    "zu",
    "ist",
    "nicht",
    "dass",
    "dies",
    "haus",
    "welche",
    "mit",
    "leute",
    "dort",
    "würde",
    "sie",
]


LATIN = ["quod", "erat", "demonstrandum", "sic", "transit", "gloria", "mundi", "quo", "usque", "tandem"]


def make_sentence(words: list[str], rng: random.Random) -> str:
    return " ".join(rng.choices(words, k=rng.randint(6, 14)))


def make_corpus(lines: int) -> tuple[list[str], list[str], random.Random]:
    rng = random.Random(5)
    return [make_sentence(ENGLISH, rng) for _ in range(lines)], [make_sentence(GERMAN, rng) for _ in range(lines)], rng


def test_languages_are_learned_in_spite_of_wrong_lines() -> None:
    source, target, rng = make_corpus(1000)
    for row in range(0, 1000, 20):  # 5 % swapped
        source[row], target[row] = target[row], source[row]
    for row in range(10, 1000, 40):  # 2.5 % left untranslated
        target[row] = make_sentence(ENGLISH, rng)
    for row in range(30, 1000, 40):  # 2.5 % Latin
        target[row] = make_sentence(LATIN, rng)
    profiles = language.learn_profiles([source, target])
    assert profiles is not None
    verdict = language.classify_rows(profiles, [source, target])
    assert np.flatnonzero(verdict.is_swapped).tolist() == list(range(0, 1000, 20))
    wrong_rows = {*range(10, 1000, 40), *range(30, 1000, 40)}
    found_rows = set(np.flatnonzero(verdict.is_wrong[1]).tolist())
    assert found_rows <= wrong_rows
    assert len(found_rows) >= 0.95 * len(wrong_rows)
    assert not verdict.is_wrong[0].any()


def test_one_column_is_judged_by_itself() -> None:
    texts, _, rng = make_corpus(1000)
    texts[123] = make_sentence(LATIN, rng)
    profiles = language.learn_profiles([texts])
    assert profiles is not None
    assert np.flatnonzero(language.classify_rows(profiles, [texts]).is_wrong[0]).tolist() == [123]


def test_names_on_both_sides_are_no_foreign_language() -> None:
    source, target, _ = make_corpus(1000)
    profiles = language.learn_profiles([source, target])
    assert profiles is not None
    names = "Xolotlan Quetzalcoatl Huitzilopochtli"
    alone = language.classify_rows(profiles, [["the people with this house and that house"], [f"{names} und {names}"]])
    few, viele = (
        "the people with this house and that house which is there",
        "die leute mit dies haus und nicht welche dort sie",
    )
    both = language.classify_rows(profiles, [[f"{few} {names} {few}"], [f"{viele} {names} {viele}"]])
    once = language.classify_rows(profiles, [[f"{few} {few}"], [f"{viele} {names} {viele}"]])
    assert once.is_wrong[1][0]
    assert alone.is_wrong[1][0]
    assert not both.is_wrong[1][0]


def test_a_line_does_not_support_its_own_profile() -> None:
    once, never = (
        Profiles((_learn_table(texts),), ())._compute_fit(0, ["wxyz"])[0][0]
        for texts in (["abc", "wxyz"], ["abc", "abcd"])
    )
    assert once < -8
    assert once == pytest.approx(never, abs=0.01)


def test_too_little_text_is_not_judged() -> None:
    source, target, _ = make_corpus(50)
    assert language.learn_profiles([source, target]) is None


def test_numbers_alone_belong_to_no_language() -> None:
    source, target, _ = make_corpus(1000)
    profiles = language.learn_profiles([source, target])
    assert profiles is not None
    assert not language.classify_rows(profiles, [["1, 2, 3, 4, 5, 6, 7"], ["(12) 55-99 / 1999"]]).is_wrong[1][0]
