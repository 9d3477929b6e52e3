"""The best words with their log-probabilities, by the quick way and by the plain way."""

import pytest
import torch
from torch import Tensor

from regard.decode import top
from regard.decode.top import best

ROWS, WORDS = 40, 1003  # many enough for the quick way


def plain(logits: Tensor, count: int, never: Tensor | None) -> tuple[Tensor, Tensor]:
    logs = logits.double().log_softmax(dim=-1)
    if never is not None:
        logs[:, never] = -torch.inf
    values, words = logs.topk(count, dim=1)
    return values, words


@pytest.mark.parametrize("count", [1, 8])
@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("shift", [0.0, 500.0, -500.0])
@pytest.mark.parametrize("banned", [False, True])
def test_log_probabilities_are_those_of_a_softmax(count: int, scale: float, shift: float, banned: bool) -> None:
    logits = torch.randn(ROWS, WORDS, generator=torch.Generator().manual_seed(0)) * scale + shift
    never = torch.tensor([0, 5, WORDS - 1]) if banned else None
    if banned:
        logits[3, 5] += 200.0  # the likeliest word by far, and not allowed: the others keep their small share
    assert logits.numel() >= top.MANY
    wanted, words = plain(logits, count, never)
    found, chosen = best(logits.clone(), count, never)
    assert torch.equal(chosen, words)
    torch.testing.assert_close(found.double(), wanted, atol=2e-4 if shift else 2e-5, rtol=1e-6)


def test_rows_do_not_change_what_is_found() -> None:
    logits = torch.randn(ROWS, WORDS, generator=torch.Generator().manual_seed(1)) * 3
    together, words = best(logits.clone(), 4)
    for row in range(ROWS):
        alone, word = best(logits[row : row + 1].clone(), 4)
        assert torch.equal(word[0], words[row])
        torch.testing.assert_close(alone[0], together[row], atol=1e-5, rtol=0)


def test_what_is_not_a_number_is_not_hidden() -> None:
    logits = torch.randn(ROWS, WORDS)
    logits[2, 7] = torch.nan
    logs, _ = best(logits, 1)
    assert logs[2].isnan().all()
