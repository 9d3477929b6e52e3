"""Random small models (500 with `-m slow`): wherever theory says so, every beam finds the optimum of all texts."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard.decode.beam import beam
from regard.decode.constrained_beam import constrained_beam
from regard.decode.constraints import ConstrainedStep
from regard.decode.diverse import diverse_beam
from regard.decode.ensemble import ensemble
from regard.decode.exhaustive import exhaustive
from regard.decode.greedy import greedy
from regard.decode.length_penalty import LengthPenalty, gnmt
from regard.decode.protocol import Hypothesis
from regard.decode.stochastic import stochastic_beam
from tests.decode.table_models import BOS, EOS, TableModel, TableState

PROMPT = torch.tensor([[BOS]])
LENGTH_PENALTIES: tuple[LengthPenalty, ...] = (0.0, 0.3, 1.0, 1.7, gnmt(0.6), gnmt(1.5))


@dataclass
class Case:
    """A random model and the limits of a search."""

    table: TableModel
    max_new_tokens: int
    length_penalty: LengthPenalty
    rng: random.Random

    @property
    def full_beam_size(self) -> int:
        """A beam size that holds all prefixes: every sequence is among the candidates."""
        return self.table.vocabulary_size**self.max_new_tokens

    def state(self) -> TableState:
        return self.table.start([0])

    def texts(self) -> list[Hypothesis]:
        """Return all sequences, best first."""
        settings = {"max_lengths": [self.max_new_tokens], "length_penalty": self.length_penalty, "n_best": 10**6}
        return exhaustive(self.table.step, self.state(), PROMPT, eos=EOS, **settings)[0]  # type: ignore[arg-type]


def make_cases(count: int, seed: int) -> Iterator[Case]:
    for i in range(count):
        rng = random.Random(seed * 10_000 + i)
        sharpness = rng.choice([0.5, 1.0, 3.0])
        table = TableModel(rng.choice([3, 4]), seed * 10_000 + i, sharpness)
        yield Case(table, rng.choice([1, 2, 3]), rng.choice(LENGTH_PENALTIES), rng)


def check_same(hypotheses: list[Hypothesis], expected: list[Hypothesis]) -> None:
    """Check for the same sequences and scores in the same order; ties up to rounding may be in another order."""
    assert len(hypotheses) == len(expected)
    assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx(
        [hypothesis.score for hypothesis in expected], abs=1e-5
    )
    for hypothesis, expected_hypothesis in zip(hypotheses, expected, strict=True):
        if hypothesis.tokens != expected_hypothesis.tokens:
            tied_tokens = [text.tokens for text in expected if abs(text.score - hypothesis.score) < 1e-5]
            assert hypothesis.tokens in tied_tokens


counts = pytest.mark.parametrize("count", [200, pytest.param(500, marks=pytest.mark.slow)])


@counts
def test_full_beam_equals_exhaustive(count: int) -> None:
    for case in make_cases(count, seed=1):
        n_best = case.rng.choice([1, 3, 99])
        oracle = case.texts()
        settings = {
            "beam_size": case.full_beam_size,
            "eos": EOS,
            "max_lengths": [case.max_new_tokens],
            "length_penalty": case.length_penalty,
            "n_best": n_best,
        }
        (hypotheses,) = beam(case.table.step, case.state(), PROMPT, exact=True, **settings)  # type: ignore[arg-type]
        check_same(hypotheses, oracle[:n_best])
        (constrained,) = constrained_beam(case.table.step, case.state(), PROMPT, required=[[]], **settings)  # type: ignore[arg-type]
        check_same(constrained, oracle[:n_best])
        ((diverse,),) = diverse_beam(case.table.step, case.state(), PROMPT, groups=1, **settings)  # type: ignore[arg-type]
        check_same(diverse, oracle[:n_best])


@counts
def test_beams_never_beat_exhaustive_and_rank_best_first(count: int) -> None:
    for case in make_cases(count, seed=2):
        oracle = case.texts()[0]
        settings = {"eos": EOS, "max_lengths": [case.max_new_tokens], "length_penalty": case.length_penalty}
        scores = []
        for size in (1, 2):
            (hypotheses,) = beam(case.table.step, case.state(), PROMPT, beam_size=size, **settings)  # type: ignore[arg-type]
            assert hypotheses[0].score <= oracle.score + 1e-6
            scores.append(hypotheses[0].score)
        (greedy_hypothesis,) = greedy(case.table.step, case.state(), PROMPT, **settings)  # type: ignore[arg-type]
        # A beam of one follows greedy search; it may continue after a finished hypothesis if that can score better.
        assert scores[0] >= greedy_hypothesis.score - 1e-6
        (early_stopped,) = beam(case.table.step, case.state(), PROMPT, beam_size=1, stop_after=1, **settings)  # type: ignore[arg-type]
        assert early_stopped[0].tokens == greedy_hypothesis.tokens
        if case.max_new_tokens == 1:
            assert scores[0] == pytest.approx(oracle.score, abs=1e-6)  # one step: beam search is exact


def test_greedy_is_optimal_without_history() -> None:
    class Forgetful(TableModel):
        def logits(self, sentence: int, history: tuple[int, ...]) -> Tensor:  # type: ignore[override]
            return super().logits(sentence, (len(history),))

    for number in range(100):
        table = Forgetful(4, number)
        settings = {"eos": EOS, "max_lengths": [3], "suppress_tokens": torch.tensor([EOS]), "length_penalty": 0.0}
        ((oracle,),) = exhaustive(table.step, table.start([0]), PROMPT, **settings)  # type: ignore[arg-type]
        (greedy_hypothesis,) = greedy(table.step, table.start([0]), PROMPT, **settings)  # type: ignore[arg-type]
        ((beam_of_two,),) = beam(table.step, table.start([0]), PROMPT, beam_size=2, **settings)  # type: ignore[arg-type]
        assert greedy_hypothesis.tokens == beam_of_two.tokens == oracle.tokens


def test_forbidden_phrases_equal_filtered_exhaustive() -> None:
    for case in make_cases(200, seed=3):
        tokens = range(2, case.table.vocabulary_size)
        phrases = [case.rng.choices(tokens, k=case.rng.choice([1, 2])) for _ in range(case.rng.choice([1, 2]))]
        oracle = [
            hypothesis
            for hypothesis in case.texts()
            if BOS not in hypothesis.tokens and not any(has_phrase(hypothesis, p) for p in phrases)
        ]
        step = ConstrainedStep(case.table.step, absorbing_token=BOS, forbidden=phrases)
        state = step.start(case.state(), 1)
        settings = {
            "max_lengths": [case.max_new_tokens],
            "length_penalty": case.length_penalty,
            "n_best": 99,
            "suppress_tokens": torch.tensor([BOS]),
        }
        (hypotheses,) = beam(step, state, PROMPT, beam_size=case.full_beam_size, eos=EOS, **settings)  # type: ignore[arg-type]
        check_same(hypotheses, oracle)


def test_required_phrases_equal_filtered_exhaustive() -> None:
    for case in make_cases(200, seed=4):
        size = case.rng.choice([1, 2])
        phrases = [case.rng.choices([0, *range(2, case.table.vocabulary_size)], k=min(size, case.max_new_tokens))]
        if case.max_new_tokens == 3:
            phrases.append([case.rng.choice([0, *range(2, case.table.vocabulary_size)])])
        required = [[phrase] for phrase in phrases]
        required[0].append(case.rng.choices([0, *range(2, case.table.vocabulary_size)], k=case.max_new_tokens))

        def is_satisfied(hypothesis: Hypothesis, required: list[list[list[int]]] = required) -> bool:
            return all(any(has_phrase(hypothesis, phrase) for phrase in group) for group in required)

        oracle = [hypothesis for hypothesis in case.texts() if is_satisfied(hypothesis)]
        settings = {"eos": EOS, "max_lengths": [case.max_new_tokens], "length_penalty": case.length_penalty}
        full_beam = {"beam_size": case.full_beam_size, "n_best": 99, "required": [required]}
        (hypotheses,) = constrained_beam(case.table.step, case.state(), PROMPT, **settings, **full_beam)  # type: ignore[arg-type]
        check_same(hypotheses, oracle)
        small_beam = {"beam_size": 1, "required": [required]}
        ((best,),) = constrained_beam(case.table.step, case.state(), PROMPT, **settings, **small_beam)  # type: ignore[arg-type]
        assert is_satisfied(best)
        assert best.score <= oracle[0].score + 1e-6


def has_phrase(text: Hypothesis, phrase: list[int]) -> bool:
    starts = range(len(text.tokens) - len(phrase) + 1)
    return any(list(text.tokens[start : start + len(phrase)]) == phrase for start in starts)


def test_full_stochastic_beam_returns_every_sequence_once() -> None:
    for case in make_cases(100, seed=5):
        (sampled,) = stochastic_beam(
            case.table.step,
            case.state(),
            PROMPT,
            beam_size=case.full_beam_size,
            eos=EOS,
            max_lengths=[case.max_new_tokens],
            generator=torch.Generator().manual_seed(1),
            length_penalty=case.length_penalty,
        )
        check_same(sorted((entry.hypothesis for entry in sampled), key=lambda text: -text.score), case.texts())


class Mean(TableModel):
    """The mean of two table models."""

    def __init__(self, first: TableModel, second: TableModel) -> None:
        super().__init__(first.vocabulary_size, 0)
        self.tables = (first, second)

    def logits(self, sentence: int, history: tuple[int, ...]) -> Tensor:  # type: ignore[override]
        return torch.stack([table.logits(sentence, history).softmax(dim=0) for table in self.tables]).mean(dim=0).log()


def test_ensemble_beam_equals_exhaustive_of_mean() -> None:
    for case in make_cases(100, seed=6):
        second_table = TableModel(case.table.vocabulary_size, 77, case.table.sharpness)
        step, state = ensemble([(case.table.step, case.state()), (second_table.step, second_table.start([0]))])
        settings = {"eos": EOS, "max_lengths": [case.max_new_tokens], "length_penalty": case.length_penalty}
        (hypotheses,) = beam(step, state, PROMPT, beam_size=case.full_beam_size, **settings)  # type: ignore[arg-type]
        mean = Mean(case.table, second_table)
        (expected,) = exhaustive(mean.step, mean.start([0]), PROMPT, **settings)  # type: ignore[arg-type]
        check_same(hypotheses, expected)
