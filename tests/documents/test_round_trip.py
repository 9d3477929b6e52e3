import random

import pytest

from tests.documents.round_trip import MAKERS, find_difference


@pytest.mark.parametrize("suffix", MAKERS)
def test_file_written_with_its_own_text_is_unchanged(suffix: str) -> None:
    for seed in range(2):
        assert find_difference(suffix, MAKERS[suffix](random.Random(seed))) == ""
