"""The quick way to the best words gives what the plain way gives."""

import pytest
import torch

from regard.decode.top import first, top


@pytest.mark.parametrize("words", [5, 255, 256, 640, 1000, 4097])
@pytest.mark.parametrize("count", [1, 4])
def test_top_is_topk(words: int, count: int) -> None:
    scores = torch.randn(200, words, generator=torch.Generator().manual_seed(words))
    scores[0, -1] = scores[1, -2] = scores[2, 0] = 9.0  # also in the last, short block
    scores[3] = float("-inf")
    scores[3, -1] = -5.0  # a row with one word
    values, places = top(scores, count)
    assert torch.equal(values, scores.topk(count).values)
    assert torch.equal(scores.gather(1, places), values)
    real = values > float("-inf")
    assert all(len(set(row[kept].tolist())) == int(kept.sum()) for row, kept in zip(places, real, strict=True))
    assert torch.equal(first(scores)[:, 0], scores.argmax(dim=1))


def test_where_few_words_are_possible_the_others_are_words_all_the_same() -> None:
    draw = torch.Generator().manual_seed(1)
    for words in (641, 642, 644, 648):
        scores = torch.full((200, words), float("-inf"))
        scores[:, torch.randperm(words, generator=draw)[:3]] = 1.0
        scores[:, -1] = 2.0
        values, places = top(scores, 8)
        assert int(places.max()) < words
        assert torch.equal(values, scores.topk(8).values)


@pytest.mark.parametrize("words", [8, 1000])
def test_of_equal_words_the_first_wins(words: int) -> None:
    scores = torch.zeros(2, words)
    scores[1, 3:] = 1.0
    assert first(scores).tolist() == [[0], [3]]
