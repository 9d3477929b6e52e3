"""Alternatives, compared with one greedy search per token."""

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.alternatives import Alternative, alternatives
from regard.decode.greedy import greedy
from tests.decode.table_models import BOS, EOS, TableModel

MAX_LENGTH = 5


def reference_alternative(
    table: TableModel, prefix: tuple[int, ...], token: int, max_new_tokens: int, suppress_tokens: torch.Tensor
) -> Alternative:
    logprob = float(table.logits(0, prefix).log_softmax(dim=0)[token])
    if token == EOS or not max_new_tokens:
        return Alternative(token, logprob, (), ())
    prompt = torch.tensor([[*prefix, token]])
    (text,) = greedy(
        table.step, table.start([0]), prompt, eos=EOS, max_lengths=[max_new_tokens], suppress_tokens=suppress_tokens
    )
    return Alternative(token, logprob, text.tokens, text.logprobs)


@pytest.mark.parametrize("count", [1, 3, 9])
@pytest.mark.parametrize("prompt", [(BOS,), (BOS, 4, 3)])
def test_tokens_and_their_continuations(count: int, prompt: tuple[int, ...]) -> None:
    suppress_tokens = torch.tensor([BOS])
    for seed in range(8):
        table = TableModel(6, seed)
        text = (3, 2, 2, 5, EOS)[seed % 2 :]
        prompt_tokens = torch.tensor([prompt])
        result = alternatives(
            table.step,
            table.start([0]),
            prompt_tokens,
            text,
            eos=EOS,
            max_new_tokens=MAX_LENGTH,
            count=count,
            suppress_tokens=suppress_tokens,
        )
        assert list(result) == list(range(len(text)))
        for position, position_alternatives in result.items():
            prefix = (*prompt, *text[:position])
            logprobs = table.logits(0, prefix).log_softmax(dim=0)
            expected_tokens = [token for token in logprobs.argsort(descending=True).tolist() if token != BOS][:count]
            assert [alternative.token for alternative in position_alternatives] == expected_tokens
            for alternative in position_alternatives:
                expected = reference_alternative(
                    table, prefix, alternative.token, MAX_LENGTH - position - 1, suppress_tokens
                )
                assert alternative.continuation == expected.continuation
                assert (alternative.logprob, *alternative.continuation_logprobs) == pytest.approx(
                    (expected.logprob, *expected.continuation_logprobs), abs=1e-5
                )


def test_chosen_positions_read_the_prefix_once() -> None:
    table = TableModel(6, 3)
    result = alternatives(
        table.step,
        table.start([0]),
        torch.tensor([[BOS]]),
        (3, 2, 2, 5),
        eos=EOS,
        max_new_tokens=MAX_LENGTH,
        count=2,
        positions=[2, 0, 2],
    )
    assert list(result) == [0, 2]
    assert table.steps[0] == (1, 3)  # bos and the two tokens before position 2 in one step
    assert all(read == 1 for _, read in table.steps[1:])


def test_the_likeliest_token_continues_as_greedy_did() -> None:
    for seed in range(10):
        table = TableModel(6, seed)
        prompt = torch.tensor([[BOS]])
        (text,) = greedy(table.step, table.start([0]), prompt, eos=EOS, max_lengths=[MAX_LENGTH])
        result = alternatives(
            table.step, table.start([0]), prompt, text.tokens, eos=EOS, max_new_tokens=MAX_LENGTH, count=2
        )
        for position, (best, second) in result.items():
            assert (*text.tokens[:position], best.token, *best.continuation) == text.tokens
            assert second.token != text.tokens[position]
            assert second.logprob <= best.logprob


def test_positions_out_of_range_raise() -> None:
    table = TableModel(6, 3)
    for places, count in (([4], 2), ([-1], 2), ([], 2), ([0], 0)):
        with pytest.raises(RegardError, match="alternatives at positions"):
            alternatives(
                table.step,
                table.start([0]),
                torch.tensor([[BOS]]),
                (3, 2, 2, 5),
                eos=EOS,
                max_new_tokens=9,
                count=count,
                positions=places,
            )
    with pytest.raises(RegardError, match="max_lengths must be at least 1"):
        alternatives(table.step, table.start([0]), torch.tensor([[BOS]]), (3, 2, 2), eos=EOS, max_new_tokens=2)
