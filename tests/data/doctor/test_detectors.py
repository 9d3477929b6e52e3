"""Detectors: duplicates, near duplicates, leaks, languages, misalignment, and the statistics behind them."""

import random

import numpy as np
import pytest

from regard.data.doctor.detectors import language
from regard.data.doctor.detectors.language import Profiles, _learn_table
from regard.data.doctor.detectors.leakage import HeldOutFingerprints, count_leaks, find_leaks
from regard.data.doctor.detectors.near_duplicates import MinHashes
from regard.data.doctor.detectors.ngrams import hash_ngrams, to_code_points
from regard.data.doctor.detectors.sentence_alignment import align
from regard.data.doctor.fingerprints import Fingerprints, find_held_out, find_repeats, fold
from regard.data.doctor.locations import Locations
from regard.data.doctor.statistics import describe
from regard.data.example import Example, Location


def make_examples(*texts: tuple[str, str | None]) -> list[Example]:
    return [Example(Location("a.en", row), *text) for row, text in enumerate(texts, 1)]


def make_fingerprints(*texts: tuple[str, str | None], should_fold: bool = True) -> Fingerprints:
    fingerprints = Fingerprints(should_fold=should_fold)
    for example in make_examples(*texts):
        fingerprints.add(example)
    return fingerprints


def test_repeats_name_the_first() -> None:
    rows, first_rows = find_repeats(np.array([3, 1, 3, 2, 1, 3], np.uint64))
    assert rows.tolist() == [2, 4, 5]
    assert first_rows.tolist() == [0, 1, 0]
    assert [part.tolist() for part in find_repeats(np.empty(0, np.uint64))] == [[], []]


def test_find_held_out_names_the_first_row() -> None:
    rows, held_out_rows = find_held_out(np.array([5, 6, 7, 9], np.uint64), np.array([9, 6, 6], np.uint64))
    assert (rows.tolist(), held_out_rows.tolist()) == ([1, 3], [1, 0])
    assert find_held_out(np.array([5], np.uint64), np.empty(0, np.uint64))[0].tolist() == []


def test_fingerprints_tell_source_target_label_and_pair_apart() -> None:
    fingerprints = make_fingerprints(("a", "b"), ("b", "a"), ("a", "b "), ("A", "b"), ("a", None), should_fold=False)
    assert fingerprints.pair[0] == fingerprints.pair[2]
    assert len(set(fingerprints.pair.tolist())) == 4
    assert fingerprints.source[0] == fingerprints.source[4]
    assert fingerprints.target[4] == 0
    label = Fingerprints(should_fold=False)
    label.add(Example(Location("a", 1), "good", label="1"))
    label.add(Example(Location("a", 2), "good", label="0"))
    assert label.pair[0] != label.pair[1]


def test_fold_ignores_case_spacing_and_accent_encoding() -> None:
    assert fold("Cafe\u0301  AU\u00a0LAIT ") == fold("café au lait")
    assert fold("café") != fold("cafe")


def test_a_leak_is_flagged_once_by_its_strongest_rule() -> None:
    fingerprints = make_fingerprints(("One", "Eins"), ("two", "drei"), ("three", "drei"), ("four", "vier"))
    held_out = HeldOutFingerprints.read(
        make_examples(("one ", "EINS"), ("Two", "zwei"), ("tree", "drei"), ("five", "fünf"))
    )
    rows_by_rule = {
        rule: (rows.tolist(), held_out_rows.tolist())
        for rule, rows, held_out_rows in find_leaks(fingerprints, held_out, has_pairs=True)
    }
    assert rows_by_rule == {"leaked-pair": ([0], [0]), "leaked-source": ([1], [1]), "leaked-target": ([2], [2])}
    leak = count_leaks("train", fingerprints, "test", held_out.fingerprints)
    assert (leak.lines, leak.sources, leak.targets, leak.pairs) == (4, 2, 2, 1)


def test_texts_without_targets_share_no_target() -> None:
    fingerprints = make_fingerprints(("one", None), ("two", None))
    assert count_leaks("train", fingerprints, "test", fingerprints).targets == 0
    assert count_leaks("train", fingerprints, "test", fingerprints).pairs == 2


def make_random_sentence(rng: random.Random, words: int) -> str:
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(words))


def test_near_duplicates_are_found_and_unrelated_texts_are_not() -> None:
    rng = random.Random(1)
    texts = [make_random_sentence(rng, 40) for _ in range(400)]
    changed = []
    for text in texts[:100]:
        words = text.split()
        words[rng.randrange(40)] = "other"
        changed.append(" ".join(words))
    min_hashes = MinHashes()
    min_hashes.add(texts)
    min_hashes.add(changed)
    rows, earlier = min_hashes.find_near_duplicates()
    earlier_row = dict(zip(rows.tolist(), earlier.tolist(), strict=True))
    correct = [row for row in range(100) if earlier_row.get(400 + row) == row]
    assert len(correct) >= 95
    assert set(earlier_row) <= set(range(400, 500))


def test_lines_that_share_three_quarters_are_not_near_duplicates() -> None:
    rng = random.Random(2)
    texts = [make_random_sentence(rng, 40) for _ in range(100)]
    min_hashes = MinHashes()
    min_hashes.add(texts)
    min_hashes.add([f"{text[: len(text) * 3 // 4]} {make_random_sentence(rng, 10)}" for text in texts])
    assert len(min_hashes.find_near_duplicates()[0]) <= 5


def test_near_duplicates_must_be_long_enough_to_be_near() -> None:
    min_hashes = MinHashes()
    min_hashes.add(["Thank you, sir.", "Thank you, Sir!", ""])
    assert min_hashes.find_near_duplicates()[0].tolist() == []
    assert MinHashes().find_near_duplicates()[0].tolist() == []


def test_ngram_hashes_depend_on_order_and_position() -> None:
    text = to_code_points(["abcabd", "dcba"], 5)
    hashes = hash_ngrams(text.codes, 3)
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
    verdict = language.judge_rows(profiles, [source, target])
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
    assert np.flatnonzero(language.judge_rows(profiles, [texts]).is_wrong[0]).tolist() == [123]


def test_names_on_both_sides_are_no_foreign_language() -> None:
    source, target, _ = make_corpus(1000)
    profiles = language.learn_profiles([source, target])
    assert profiles is not None
    names = "Xolotlan Quetzalcoatl Huitzilopochtli"
    alone = language.judge_rows(profiles, [["the people with this house and that house"], [f"{names} und {names}"]])
    few, viele = (
        "the people with this house and that house which is there",
        "die leute mit dies haus und nicht welche dort sie",
    )
    both = language.judge_rows(profiles, [[f"{few} {names} {few}"], [f"{viele} {names} {viele}"]])
    once = language.judge_rows(profiles, [[f"{few} {few}"], [f"{viele} {names} {viele}"]])
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
    assert not language.judge_rows(profiles, [["1, 2, 3, 4, 5, 6, 7"], ["(12) 55-99 / 1999"]]).is_wrong[1][0]


def make_lengths(rows: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    source = np.exp(rng.normal(4.5, 0.5, rows))
    target = source * 1.1 * np.exp(rng.normal(0, 0.15, rows))
    return source.astype(np.uint32), target.astype(np.uint32)


@pytest.mark.parametrize("rows", [6000, 40_000])
@pytest.mark.parametrize("by", [1, 3])
def test_a_shift_is_located(rows: int, by: int) -> None:
    source, target = make_lengths(rows)
    shifted = np.delete(target, range(4999, 4999 + by))
    (stretch,) = align(source[: len(shifted)], shifted).misaligned
    assert abs(stretch.first_row - 4999) <= 50
    assert stretch.last_row >= len(shifted) - 50
    assert stretch.shift == -by
    back = align(shifted, source[: len(shifted)]).misaligned[0]
    assert back.shift == by


def test_a_shift_that_recovers_has_an_end() -> None:
    source, target = make_lengths(5000)
    target[2000:2100] = np.roll(target[2000:2100], 1)
    (stretch,) = align(source, target).misaligned
    assert abs(stretch.first_row - 2000) <= 10
    assert abs(stretch.last_row - 2099) <= 10
    assert stretch.row_count == stretch.last_row - stretch.first_row + 1


def test_aligned_corpora_have_no_misaligned_stretch() -> None:
    for seed in range(5):
        source, target = make_lengths(20_000, seed)
        target[::50] = 5  # scattered bad lines are no stretch
        target[[1000, 1011, 1022]] = 1  # nor are a few nearby ones
        assert align(source, target).misaligned == ()


def test_files_that_are_not_parallel() -> None:
    source, target = make_lengths(5000)
    alignment = align(source, np.random.default_rng(1).permutation(target))
    assert not alignment.is_informative or alignment.misaligned[0].row_count > 4500
    assert np.median(alignment.correlations) < 0.2
    constant = np.full(500, 40, np.uint32)
    assert not align(constant, constant).is_informative
    assert not align(source[:50], target[:50]).is_informative


def test_locations_are_small_and_exact() -> None:
    expected = [Location("a", 1), Location("a", 2), Location("b", 1), Location("a", 9)]
    locations = Locations()
    for where in expected:
        locations.add(where)
    assert [locations[row] for row in range(len(locations))] == expected


def test_statistics_count_every_line_once() -> None:
    source, target = make_lengths(3000)
    target[0], source[1], target[2] = 0, 0, 60_000
    statistics = describe([source, target], [10, 20])
    for side, column in zip(statistics.sides, (source, target), strict=True):
        assert sum(side.lengths.counts) + side.lengths.beyond == 3000
        assert side.characters == int(column.sum())
        assert (side.min_length, side.max_length) == (column.min(), column.max())
    assert statistics.ratios is not None
    assert sum(statistics.ratios.counts) + statistics.ratios.below + statistics.ratios.beyond == 2998
