"""Sampling whole sequences, on models without a network."""

from collections import Counter

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.exhaustive import exhaustive
from regard.decode.filters import Filters
from regard.decode.greedy import greedy
from regard.decode.sample import iter_sample, sample
from tests.decode.chi_squared import check_counts
from tests.decode.table_models import BOS, EOS, BigramModel, TableModel


def test_sequence_frequencies_match_probabilities() -> None:
    table, draws = TableModel(4, 8, sharpness=1.0), 3000
    hypotheses = sample(
        table.step,
        table.start([0] * draws),
        torch.full((draws, 1), BOS),
        eos=EOS,
        max_lengths=[3] * draws,
        generator=torch.Generator().manual_seed(1),
    )
    (texts,) = exhaustive(
        table.step, table.start([0]), torch.tensor([[BOS]]), eos=EOS, max_lengths=[3], length_penalty=0.0, n_best=99
    )
    expected = {text.tokens: draws * torch.tensor(text.score).exp().item() for text in texts}
    check_counts(Counter(hypothesis.tokens for hypothesis in hypotheses), expected)


def test_zero_temperature_is_greedy() -> None:
    table = TableModel(6, 3)
    prompt = torch.full((3, 1), BOS)
    coldest, cold = (
        sample(
            table.step,
            table.start([0, 1, 2]),
            prompt,
            eos=EOS,
            max_lengths=[4, 5, 6],
            generator=torch.Generator().manual_seed(1),
            filters=Filters(temperature=temperature),
        )
        for temperature in (0.0, 1e-6)
    )
    assert coldest == cold == greedy(table.step, table.start([0, 1, 2]), prompt, eos=EOS, max_lengths=[4, 5, 6])


def test_seed_determines_samples() -> None:
    def sample_texts(seed: int) -> list[tuple[int, ...]]:
        table = TableModel(8, 1, sharpness=0.5)
        hypotheses = sample(
            table.step,
            table.start(range(5)),
            torch.full((5, 1), BOS),
            eos=EOS,
            max_lengths=[3, 9, 4, 6, 1],
            generator=torch.Generator().manual_seed(seed),
            suppress_tokens=torch.tensor([BOS]),
        )
        for sentence, hypothesis in enumerate(hypotheses):
            assert hypothesis.logprobs == pytest.approx(table.logprobs(sentence, hypothesis.tokens), abs=1e-5)
            assert BOS not in hypothesis.tokens
            assert hypothesis.ended or len(hypothesis.tokens) == [3, 9, 4, 6, 1][sentence]
        return [hypothesis.tokens for hypothesis in hypotheses]

    assert sample_texts(1) == sample_texts(1)
    assert sample_texts(1) != sample_texts(2)


def test_iter_sample_yields_before_next_step() -> None:
    table = TableModel(4, 2)
    steps = iter_sample(
        table.step,
        table.start([0]),
        torch.full((1, 1), BOS),
        eos=EOS,
        max_lengths=[9],
        generator=torch.Generator().manual_seed(1),
        suppress_tokens=torch.tensor([EOS]),
    )
    for count in range(1, 4):
        assert next(steps)[0] is not None
        assert len(table.steps) == count


def test_penalties_see_prompt_and_generated_tokens() -> None:
    table = BigramModel(torch.tensor([[0.1, 0.1, 0.5, 0.3]] * 4))  # the same at every position
    settings = {"eos": EOS, "max_lengths": [2, 9], "generator": torch.Generator()}
    prompt = torch.tensor([[BOS, 2], [BOS, 3]])

    def sample_texts(filters: Filters) -> list[tuple[int, ...]]:
        hypotheses = sample(table.step, table.start([0, 1]), prompt, filters=filters, suppress_tokens=None, **settings)  # type: ignore[arg-type]
        return [hypothesis.tokens for hypothesis in hypotheses]

    cold = Filters(temperature=0.0)
    assert sample_texts(cold) == [(2, 2), (2,) * 9]
    assert sample_texts(Filters(temperature=0.0, no_repeat_ngram=1)) == [
        (3, EOS),
        (2, EOS),
    ]  # 0 and 2 (3) are in the prompt
    assert sample_texts(Filters(temperature=0.0, no_repeat_ngram=2))[1] == (2, 2, 3, 3, 0, 2, 0, 0, EOS)
    assert sample_texts(Filters(temperature=0.0, repetition_penalty=4.0))[1] == (
        2,
        EOS,
    )  # 0.3^4 and 0.5^4 are less than 0.1


def test_no_token_left_raises() -> None:
    table = TableModel(3, 1)
    with pytest.raises(RegardError, match="leave no token"):
        sample(
            table.step,
            table.start([0]),
            torch.tensor([[BOS]]),
            eos=EOS,
            max_lengths=[4],
            generator=torch.Generator(),
            filters=Filters(no_repeat_ngram=1),
            suppress_tokens=torch.tensor([EOS]),
        )
