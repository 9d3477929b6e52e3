"""Blocked argmax and topk, compared with those of torch."""

import pytest
import torch

from regard.decode.topk import argmax, topk


@pytest.mark.parametrize("vocabulary_size", [5, 255, 256, 640, 1000, 4097])
@pytest.mark.parametrize("k", [1, 4])
def test_topk_equals_torch_topk(vocabulary_size: int, k: int) -> None:
    scores = torch.randn(200, vocabulary_size, generator=torch.Generator().manual_seed(vocabulary_size))
    scores[0, -1] = scores[1, -2] = scores[2, 0] = 9.0  # also in the last, short block
    scores[3] = float("-inf")
    scores[3, -1] = -5.0  # a row with one possible token
    values, indices = topk(scores, k)
    assert torch.equal(values, scores.topk(k).values)
    assert torch.equal(scores.gather(1, indices), values)
    finite_mask = values > float("-inf")
    assert all(
        len(set(row[row_mask].tolist())) == int(row_mask.sum())
        for row, row_mask in zip(indices, finite_mask, strict=True)
    )
    assert torch.equal(argmax(scores)[:, 0], scores.argmax(dim=1))


def test_impossible_tokens_have_valid_ids() -> None:
    generator = torch.Generator().manual_seed(1)
    for vocabulary_size in (641, 642, 644, 648):
        scores = torch.full((200, vocabulary_size), float("-inf"))
        scores[:, torch.randperm(vocabulary_size, generator=generator)[:3]] = 1.0
        scores[:, -1] = 2.0
        values, indices = topk(scores, 8)
        assert int(indices.max()) < vocabulary_size
        assert torch.equal(values, scores.topk(8).values)


@pytest.mark.parametrize("vocabulary_size", [8, 1000])
def test_argmax_takes_lowest_id_of_equal_scores(vocabulary_size: int) -> None:
    scores = torch.zeros(2, vocabulary_size)
    scores[1, 3:] = 1.0
    assert argmax(scores).tolist() == [[0], [3]]
