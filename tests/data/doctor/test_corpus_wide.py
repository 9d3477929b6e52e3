"""Rules about more than one line: repeats, near repeats, leaks, languages, slips, and the numbers they rest on."""

import random

import numpy as np
import pytest

from regard.data.doctor import language
from regard.data.doctor.alignment import align
from regard.data.doctor.language import Profiles, _table
from regard.data.doctor.leakage import HeldOut, between, leaks
from regard.data.doctor.near import Sketches
from regard.data.doctor.ngrams import characters, grams
from regard.data.doctor.places import Places
from regard.data.doctor.prints import Prints, found_in, light, repeats
from regard.data.doctor.statistics import describe
from regard.data.example import Example, Location


def pairs(*texts: tuple[str, str | None]) -> list[Example]:
    return [Example(Location("a.en", row), *text) for row, text in enumerate(texts, 1)]


def prints(*texts: tuple[str, str | None], lightly: bool = True) -> Prints:
    taken = Prints(lightly=lightly)
    for example in pairs(*texts):
        taken.add(example)
    return taken


def test_repeats_name_the_first() -> None:
    rows, firsts = repeats(np.array([3, 1, 3, 2, 1, 3], np.uint64))
    assert rows.tolist() == [2, 4, 5]
    assert firsts.tolist() == [0, 1, 0]
    assert [part.tolist() for part in repeats(np.empty(0, np.uint64))] == [[], []]


def test_found_in_names_the_place() -> None:
    rows, places = found_in(np.array([5, 6, 7, 9], np.uint64), np.array([9, 6, 6], np.uint64))
    assert (rows.tolist(), places.tolist()) == ([1, 3], [1, 0])
    assert found_in(np.array([5], np.uint64), np.empty(0, np.uint64))[0].tolist() == []


def test_prints_tell_source_target_label_and_pair_apart() -> None:
    taken = prints(("a", "b"), ("b", "a"), ("a", "b "), ("A", "b"), ("a", None), lightly=False)
    assert taken.pair[0] == taken.pair[2]
    assert len(set(taken.pair.tolist())) == 4
    assert taken.source[0] == taken.source[4]
    assert taken.target[4] == 0
    label = Prints(lightly=False)
    label.add(Example(Location("a", 1), "good", label="1"))
    label.add(Example(Location("a", 2), "good", label="0"))
    assert label.pair[0] != label.pair[1]


def test_light_is_blind_to_case_spacing_and_ways_to_write_an_accent() -> None:
    assert light("Cafe\u0301  AU\u00a0LAIT ") == light("café au lait")
    assert light("café") != light("cafe")


def test_a_leak_is_named_once_by_its_strongest_rule() -> None:
    ours = prints(("One", "Eins"), ("two", "drei"), ("three", "drei"), ("four", "vier"))
    held = HeldOut.read(pairs(("one ", "EINS"), ("Two", "zwei"), ("tree", "drei"), ("five", "fünf")))
    found = {rule: (rows.tolist(), places.tolist()) for rule, rows, places in leaks(ours, held, pairs=True)}
    assert found == {"leaked-pair": ([0], [0]), "leaked-source": ([1], [1]), "leaked-target": ([2], [2])}
    counted = between("train", ours, "test", held.prints)
    assert (counted.lines, counted.sources, counted.targets, counted.pairs) == (4, 2, 2, 1)


def test_texts_without_targets_share_no_target() -> None:
    alone = prints(("one", None), ("two", None))
    assert between("train", alone, "test", alone).targets == 0
    assert between("train", alone, "test", alone).pairs == 2


def sentence(chance: random.Random, words: int) -> str:
    return " ".join("".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9))) for _ in range(words))


def test_near_duplicates_are_found_and_strangers_are_not() -> None:
    chance = random.Random(1)
    texts = [sentence(chance, 40) for _ in range(400)]
    changed = []
    for text in texts[:100]:
        words = text.split()
        words[chance.randrange(40)] = "other"
        changed.append(" ".join(words))
    sketches = Sketches()
    sketches.add(texts)
    sketches.add(changed)
    rows, earlier = sketches.near()
    found = dict(zip(rows.tolist(), earlier.tolist(), strict=True))
    right = [row for row in range(100) if found.get(400 + row) == row]
    assert len(right) >= 95
    assert set(found) <= set(range(400, 500))


def test_half_of_a_line_is_not_near() -> None:
    chance = random.Random(2)
    texts = [sentence(chance, 40) for _ in range(100)]
    sketches = Sketches()
    sketches.add(texts)
    sketches.add([f"{text[: len(text) * 3 // 4]} {sentence(chance, 10)}" for text in texts])
    assert len(sketches.near()[0]) <= 5


def test_near_duplicates_must_be_long_enough_to_be_near() -> None:
    sketches = Sketches()
    sketches.add(["Thank you, sir.", "Thank you, Sir!", ""])
    assert sketches.near()[0].tolist() == []
    assert Sketches().near()[0].tolist() == []


def test_grams_depend_on_order_and_place() -> None:
    text = characters(["abcabd", "dcba"], 5)
    hashes = grams(text.codes, 3)
    assert hashes[1] != hashes[4]  # abc, abd
    assert len(set(hashes.tolist())) == len(hashes)
    assert text.ends[0] == text.starts[1] == 8


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


def said(words: list[str], chance: random.Random) -> str:
    return " ".join(chance.choices(words, k=chance.randint(6, 14)))


def corpus(lines: int) -> tuple[list[str], list[str], random.Random]:
    chance = random.Random(5)
    return [said(ENGLISH, chance) for _ in range(lines)], [said(GERMAN, chance) for _ in range(lines)], chance


def test_languages_are_learned_in_spite_of_wrong_lines() -> None:
    source, target, chance = corpus(1000)
    for row in range(0, 1000, 20):  # 5 % swapped
        source[row], target[row] = target[row], source[row]
    for row in range(10, 1000, 40):  # 2.5 % left untranslated
        target[row] = said(ENGLISH, chance)
    for row in range(30, 1000, 40):  # 2.5 % Latin
        target[row] = said(LATIN, chance)
    profiles = language.learn([source, target])
    assert profiles is not None
    verdict = language.verdict(profiles, [source, target])
    assert np.flatnonzero(verdict.swapped).tolist() == list(range(0, 1000, 20))
    wrong = {*range(10, 1000, 40), *range(30, 1000, 40)}
    found = set(np.flatnonzero(verdict.wrong[1]).tolist())
    assert found <= wrong
    assert len(found) >= 0.95 * len(wrong)
    assert not verdict.wrong[0].any()


def test_one_column_is_judged_by_itself() -> None:
    texts, _, chance = corpus(1000)
    texts[123] = said(LATIN, chance)
    profiles = language.learn([texts])
    assert profiles is not None
    assert np.flatnonzero(language.verdict(profiles, [texts]).wrong[0]).tolist() == [123]


def test_names_on_both_sides_are_no_foreign_language() -> None:
    source, target, _ = corpus(1000)
    profiles = language.learn([source, target])
    assert profiles is not None
    names = "Xolotlan Quetzalcoatl Huitzilopochtli"
    alone = language.verdict(profiles, [["the people with this house and that house"], [f"{names} und {names}"]])
    few, viele = (
        "the people with this house and that house which is there",
        "die leute mit dies haus und nicht welche dort sie",
    )
    both = language.verdict(profiles, [[f"{few} {names} {few}"], [f"{viele} {names} {viele}"]])
    once = language.verdict(profiles, [[f"{few} {few}"], [f"{viele} {names} {viele}"]])
    assert once.wrong[1][0]
    assert alone.wrong[1][0]
    assert not both.wrong[1][0]


def test_a_line_does_not_vouch_for_itself() -> None:
    once, never = (
        Profiles((_table(texts),), ())._fit(0, ["wxyz"])[0][0] for texts in (["abc", "wxyz"], ["abc", "abcd"])
    )
    assert once < -8
    assert once == pytest.approx(never, abs=0.01)


def test_too_little_text_is_not_judged() -> None:
    source, target, _ = corpus(50)
    assert language.learn([source, target]) is None


def test_numbers_alone_belong_to_no_language() -> None:
    source, target, _ = corpus(1000)
    profiles = language.learn([source, target])
    assert profiles is not None
    assert not language.verdict(profiles, [["1, 2, 3, 4, 5, 6, 7"], ["(12) 55-99 / 1999"]]).wrong[1][0]


def lengths(rows: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    source = np.exp(chance.normal(4.5, 0.5, rows))
    target = source * 1.1 * np.exp(chance.normal(0, 0.15, rows))
    return source.astype(np.uint32), target.astype(np.uint32)


@pytest.mark.parametrize("rows", [6000, 40_000])
@pytest.mark.parametrize("by", [1, 3])
def test_a_slip_is_located(rows: int, by: int) -> None:
    source, target = lengths(rows)
    slipped = np.delete(target, range(4999, 4999 + by))
    (slip,) = align(source[: len(slipped)], slipped).slips
    assert abs(slip.first - 4999) <= 50
    assert slip.last >= len(slipped) - 50
    assert slip.shift == -by
    back = align(slipped, source[: len(slipped)]).slips[0]
    assert back.shift == by


def test_a_slip_that_mends_itself_has_an_end() -> None:
    source, target = lengths(5000)
    target[2000:2100] = np.roll(target[2000:2100], 1)
    (slip,) = align(source, target).slips
    assert abs(slip.first - 2000) <= 10
    assert abs(slip.last - 2099) <= 10
    assert slip.rows == slip.last - slip.first + 1


def test_no_slip_where_there_is_none() -> None:
    for seed in range(5):
        source, target = lengths(20_000, seed)
        target[::50] = 5  # scattered bad lines are no stretch
        target[[1000, 1011, 1022]] = 1  # nor are some that stand close
        assert align(source, target).slips == ()


def test_files_that_are_not_parallel() -> None:
    source, target = lengths(5000)
    found = align(source, np.random.default_rng(1).permutation(target))
    assert not found.telling or found.slips[0].rows > 4500
    assert np.median(found.windows) < 0.2
    same = np.full(500, 40, np.uint32)
    assert not align(same, same).telling  # lengths that never differ say nothing
    assert not align(source[:50], target[:50]).telling


def test_places_are_small_and_exact() -> None:
    wheres = [Location("a", 1), Location("a", 2), Location("b", 1), Location("a", 9)]
    places = Places()
    for where in wheres:
        places.add(where)
    assert [places[row] for row in range(len(places))] == wheres


def test_statistics_count_every_line_once() -> None:
    source, target = lengths(3000)
    target[0], source[1], target[2] = 0, 0, 60_000
    told = describe([source, target], [10, 20])
    for side, column in zip(told.sides, (source, target), strict=True):
        assert sum(side.lengths.counts) + side.lengths.beyond == 3000
        assert side.characters == int(column.sum())
        assert (side.shortest, side.longest) == (column.min(), column.max())
    assert told.ratios is not None
    assert sum(told.ratios.counts) + told.ratios.below + told.ratios.beyond == 2998
