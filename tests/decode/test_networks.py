"""Searches that reorder and crop rows, on networks with a key-value cache: results equal those without a cache."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from regard.decode.alternatives import alternatives
from regard.decode.constrained_beam import constrained_beam
from regard.decode.constraints import ConstrainedStep
from regard.decode.ensemble import ensemble
from regard.decode.exhaustive import exhaustive
from regard.decode.filters import Filters
from regard.decode.greedy import greedy
from regard.decode.speculative import speculative
from regard.decode.stochastic import stochastic_beam
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.kv_cache import DecodingState
from tests.tasks.factories import make_encoder_decoder, make_tokenizer, make_translator_settings

ROWS, MAX_LENGTH = 3, 8


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.inference_mode():
        yield


class Network:
    """A small encoder-decoder, three sources of different length, and its bos and eos."""

    def __init__(self, seed: int) -> None:
        self.model: EncoderDecoder = make_encoder_decoder(make_translator_settings(), seed).eval()
        specials = make_tokenizer().specials
        self.bos, self.eos = specials.bos, specials.eos
        self.suppress_tokens = torch.tensor([specials.bos, specials.pad])
        generator = torch.Generator().manual_seed(1)
        self.source = torch.randint(10, 250, (ROWS, 7), generator=generator)
        self.valid = torch.arange(7) < torch.tensor([[7], [3], [5]])
        self.prompt = torch.full((ROWS, 1), self.bos)

    def start(self, rows: list[int] | None = None) -> DecodingState:
        selected_rows = rows or list(range(ROWS))
        return self.model.start(self.source[selected_rows], self.valid[selected_rows], capacity=MAX_LENGTH)

    def logprobs(self, row: int, text: tuple[int, ...]) -> list[float]:
        """Return the log-probabilities of a sequence, computed without a cache."""
        target = torch.tensor([[self.bos, *text[:-1]]])
        logprobs = self.model(self.source[[row]], target, self.valid[[row]])[0].log_softmax(dim=1)  # (T, V)
        return [float(logprobs[position, token]) for position, token in enumerate(text)]

    def greedy(
        self, prompt: Tensor, rows: list[int] | None = None, max_new_tokens: int = MAX_LENGTH
    ) -> list[tuple[int, ...]]:
        max_lengths = [max_new_tokens] * prompt.size(0)
        state = self.start(rows)
        return [
            hypothesis.tokens
            for hypothesis in greedy(
                self.model.step,
                state,
                prompt,
                eos=self.eos,
                max_lengths=max_lengths,
                suppress_tokens=self.suppress_tokens,
            )
        ]


def test_speculative_equals_sampling_on_networks() -> None:
    network = Network(1)
    expected = network.greedy(network.prompt)
    for seed in (1, 2):
        draft = Network(seed)
        result = speculative(
            network.model.step,
            network.start(),
            draft.model.step,
            draft.start(),
            network.prompt,
            eos=network.eos,
            max_lengths=[MAX_LENGTH] * ROWS,
            generator=torch.Generator(),
            draft_length=3,
            filters=Filters(temperature=0.0),
            suppress_tokens=network.suppress_tokens,
        )
        assert [hypothesis.tokens for hypothesis in result.hypotheses] == expected
        for row, hypothesis in enumerate(result.hypotheses):
            assert hypothesis.logprobs == pytest.approx(network.logprobs(row, hypothesis.tokens), abs=1e-4)
        if seed == 1:
            assert result.acceptance_rate > 0.4
            assert result.steps < MAX_LENGTH


def test_alternatives_match_uncached_greedy() -> None:
    network = Network(3)
    (text,) = network.greedy(network.prompt[:1], [1])
    result = alternatives(
        network.model.step,
        network.start([1]),
        network.prompt[:1],
        text,
        eos=network.eos,
        max_new_tokens=MAX_LENGTH,
        count=3,
        suppress_tokens=network.suppress_tokens,
    )
    for position, position_alternatives in result.items():
        assert position_alternatives[0].token == text[position]
        for alternative in position_alternatives:
            full_text = (*text[:position], alternative.token, *alternative.continuation)
            assert (alternative.logprob, *alternative.continuation_logprobs) == pytest.approx(
                network.logprobs(1, full_text)[position:], abs=1e-4
            )
            if alternative.continuation:
                prompt = torch.tensor([[network.bos, *full_text[: position + 1]]])
                assert network.greedy(prompt, [1], MAX_LENGTH - position - 1) == [alternative.continuation]


def test_every_search_reports_the_networks_logprobs() -> None:
    network = Network(4)
    suppress_tokens = torch.tensor(
        [token for token in range(make_tokenizer().size) if token not in (30, 40, network.eos)]
    )
    settings = {"eos": network.eos, "max_lengths": [3] * ROWS, "suppress_tokens": suppress_tokens}
    texts = exhaustive(network.model.step, network.start(), network.prompt, n_best=99, **settings)  # type: ignore[arg-type]
    assert [len(hypotheses) for hypotheses in texts] == [15] * ROWS  # 1 + 2 + 4 that end, 8 that are cut off
    sampled = stochastic_beam(
        network.model.step,
        network.start(),
        network.prompt,
        beam_size=20,
        generator=torch.Generator().manual_seed(1),
        **settings,  # type: ignore[arg-type]
    )
    required = constrained_beam(
        network.model.step,
        network.start(),
        network.prompt,
        required=[[[(30, 40)]], [], [[(40,)], [(30,)]]],
        beam_size=2,
        **settings,  # type: ignore[arg-type]
    )
    for row in range(ROWS):
        assert {hypothesis.hypothesis.tokens for hypothesis in sampled[row]} == {
            hypothesis.tokens for hypothesis in texts[row]
        }
        for hypothesis in (*texts[row], *(hypothesis.hypothesis for hypothesis in sampled[row]), *required[row]):
            assert hypothesis.logprobs == pytest.approx(network.logprobs(row, hypothesis.tokens), abs=1e-4)


def test_wrapped_networks() -> None:
    network, pad = Network(5), make_tokenizer().specials.pad
    expected = network.greedy(network.prompt)
    step, state = ensemble([(network.model.step, network.start()) for _ in range(2)])
    settings = {"eos": network.eos, "max_lengths": [MAX_LENGTH] * ROWS, "suppress_tokens": network.suppress_tokens}
    ensemble_hypotheses = greedy(step, state, network.prompt, **settings)  # type: ignore[arg-type]
    assert [hypothesis.tokens for hypothesis in ensemble_hypotheses] == expected
    forbidden = [expected[0][1:3], expected[1][:1]]
    forced = [(), (), (50, 60)]
    constrained_step = ConstrainedStep(
        network.model.step, absorbing_token=pad, forbidden=forbidden, forced_prefixes=forced
    )
    constrained_state = constrained_step.start(network.start(), ROWS)
    hypotheses = greedy(constrained_step, constrained_state, network.prompt, **settings)  # type: ignore[arg-type]
    for hypothesis in hypotheses:
        pairs = list(zip(hypothesis.tokens, hypothesis.tokens[1:], strict=False))
        assert forbidden[0] not in pairs
        assert forbidden[1][0] not in hypothesis.tokens
    assert hypotheses[0].tokens != expected[0]
    assert hypotheses[2].tokens[:2] == (50, 60)
    for row, hypothesis in enumerate(hypotheses):
        assert hypothesis.logprobs == pytest.approx(network.logprobs(row, hypothesis.tokens), abs=1e-4)
