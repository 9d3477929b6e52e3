"""Stochastic beam search, compared with the exact probabilities of samples without replacement."""

import math
from collections import Counter

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.exhaustive import exhaustive
from regard.decode.stochastic import PerturbedHypothesis, stochastic_beam
from tests.decode.chi_squared import check_counts
from tests.decode.table_models import BOS, EOS, TableModel

DRAWS, MAX_LENGTH = 1200, 2


def sample_beams(
    table: TableModel, size: int, suppress_tokens: torch.Tensor | None = None, seed: int = 1
) -> list[list[PerturbedHypothesis]]:
    return stochastic_beam(
        table.step,
        table.start([0] * DRAWS),
        torch.full((DRAWS, 1), BOS),
        beam_size=size,
        eos=EOS,
        max_lengths=[MAX_LENGTH] * DRAWS,
        generator=torch.Generator().manual_seed(seed),
        suppress_tokens=suppress_tokens,
    )


def probabilities(table: TableModel, suppress_tokens: torch.Tensor | None = None) -> dict[tuple[int, ...], float]:
    """Return the probability of every sequence, renormalized over allowed tokens at every step."""
    (texts,) = exhaustive(
        table.step,
        table.start([0]),
        torch.tensor([[BOS]]),
        eos=EOS,
        max_lengths=[MAX_LENGTH],
        n_best=99,
        suppress_tokens=suppress_tokens,
    )
    suppressed_ids = [] if suppress_tokens is None else suppress_tokens.tolist()
    result = {}
    for text in texts:
        p = math.exp(sum(text.logprobs))
        for position in range(len(text.tokens)):
            p /= 1 - table.logits(0, (BOS, *text.tokens[:position])).softmax(dim=0)[suppressed_ids].sum().item()
        result[text.tokens] = p
    assert sum(result.values()) == pytest.approx(1.0, abs=1e-5)
    return result


class Tempted(TableModel):
    """Token 2 is by far the likeliest; the test is about the distribution without it."""

    def logits(self, sentence: int, history: tuple[int, ...]) -> torch.Tensor:  # type: ignore[override]
        return super().logits(sentence, history) + torch.tensor([0.0, 0.0, 3.0, 0.0])


@pytest.mark.parametrize("suppress_tokens", [None, torch.tensor([2])])
def test_ordered_pairs_match_probabilities(suppress_tokens: torch.Tensor | None) -> None:
    """First x with p(x), then y with p(y) / (1 - p(x))."""
    table = TableModel(4, 3, sharpness=1.0) if suppress_tokens is None else Tempted(4, 3, sharpness=1.0)
    p = probabilities(table, suppress_tokens)
    beams = sample_beams(table, 2, suppress_tokens)
    counts = Counter((first.hypothesis.tokens, second.hypothesis.tokens) for first, second in beams)
    expected = {(x, y): DRAWS * p[x] * p[y] / (1 - p[x]) for x in p for y in p if x != y}
    check_counts(counts, expected)


def test_inclusion_frequencies_match_probabilities() -> None:
    """The probability to be among three, summed over all orders."""
    table = TableModel(3, 4, sharpness=1.0)
    p = probabilities(table)
    expected = dict.fromkeys(p, 0.0)
    for x in p:
        for y in p.keys() - {x}:
            for z in p.keys() - {x, y}:
                order = p[x] * p[y] / (1 - p[x]) * p[z] / (1 - p[x] - p[y])
                for text in (x, y, z):
                    expected[text] += order
    assert sum(expected.values()) == pytest.approx(3.0, abs=1e-4)
    beams = sample_beams(table, 3, seed=2)
    counts = Counter(entry.hypothesis.tokens for texts in beams for entry in texts)
    for text, probability in expected.items():  # five standard deviations of a proportion
        spread = math.sqrt(probability * (1 - probability) / DRAWS)
        assert counts[text] / DRAWS == pytest.approx(probability, abs=5 * spread + 1e-9)


def test_first_is_sample_and_all_are_distinct() -> None:
    table = TableModel(4, 5, sharpness=1.5)
    beams = sample_beams(table, 4, seed=3)
    check_counts(
        Counter(texts[0].hypothesis.tokens for texts in beams),
        {text: DRAWS * p for text, p in probabilities(table).items()},
    )
    for texts in beams:
        assert len({entry.hypothesis.tokens for entry in texts}) == 4
        assert [entry.perturbed_logprob for entry in texts] == sorted(
            (entry.perturbed_logprob for entry in texts), reverse=True
        )
        for entry in texts:
            assert entry.hypothesis.logprobs == pytest.approx(table.logprobs(0, entry.hypothesis.tokens), abs=1e-5)


def test_largest_perturbed_logprob_is_gumbel_distributed() -> None:
    """Around 0: its mean is Euler's constant, its variance pi^2 / 6."""
    largest = torch.tensor(
        [texts[0].perturbed_logprob for texts in sample_beams(TableModel(4, 6), 1)], dtype=torch.double
    )
    assert largest.mean().item() == pytest.approx(0.5772, abs=5 * 1.2826 / math.sqrt(DRAWS))
    assert largest.var().item() == pytest.approx(math.pi**2 / 6, rel=0.15)


def test_sentences_have_separate_max_lengths() -> None:
    table = TableModel(4, 7)
    max_lengths = [1, 3, 2]
    beams = stochastic_beam(
        table.step,
        table.start(range(3)),
        torch.full((3, 1), BOS),
        beam_size=50,
        eos=EOS,
        max_lengths=max_lengths,
        generator=torch.Generator().manual_seed(1),
    )
    assert [len(texts) for texts in beams] == [4, 40, 13]
    for sentence, texts in enumerate(beams):
        assert max(len(entry.hypothesis.tokens) for entry in texts) == max_lengths[sentence]
        for entry in texts:
            assert entry.hypothesis.logprobs == pytest.approx(
                table.logprobs(sentence, entry.hypothesis.tokens), abs=1e-5
            )


def test_zero_beam_size_raises() -> None:
    with pytest.raises(RegardError, match="beam_size must be at least 1, got 0"):
        sample_beams(TableModel(4, 1), 0)
