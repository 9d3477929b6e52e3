"""The searches that copy and take back rows, on networks with a real cache: cached is what reading anew gives."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from regard.decode.alternatives import alternatives
from regard.decode.constraints import constrained
from regard.decode.ensemble import ensemble
from regard.decode.exhaustive import exhaustive
from regard.decode.filters import Filters
from regard.decode.greedy import greedy
from regard.decode.required import required_beam
from regard.decode.speculative import speculative
from regard.decode.stochastic import stochastic_beam
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.state import DecodingState
from tests.pipeline.made import tokenizer, translating_model, translator_settings

ROWS, LONGEST = 3, 8


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.inference_mode():
        yield


class Network:
    """A small translator, three sources of different length, and where its texts begin and end."""

    def __init__(self, seed: int) -> None:
        self.model: EncoderDecoder = translating_model(translator_settings(), seed).eval()
        specials = tokenizer().specials
        self.begin, self.end = specials.bos, specials.eos
        self.never = torch.tensor([specials.bos, specials.pad])
        chance = torch.Generator().manual_seed(1)
        self.source = torch.randint(10, 250, (ROWS, 7), generator=chance)
        self.real = torch.arange(7) < torch.tensor([[7], [3], [5]])
        self.first = torch.full((ROWS, 1), self.begin)

    def start(self, rows: list[int] | None = None) -> DecodingState:
        some = rows or list(range(ROWS))
        return self.model.start(self.source[some], self.real[some], capacity=LONGEST)

    def logs(self, row: int, text: tuple[int, ...]) -> list[float]:
        """Log-probabilities of a text without a cache."""
        target = torch.tensor([[self.begin, *text[:-1]]])
        answers = self.model(self.source[[row]], target, self.real[[row]])[0].log_softmax(dim=1)  # (T, V)
        return [float(answers[place, token]) for place, token in enumerate(text)]

    def greedy(self, first: Tensor, rows: list[int] | None = None, room: int = LONGEST) -> list[tuple[int, ...]]:
        longest = [room] * first.size(0)
        state = self.start(rows)
        return [
            one.tokens for one in greedy(self.model.step, state, first, end=self.end, longest=longest, never=self.never)
        ]


def test_a_draft_changes_nothing() -> None:
    network = Network(1)
    plain = network.greedy(network.first)
    for seed in (1, 2):
        draft = Network(seed)
        found = speculative(
            network.model.step,
            network.start(),
            draft.model.step,
            draft.start(),
            network.first,
            end=network.end,
            longest=[LONGEST] * ROWS,
            generator=torch.Generator(),
            ahead=3,
            filters=Filters(temperature=0.0),
            never=network.never,
        )
        assert [one.tokens for one in found.texts] == plain
        for row, one in enumerate(found.texts):
            assert one.logs == pytest.approx(network.logs(row, one.tokens), abs=1e-4)
        if seed == 1:
            assert found.share > 0.4
            assert found.steps < LONGEST


def test_alternatives_are_texts_of_their_own() -> None:
    network = Network(3)
    (text,) = network.greedy(network.first[:1], [1])
    found = alternatives(
        network.model.step,
        network.start([1]),
        network.first[:1],
        text,
        end=network.end,
        longest=LONGEST,
        count=3,
        never=network.never,
    )
    for place, some in found.items():
        assert some[0].token == text[place]
        for one in some:
            whole = (*text[:place], one.token, *one.goes_on)
            assert (one.log, *one.logs) == pytest.approx(network.logs(1, whole)[place:], abs=1e-4)
            if one.goes_on:
                first = torch.tensor([[network.begin, *whole[: place + 1]]])
                assert network.greedy(first, [1], LONGEST - place - 1) == [one.goes_on]


def test_every_search_tells_the_networks_own_probabilities() -> None:
    network = Network(4)
    never = torch.tensor([word for word in range(tokenizer().size) if word not in (30, 40, network.end)])
    settings = {"end": network.end, "longest": [3] * ROWS, "never": never}
    texts = exhaustive(network.model.step, network.start(), network.first, best=99, **settings)  # type: ignore[arg-type]
    assert [len(some) for some in texts] == [15] * ROWS  # 1 + 2 + 4 that end, 8 that are cut off
    drawn = stochastic_beam(
        network.model.step,
        network.start(),
        network.first,
        size=20,
        generator=torch.Generator().manual_seed(1),
        **settings,  # type: ignore[arg-type]
    )
    required = required_beam(
        network.model.step,
        network.start(),
        network.first,
        required=[[(30, 40)], [], [(40,), (30,)]],
        size=2,
        **settings,  # type: ignore[arg-type]
    )
    for row in range(ROWS):
        assert {one.text.tokens for one in drawn[row]} == {one.tokens for one in texts[row]}
        for one in (*texts[row], *(one.text for one in drawn[row]), *required[row]):
            assert one.logs == pytest.approx(network.logs(row, one.tokens), abs=1e-4)


def test_wrapped_networks() -> None:
    network, pad = Network(5), tokenizer().specials.pad
    plain = network.greedy(network.first)
    step, state = ensemble([(network.model.step, network.start()) for _ in range(2)])
    settings = {"end": network.end, "longest": [LONGEST] * ROWS, "never": network.never}
    same = greedy(step, state, network.first, **settings)  # type: ignore[arg-type]
    assert [one.tokens for one in same] == plain
    forbidden = [plain[0][1:3], plain[1][:1]]
    forced = [(), (), (50, 60)]
    obedient, watched = constrained(
        network.model.step, network.start(), ROWS, sink=pad, forbidden=forbidden, forced=forced
    )
    found = greedy(obedient, watched, network.first, **settings)  # type: ignore[arg-type]
    for one in found:
        pairs = list(zip(one.tokens, one.tokens[1:], strict=False))
        assert forbidden[0] not in pairs
        assert forbidden[1][0] not in one.tokens
    assert found[0].tokens != plain[0]
    assert found[2].tokens[:2] == (50, 60)
    for row, one in enumerate(found):
        assert one.logs == pytest.approx(network.logs(row, one.tokens), abs=1e-4)
