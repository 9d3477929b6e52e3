"""Encodings of positions, their requirements, and the order of words."""

import pytest

from regard.lectures.places import compare_words, judge_places


@pytest.mark.parametrize(
    ("kind", "width", "met"),
    [
        ("index", 1, "unique steps longer"),
        ("normalized", 1, "largest"),
        ("bits", 4, "largest"),
        ("bits", 8, "unique longer largest"),
    ],
)
def test_rejected_codes_miss_a_requirement(kind: str, width: int, met: str) -> None:
    judged = judge_places(kind, width, 10000.0, 64)
    assert {name.removesuffix("_light") for name, light in judged.items() if name.endswith("_light") and light} == set(
        met.split()
    )


def test_sines_meet_all_requirements_unless_they_are_two() -> None:
    assert all(judge_places("sinusoidal", 32, 10000.0, 64)[f"{name}_light"] for name in ("unique", "steps", "longer"))
    assert not judge_places("sinusoidal", 2, 10000.0, 64)["unique_light"]


def test_a_permuted_sentence_has_the_same_vectors_without_positions() -> None:
    assert max(compare_words("dog bites man", "man bites dog", has_positions=False)) < 1e-12
    assert min(compare_words("dog bites man", "man bites dog", has_positions=True)) > 0.01
