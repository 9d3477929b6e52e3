"""Groups that avoid each other's words, against the rule written out by hand."""

from collections import Counter

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.diverse import diverse_beam
from tests.decode.tables import BEGIN, END, Fixed, Table

Scored = tuple[float, tuple[int, ...]]


def begin(rows: int) -> torch.Tensor:
    return torch.full((rows, 1), BEGIN)


def by_hand(table: Table, groups: int, size: int, longest: int, strength: float, alpha: float) -> list[list[Scored]]:
    """All texts that each group finishes, without stopping early; best first."""
    opened: list[list[Scored]] = [[(0.0, ())] for _ in range(groups)]
    finished: list[list[Scored]] = [[] for _ in range(groups)]
    for place in range(1, longest + 1):
        chosen: Counter[int] = Counter()
        for group in range(groups):
            candidates = []
            for total, text in opened[group]:
                logs = table.logits(0, (BEGIN, *text)).log_softmax(dim=0).tolist()
                candidates += [(total + log, (*text, word)) for word, log in enumerate(logs)]
            candidates.sort(key=lambda one: strength * chosen[one[1][-1]] - one[0])
            over = [one for one in candidates[:size] if one[1][-1] == END or place == longest]
            finished[group] += [(total / place**alpha, text) for total, text in over]
            opened[group] = [one for one in candidates if one[1][-1] != END][:size] if place < longest else []
            chosen.update(text[-1] for _, text in (*over, *opened[group]))
    return [sorted(some, reverse=True) for some in finished]


@pytest.mark.parametrize("strength", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(("groups", "size"), [(2, 1), (3, 2), (4, 1)])
def test_groups_choose_by_the_rule(groups: int, size: int, strength: float) -> None:
    for seed in range(8):
        table = Table(5, seed, sharpness=1.0)
        settings = {"groups": groups, "size": size, "strength": strength, "alpha": 0.0, "best": 99}
        (found,) = diverse_beam(table.step, table.start([0]), begin(1), end=END, longest=[4], **settings)  # type: ignore[arg-type]
        for group, expected in zip(found, by_hand(table, groups, size, 4, strength, 0.0), strict=True):
            assert [one.tokens for one in group] == [text for _, text in expected]
            assert [one.score for one in group] == pytest.approx([score for score, _ in expected], abs=1e-5)
            for one in group:
                assert one.logs == pytest.approx(table.logs(0, one.tokens), abs=1e-5)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_without_strength_every_group_is_the_beam(alpha: float) -> None:
    for seed in range(10):
        table = Table(5, seed)
        settings = {"size": 3, "end": END, "longest": [5, 3], "alpha": alpha, "best": 2}
        plain = beam(table.step, table.start([0, 1]), begin(2), **settings)  # type: ignore[arg-type]
        found = diverse_beam(table.step, table.start([0, 1]), begin(2), groups=2, strength=0.0, **settings)  # type: ignore[arg-type]
        assert found == [[one, one] for one in plain]


def test_groups_differ() -> None:
    table = Fixed(torch.tensor([[0.0, 0.02, 0.5, 0.48], [0.25] * 4, [0.0, 0.9, 0.06, 0.04], [0.0, 0.9, 0.04, 0.06]]))
    settings = {"groups": 2, "size": 1, "end": END, "longest": [5]}
    (same,) = diverse_beam(table.step, table.start([0]), begin(1), strength=0.0, **settings)  # type: ignore[arg-type]
    assert [group[0].tokens for group in same] == [(2, END), (2, END)]
    (different,) = diverse_beam(table.step, table.start([0]), begin(1), strength=0.5, **settings)  # type: ignore[arg-type]
    assert [group[0].tokens for group in different] == [(2, END), (3, END)]


def test_groups_that_are_none_are_refused() -> None:
    table = Table(4, 1)
    for wrong in ({"groups": 0}, {"size": 0}, {"best": 0}, {"strength": -1.0}):
        settings = {"groups": 2, "size": 2} | wrong
        with pytest.raises(RegardError, match="groups of size"):
            diverse_beam(table.step, table.start([0]), begin(1), end=END, longest=[3], **settings)
