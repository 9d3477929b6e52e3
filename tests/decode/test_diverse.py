"""Diverse beam search, compared with a reference implementation."""

from collections import Counter

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.diverse import diverse_beam
from tests.decode.table_models import BOS, EOS, BigramModel, TableModel

ScoredText = tuple[float, tuple[int, ...]]


def make_prompt(rows: int) -> torch.Tensor:
    return torch.full((rows, 1), BOS)


def reference_diverse_beam(
    table: TableModel, groups: int, size: int, max_new_tokens: int, diversity_penalty: float, length_penalty: float
) -> list[list[ScoredText]]:
    """Return all hypotheses that each group finishes, without early stopping; best first."""
    open_texts: list[list[ScoredText]] = [[(0.0, ())] for _ in range(groups)]
    finished: list[list[ScoredText]] = [[] for _ in range(groups)]
    for length in range(1, max_new_tokens + 1):
        chosen_counts: Counter[int] = Counter()
        for group in range(groups):
            candidates = []
            for total, text in open_texts[group]:
                logprobs = table.logits(0, (BOS, *text)).log_softmax(dim=0).tolist()
                candidates += [(total + logprob, (*text, token)) for token, logprob in enumerate(logprobs)]
            candidates.sort(key=lambda candidate: diversity_penalty * chosen_counts[candidate[1][-1]] - candidate[0])
            finished_now = [
                candidate for candidate in candidates[:size] if candidate[1][-1] == EOS or length == max_new_tokens
            ]
            finished[group] += [(total / length**length_penalty, text) for total, text in finished_now]
            open_texts[group] = (
                [candidate for candidate in candidates if candidate[1][-1] != EOS][:size]
                if length < max_new_tokens
                else []
            )
            chosen_counts.update(text[-1] for _, text in (*finished_now, *open_texts[group]))
    return [sorted(texts, reverse=True) for texts in finished]


@pytest.mark.parametrize("diversity_penalty", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(("groups", "size"), [(2, 1), (3, 2), (4, 1)])
def test_groups_match_reference_implementation(groups: int, size: int, diversity_penalty: float) -> None:
    for seed in range(8):
        table = TableModel(5, seed, sharpness=1.0)
        settings = {
            "groups": groups,
            "beam_size": size,
            "diversity_penalty": diversity_penalty,
            "length_penalty": 0.0,
            "n_best": 99,
        }
        (result,) = diverse_beam(table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[4], **settings)  # type: ignore[arg-type]
        for group, expected in zip(
            result, reference_diverse_beam(table, groups, size, 4, diversity_penalty, 0.0), strict=True
        ):
            assert [hypothesis.tokens for hypothesis in group] == [text for _, text in expected]
            assert [hypothesis.score for hypothesis in group] == pytest.approx(
                [score for score, _ in expected], abs=1e-5
            )
            for hypothesis in group:
                assert hypothesis.logprobs == pytest.approx(table.logprobs(0, hypothesis.tokens), abs=1e-5)


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_zero_diversity_penalty_gives_same_beam_in_every_group(length_penalty: float) -> None:
    for seed in range(10):
        table = TableModel(5, seed)
        settings = {"beam_size": 3, "eos": EOS, "max_lengths": [5, 3], "length_penalty": length_penalty, "n_best": 2}
        beams = beam(table.step, table.start([0, 1]), make_prompt(2), **settings)  # type: ignore[arg-type]
        settings |= {"groups": 2, "diversity_penalty": 0.0}
        result = diverse_beam(table.step, table.start([0, 1]), make_prompt(2), **settings)  # type: ignore[arg-type]
        assert result == [[hypotheses, hypotheses] for hypotheses in beams]


def test_groups_differ() -> None:
    table = BigramModel(
        torch.tensor([[0.0, 0.02, 0.5, 0.48], [0.25] * 4, [0.0, 0.9, 0.06, 0.04], [0.0, 0.9, 0.04, 0.06]])
    )
    settings = {"groups": 2, "beam_size": 1, "eos": EOS, "max_lengths": [5]}
    (same,) = diverse_beam(table.step, table.start([0]), make_prompt(1), diversity_penalty=0.0, **settings)  # type: ignore[arg-type]
    assert [group[0].tokens for group in same] == [(2, EOS), (2, EOS)]
    (different,) = diverse_beam(table.step, table.start([0]), make_prompt(1), diversity_penalty=0.5, **settings)  # type: ignore[arg-type]
    assert [group[0].tokens for group in different] == [(2, EOS), (3, EOS)]


def test_invalid_diverse_beam_arguments_raise() -> None:
    table = TableModel(4, 1)
    for wrong in ({"groups": 0}, {"beam_size": 0}, {"n_best": 0}, {"diversity_penalty": -1.0}):
        settings = {"groups": 2, "beam_size": 2} | wrong
        with pytest.raises(RegardError, match="groups, beam_size and n_best must be"):
            diverse_beam(table.step, table.start([0]), make_prompt(1), eos=EOS, max_lengths=[3], **settings)
