"""Forced prefixes, forbidden phrases and required phrases."""

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.constraints import ConstrainedState, ConstrainedStep
from regard.decode.greedy import greedy
from regard.decode.protocol import Step
from regard.decode.sample import sample
from tests.decode.table_models import BOS, EOS, SUPPRESSED, TableModel, TableState, has_phrase, make_prompt


def test_no_search_completes_forbidden_phrases() -> None:
    phrases = [(2, 3), (4,), (3, 3, 2)]
    violations = 0
    for seed in range(20):
        table = TableModel(6, seed)
        max_lengths = [7, 3, 6]

        def make_constrained(
            table: TableModel = table,
        ) -> tuple[Step[ConstrainedState[TableState]], ConstrainedState[TableState]]:
            step = ConstrainedStep(table.step, absorbing_token=BOS, forbidden=phrases)
            return step, step.start(table.start(range(3)), 3)

        generator = torch.Generator().manual_seed(seed)
        step, state = make_constrained()
        texts = greedy(step, state, make_prompt(3), eos=EOS, max_lengths=max_lengths, suppress_tokens=SUPPRESSED)
        step, state = make_constrained()
        texts += [
            hypotheses[0]
            for hypotheses in beam(
                step, state, make_prompt(3), beam_size=3, eos=EOS, max_lengths=max_lengths, suppress_tokens=SUPPRESSED
            )
        ]
        step, state = make_constrained()
        texts += sample(
            step,
            state,
            make_prompt(3),
            eos=EOS,
            max_lengths=max_lengths,
            suppress_tokens=SUPPRESSED,
            generator=generator,
        )
        for i, text in enumerate(texts):
            assert not any(has_phrase(text.tokens, phrase) for phrase in phrases)
            assert text.logprobs == pytest.approx(table.logprobs(i % 3, text.tokens), abs=1e-5)  # the model's own
        unconstrained = greedy(
            table.step,
            table.start(range(3)),
            make_prompt(3),
            eos=EOS,
            max_lengths=max_lengths,
            suppress_tokens=SUPPRESSED,
        )
        violations += sum(any(has_phrase(text.tokens, phrase) for phrase in phrases) for text in unconstrained)
    assert violations > 20  # without constraints they occur


def test_forbidden_phrase_starting_in_prompt_is_not_completed() -> None:
    for seed in range(10):
        table = TableModel(4, seed)
        step = ConstrainedStep(table.step, absorbing_token=BOS, forbidden=[(3, 2)])
        state = step.start(table.start([0]), 1)
        (hypothesis,) = greedy(
            step, state, torch.tensor([[BOS, 3]]), eos=EOS, max_lengths=[1], suppress_tokens=SUPPRESSED
        )
        assert hypothesis.tokens != (2,)


def test_forbidden_first_tokens_may_come_later() -> None:
    first: set[int] = set()
    later: set[int] = set()
    prompt = torch.tensor([[BOS, 3]])  # it does not count
    for seed in range(30):
        table = TableModel(5, seed)
        step = ConstrainedStep(table.step, absorbing_token=BOS, forbidden_first=(3, EOS))
        state = step.start(table.start([0]), 1)
        (text,) = greedy(step, state, prompt, eos=EOS, max_lengths=[6], suppress_tokens=SUPPRESSED)
        step = ConstrainedStep(table.step, absorbing_token=BOS, forbidden_first=(3, EOS))
        state = step.start(table.start([0]), 1)
        ((best,),) = beam(step, state, prompt, beam_size=2, eos=EOS, max_lengths=[6], suppress_tokens=SUPPRESSED)
        for tokens in (text.tokens, best.tokens):
            first.add(tokens[0])
            later.update(tokens[1:])
    assert not first & {3, EOS}
    assert {3, EOS} <= later


def test_a_forced_token_that_may_not_be_first_is_an_error() -> None:
    table = TableModel(5, 1)
    step = ConstrainedStep(table.step, absorbing_token=BOS, forbidden_first=[3], forced_prefixes=[(3,)])
    state = step.start(table.start([0]), 1)
    with pytest.raises(RegardError, match="forced and forbidden"):
        greedy(step, state, make_prompt(1), eos=EOS, max_lengths=[2], suppress_tokens=SUPPRESSED)


@pytest.mark.parametrize("forbidden", [(token, 3) for token in range(2, 6) if token != 5])
def test_hypotheses_beside_the_prefix_are_no_conflict(forbidden: tuple[int, int]) -> None:
    """A beam is filled with hypotheses of probability 0, which may end in any token."""
    table = TableModel(6, 1)
    step = ConstrainedStep(table.step, absorbing_token=BOS, forbidden=[forbidden], forced_prefixes=[(5, 3, 4)])
    state = step.start(table.start([0]), 1)
    hypotheses = beam(step, state, make_prompt(1), beam_size=4, eos=EOS, max_lengths=[5], suppress_tokens=SUPPRESSED)
    assert hypotheses[0][0].tokens[:3] == (5, 3, 4)
    step = ConstrainedStep(table.step, absorbing_token=BOS, forbidden=[(BOS, 5)], forced_prefixes=[(5, 3)])
    state = step.start(table.start([0]), 1)
    with pytest.raises(RegardError, match="forced and forbidden"):  # the phrase begins in the prompt
        beam(step, state, make_prompt(1), beam_size=4, eos=EOS, max_lengths=[5], suppress_tokens=SUPPRESSED)


def test_forced_prefixes_are_generated_and_scored() -> None:
    table = TableModel(6, 2)
    forced: list[tuple[int, ...]] = [(3, 5), (), (2, 2, 4)]
    for search in ("greedy", "beam"):
        step = ConstrainedStep(table.step, absorbing_token=BOS, forced_prefixes=forced)
        state = step.start(table.start(range(3)), 3)
        if search == "greedy":
            hypotheses = greedy(step, state, make_prompt(3), eos=EOS, max_lengths=[6, 6, 6], suppress_tokens=SUPPRESSED)
        else:
            hypotheses = [
                sentence_hypotheses[0]
                for sentence_hypotheses in beam(
                    step, state, make_prompt(3), beam_size=2, eos=EOS, max_lengths=[6] * 3, suppress_tokens=SUPPRESSED
                )
            ]
        for sentence, (text, prefix) in enumerate(zip(hypotheses, forced, strict=True)):
            assert text.tokens[: len(prefix)] == prefix
            assert text.logprobs == pytest.approx(table.logprobs(sentence, text.tokens), abs=1e-5)
            if search == "greedy":
                prompt_tokens = (BOS, *prefix)
                max_lengths = [6 - len(prefix)]
                prompt = torch.tensor([prompt_tokens])
                (expected,) = greedy(
                    table.step,
                    table.start([sentence]),
                    prompt,
                    eos=EOS,
                    max_lengths=max_lengths,
                    suppress_tokens=SUPPRESSED,
                )
                assert text.tokens == (*prefix, *expected.tokens)


def test_crop_restores_constraints() -> None:
    table = TableModel(5, 1)
    step = ConstrainedStep(table.step, absorbing_token=BOS, forbidden=[(2, 3, 4)], forced_prefixes=[(2,), ()])
    state = step.start(table.start([0, 1]), 2)
    step(torch.tensor([[BOS, 2, 3], [BOS, 3, 2]]), state)
    state.crop([2, 1])
    state.reorder(torch.tensor([1, 0]))
    logits = step(torch.tensor([[2, 3], [3, 4]]), state)  # rows are now 0 2 3 and 0 2 3 4
    assert logits[0, 1, 4] == -torch.inf
    assert logits[0, 0, 4] > -torch.inf
    assert logits[1, 0, 4] == -torch.inf
    assert logits[1, 1, 4] > -torch.inf


def test_excluded_probability_goes_to_absorbing_token() -> None:
    table = TableModel(6, 4)
    step = ConstrainedStep(table.step, absorbing_token=BOS, forbidden=[(2,), (5,)])
    state = step.start(table.start([0]), 1)
    constrained_probabilities = step(make_prompt(1), state)[0, 0].softmax(dim=0)
    model_probabilities = table.logits(0, (BOS,)).softmax(dim=0)
    assert constrained_probabilities[[1, 3, 4]].tolist() == pytest.approx(model_probabilities[[1, 3, 4]].tolist())
    assert constrained_probabilities[BOS].item() == pytest.approx(model_probabilities[[BOS, 2, 5]].sum().item())
    assert constrained_probabilities[[2, 5]].tolist() == [0.0, 0.0]


def test_contradictions_raise() -> None:
    table = TableModel(6, 1)
    with pytest.raises(RegardError, match="forced and forbidden"):
        ConstrainedStep(table.step, absorbing_token=BOS, forbidden=[(3, 4)], forced_prefixes=[(2, 3, 4)]).start(
            table.start([0]), 1
        )
    step = ConstrainedStep(table.step, absorbing_token=BOS, forbidden=[(3, 4)], forced_prefixes=[(4,)])
    state = step.start(table.start([0]), 1)
    with pytest.raises(RegardError, match="forced and forbidden"):
        step(torch.tensor([[BOS, 3]]), state)
    with pytest.raises(RegardError, match="2 prefixes, the batch has 1 rows"):
        ConstrainedStep(table.step, absorbing_token=BOS, forced_prefixes=[(), ()]).start(table.start([0]), 1)
    with pytest.raises(RegardError, match="no tokens"):
        ConstrainedStep(table.step, absorbing_token=BOS, forbidden=[()]).start(table.start([0]), 1)


def test_without_an_absorbing_token_the_other_tokens_share_the_probability() -> None:
    table = TableModel(5, 1)
    step = ConstrainedStep(table.step, absorbing_token=None, forbidden_first=(3, EOS))
    state = step.start(table.start([0]), 1)
    logits = step(torch.tensor([[BOS]]), state)[0, -1]
    free = table.step(torch.tensor([[BOS]]), table.start([0]))[0, -1].float().softmax(-1)
    free[[3, EOS]] = 0
    torch.testing.assert_close(logits.softmax(-1), free / free.sum())
