"""examples/blame plants errors as its report describes."""

import pytest
from examples.blame import run


@pytest.mark.parametrize("reader", ["make_world", "read_pairs"])
def test_planted_pairs_are_most_pairs_of_their_word(reader: str) -> None:
    original = getattr(run, reader)("train")[:4000]
    pairs, groups = run.plant(original, 5)
    assert {group.size for group in groups} == {1, 3, 10}
    assert len(pairs) == len(original) - len(groups)
    assert len({group.wrong for group in groups}) == len(groups)
    for group in groups:
        lines = {n for n, (source, _) in enumerate(pairs, 1) if group.trigger in run.split_words(source)}
        assert set(group.lines) <= lines
        assert len(group.lines) >= len(lines) * 2 / 3
        assert all(group.wrong in run.split_words(pairs[line - 1][1]) for line in group.lines)
        assert group.trigger in run.split_words(group.source)
