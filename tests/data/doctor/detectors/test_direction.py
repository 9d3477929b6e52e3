"""Reversed pairs in a corpus of two languages."""

import random
from collections.abc import Sequence

import pytest

from regard.data.doctor.detectors.direction import find_reversed
from tests.data.doctor.factories import PAIRS
from tests.data.doctor.synthetic_pairs import Pair


def shuffle_sides(pairs: Sequence[Pair]) -> list[Pair]:
    rng = random.Random(4)
    return [(target, source) if rng.random() < 0.5 else (source, target) for source, target in pairs]


def test_mixed_direction_is_not_claimed_for_pairs_of_one_language() -> None:
    rng, sources = random.Random(6), [source for source, _ in PAIRS]
    typos = [text[:at] + rng.choice("aeiou") + text[at + 1 :] for text in sources for at in [rng.randrange(len(text))]]
    paraphrases = [" ".join(rng.sample(words, len(words))[1:]) for words in map(str.split, sources)]
    for others in ([*sources[1:], sources[0]], typos, paraphrases, [text.upper() for text in sources]):
        for pairs in (list(zip(sources, others, strict=True)), shuffle_sides(list(zip(sources, others, strict=True)))):
            assert find_reversed(*zip(*pairs, strict=True)) is None


@pytest.mark.parametrize("count", [300, 1200])
def test_reversed_pairs_of_two_languages_are_found_by_row(count: int) -> None:
    rows = set(random.Random(7).sample(range(count), count * 2 // 5))
    pairs = [(target, source) if n in rows else (source, target) for n, (source, target) in enumerate(PAIRS[:count])]
    result = find_reversed(*zip(*pairs, strict=True))
    assert result is not None
    assert set(result[0].tolist()) <= rows
    assert result[1] == pytest.approx(0.4, abs=0.05)
    clean = find_reversed(*zip(*PAIRS[:count], strict=True))
    assert clean is not None
    assert len(clean[0]) == 0
    assert find_reversed(*zip(*pairs[:99], strict=True)) is None
