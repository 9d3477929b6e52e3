"""Speculative sampling: a draft changes the number of steps and nothing else."""

import math
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.exhaustive import exhaustive
from regard.decode.filters import Filters
from regard.decode.greedy import greedy
from regard.decode.speculative import SpeculativeResult, speculative
from tests.decode.chi_squared import check_counts
from tests.decode.table_models import BOS, EOS, TableModel, TableState

DRAWS = 3000


def run_speculative(
    model: TableModel,
    draft: TableModel,
    sentences: list[int],
    max_lengths: list[int],
    filters: Filters | None = None,
    draft_length: int = 2,
    suppress_tokens: Tensor | None = None,
) -> SpeculativeResult:
    return speculative(
        model.step,
        model.start(sentences),
        draft.step,
        draft.start(sentences),
        torch.full((len(sentences), 1), BOS),
        eos=EOS,
        max_lengths=max_lengths,
        generator=torch.Generator().manual_seed(1),
        draft_length=draft_length,
        filters=filters,
        suppress_tokens=suppress_tokens,
    )


@pytest.mark.parametrize("draft_length", [1, 2, 3])
@pytest.mark.parametrize("draft_seed", [8, 9])  # 8 is the model itself
def test_speculative_matches_model_distribution(draft_length: int, draft_seed: int) -> None:
    model, draft = TableModel(4, 8, sharpness=1.0), TableModel(4, draft_seed, sharpness=1.0)
    result = run_speculative(model, draft, [0] * DRAWS, [3] * DRAWS, draft_length=draft_length)
    (texts,) = exhaustive(
        model.step, model.start([0]), torch.tensor([[BOS]]), eos=EOS, max_lengths=[3], length_penalty=0.0, n_best=99
    )
    expected = {text.tokens: DRAWS * math.exp(text.score) for text in texts}
    check_counts(Counter(hypothesis.tokens for hypothesis in result.hypotheses), expected)
    if draft_seed == 8:
        assert result.acceptance_rate > 0.5  # the rest was proposed after eos
    else:
        assert 0.1 < result.acceptance_rate < 0.9


def test_speculative_with_filters_and_suppressed_tokens() -> None:
    model, draft = TableModel(5, 3, sharpness=1.0), TableModel(5, 4, sharpness=1.0)
    filters, suppress_tokens = Filters(temperature=1.5, top_k=3), torch.tensor([2])
    result = run_speculative(model, draft, [0] * DRAWS, [2] * DRAWS, filters, suppress_tokens=suppress_tokens)
    expected: dict[tuple[int, ...], float] = {}
    logits = model.logits(0, (BOS,))[None].index_fill(1, suppress_tokens, -math.inf)
    for token, p in enumerate(filters.probabilities(logits)[0].tolist()):
        if token == EOS:
            expected[token,] = DRAWS * p
            continue
        next_logits = model.logits(0, (BOS, token))[None].index_fill(1, suppress_tokens, -math.inf)
        for next_token, q in enumerate(filters.probabilities(next_logits)[0].tolist()):
            expected[token, next_token] = DRAWS * p * q
    check_counts(Counter(hypothesis.tokens for hypothesis in result.hypotheses), expected)


@pytest.mark.parametrize("draft_length", [1, 3, 20])
def test_zero_temperature_is_greedy_for_any_draft(draft_length: int) -> None:
    for seed in range(10):
        sentences, max_lengths = list(range(6)), [1, 9, 4, 7, 2, 9]
        model = TableModel(5, seed)
        greedy_hypotheses = greedy(
            model.step, model.start(sentences), torch.full((6, 1), BOS), eos=EOS, max_lengths=max_lengths
        )
        for draft in (TableModel(5, seed), TableModel(5, seed + 100)):
            result = run_speculative(model, draft, sentences, max_lengths, Filters(temperature=0.0), draft_length)
            assert [hypothesis.tokens for hypothesis in result.hypotheses] == [
                hypothesis.tokens for hypothesis in greedy_hypotheses
            ]
            for hypothesis, greedy_hypothesis in zip(result.hypotheses, greedy_hypotheses, strict=True):
                assert hypothesis.logprobs == pytest.approx(greedy_hypothesis.logprobs, abs=1e-5)
                assert hypothesis.score == pytest.approx(greedy_hypothesis.score, abs=1e-5)
                assert hypothesis.ended == greedy_hypothesis.ended


def test_perfect_draft_saves_steps() -> None:
    model = TableModel(5, 1)
    suppress_tokens = torch.tensor([EOS])
    result = run_speculative(
        model, TableModel(5, 1), [0], [12], Filters(temperature=0.0), draft_length=3, suppress_tokens=suppress_tokens
    )
    # three times: three accepted tokens and one more
    assert (result.steps, result.proposed, result.accepted, result.acceptance_rate) == (3, 9, 9, 1.0)
    assert model.steps == [(1, 4)] * 3
    model = TableModel(5, 1)
    worst_result = run_speculative(
        model, Worst(5, 1), [0], [12], Filters(temperature=0.0), draft_length=3, suppress_tokens=suppress_tokens
    )
    assert (worst_result.steps, worst_result.accepted, worst_result.acceptance_rate) == (12, 0, 0.0)
    assert worst_result.hypotheses == result.hypotheses


def test_draft_equal_to_model_is_never_rejected() -> None:
    result = run_speculative(
        TableModel(6, 1),
        TableModel(6, 1),
        list(range(200)),
        [9] * 200,
        draft_length=2,
        suppress_tokens=torch.tensor([EOS]),
    )
    assert result.acceptance_rate == 1.0
    assert result.steps == 3


class Worst(TableModel):
    """Proposes the model's least likely tokens."""

    def step(self, tokens: Tensor, state: TableState) -> Tensor:
        return -super().step(tokens, state)


def test_states_hold_no_more_tokens_than_without_draft() -> None:
    class Small(TableState):
        def check(self) -> None:
            assert max(map(len, self.histories)) <= 5  # bos and all but the last of five tokens

    class Careful(TableModel):
        def start(self, sentences: Sequence[int]) -> TableState:
            return Small(list(sentences), [()] * len(sentences))

        def step(self, tokens: Tensor, state: TableState) -> Tensor:
            answer = super().step(tokens, state)
            assert isinstance(state, Small)
            state.check()
            return answer

    for seed in range(10):
        run_speculative(
            Careful(5, seed), Careful(5, seed), [0, 1], [5, 5], draft_length=7, suppress_tokens=torch.tensor([EOS])
        )


def test_both_models_read_the_prompt() -> None:
    model, draft = TableModel(5, 6), TableModel(5, 7)
    prompt = torch.tensor([[BOS, 3, 4]])
    result = speculative(
        model.step,
        model.start([0]),
        draft.step,
        draft.start([0]),
        prompt,
        eos=EOS,
        max_lengths=[6],
        generator=torch.Generator(),
        filters=Filters(temperature=0.0),
    )
    (greedy_hypothesis,) = greedy(model.step, model.start([0]), prompt, eos=EOS, max_lengths=[6])
    assert result.hypotheses[0].tokens == greedy_hypothesis.tokens
    assert draft.steps[0] == (1, 3)


def test_unsupported_speculative_arguments_raise() -> None:
    with pytest.raises(RegardError, match="no_repeat_ngram and repetition_penalty"):
        run_speculative(TableModel(4, 1), TableModel(4, 2), [0], [3], Filters(no_repeat_ngram=2))
    with pytest.raises(RegardError, match="draft_length must be at least 1, got 0"):
        run_speculative(TableModel(4, 1), TableModel(4, 2), [0], [3], draft_length=0)

    class Broken(TableModel):
        def step(self, tokens: Tensor, state: TableState) -> Tensor:
            return super().step(tokens, state) * math.nan

    with pytest.raises(RegardError, match="not numbers"):
        run_speculative(Broken(4, 1), TableModel(4, 2), [0], [3])
