"""Empty, cut off and repetitive translations."""

import pytest

from regard.tasks.results import EMPTY, Translation
from regard.tasks.translation.defects import EMPTY_WARNING, count_repeats, find_defects


def make_translation(*tokens: int, text: str = "x", ended: bool = True) -> Translation:
    return Translation(text, -1.0, tokens, (-0.1,) * len(tokens), ended)


def test_usual_translation_has_no_defect() -> None:
    assert find_defects([5, 6, 7], make_translation(8, 9, 9, 2)) == ()


def test_empty_translation_is_reported_unless_the_source_is_empty() -> None:
    assert find_defects([5, 2], make_translation(2, text=" ")) == (EMPTY_WARNING,)
    assert find_defects([], EMPTY) == ()


def test_translation_that_did_not_end_is_reported() -> None:
    assert find_defects([5, 2], make_translation(8, 9, ended=False)) == ("cut off after 2 tokens",)


@pytest.mark.parametrize("period", [[8], [8, 9], [8, 9, 10, 11, 12]])
def test_loop_is_reported_unless_the_source_repeats_as_often(period: list[int]) -> None:
    looping = make_translation(3, *period * 6, 4)
    assert find_defects([5, 6, 7], looping) == ("the same words 6 times in a row",)
    assert find_defects([5] * 6, looping) == ()


@pytest.mark.parametrize("tokens", [[], [1], [1, 1], [1, 2, 1, 2, 1], [1, 1, 1, 2, 3, 2, 3, 2, 3, 2, 3], [7] * 30])
def test_count_repeats_equals_a_search_over_all_substrings_from_four_on(tokens: list[int]) -> None:
    most = 1 if tokens else 0
    for start in range(len(tokens)):
        for period in range(1, 13):
            count = 1
            while tokens[start : start + period] == tokens[start + count * period : start + (count + 1) * period] != []:
                count += 1
            most = max(most, count)
    assert count_repeats(tokens) == most or (most < 4 and count_repeats(tokens) < 4)
