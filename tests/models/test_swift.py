"""Steps by `Swift` are the model's own steps, whatever is done to the state on the way."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.config.codec import parse
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.state import State
from regard.models.swift import Swift
from tests.matrix.models import Choice, choice_name, decoding_choices, make_model, random_tokens

ROWS, SOURCE, CLOSE = 3, 7, 3e-5
REAL = torch.arange(SOURCE) < torch.tensor([7, 4, 6])[:, None]
Model = EncoderDecoder | DecoderOnly

PARTS: dict[str, dict[str, Any]] = {
    "gated": {"feedforward": {"kind": "gated", "hidden": 24, "activation": "silu", "bias": False}},
    "grouped": {"attention": {"heads": 4, "key_value_heads": 2, "key_dim": 6, "value_dim": 5}},
    "no-bias": {"attention": {"heads": 4, "bias": {"query": True, "key": False, "value": True, "output": False}}},
    "input-norm": {"input_norm": True, "norm": {"kind": "rms"}},
    "rotary": {"position": {"kind": "rotary"}, "attention": {"heads": 4, "key_value_heads": 1}},
}


def stirred(settings: dict[str, Any]) -> Model:
    """A model of these settings in which no weight is 0 or 1."""
    model = build(parse(settings), seed=1).eval()
    assert isinstance(model, EncoderDecoder | DecoderOnly)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return model


def translator(**changes: Any) -> EncoderDecoder:
    stack = {
        "layers": 2,
        "placement": "pre",
        "final_norm": True,
        "position": {"kind": "sinusoidal"},
        "attention": {"heads": 4},
        "feedforward": {"kind": "plain", "hidden": 24},
    } | changes
    cross = stack["attention"]
    settings = {
        "family": "encoder_decoder",
        "width": 16,
        "source": {"kind": "tokens", "vocabulary": 23},
        "target": {"kind": "tokens", "vocabulary": 23, "scale": True},
        "encoder": stack,
        "decoder": stack | {"cross": cross},
        "head": {"kind": "words", "bias": True},
    }
    model = stirred(settings)
    assert isinstance(model, EncoderDecoder)
    return model


def start(model: Model, capacity: int = 12) -> State:
    if isinstance(model, EncoderDecoder):
        return model.start(random_tokens(ROWS, SOURCE, seed=3), REAL, capacity=capacity)
    return model.start(capacity)


def assert_same_steps(model: Model, swift: Swift) -> None:
    """One token, several, rows as beams, moved, dropped, cropped together and each to its own length."""
    one, other = start(model), start(model)

    def both(rows: int, count: int) -> None:
        tokens = random_tokens(rows, count, seed=one.cache.filled)
        torch.testing.assert_close(swift.step(tokens, one), model.step(tokens, other), atol=CLOSE, rtol=0)

    def reordered(*index: int) -> None:
        for state in (one, other):
            state.reorder(torch.tensor(index))

    both(ROWS, 1)
    both(ROWS, 2)
    reordered(0, 0, 1, 1, 2, 2)
    both(6, 1)
    reordered(1, 0, 2, 2, 5, 4)
    both(6, 1)
    reordered(4, 5, 2, 2)  # a sentence leaves, another takes its place
    both(4, 1)
    reordered(3, 1, 0)  # no groups any more
    both(3, 1)
    for state in (one, other):
        state.crop([3, 5, 4])
    both(3, 1)
    reordered(2)
    both(1, 1)


@torch.no_grad()
@pytest.mark.parametrize("choice", list(decoding_choices()), ids=choice_name)
def test_all_kinds_of_models(choice: Choice) -> None:
    model = make_model(choice)
    assert isinstance(model, EncoderDecoder | DecoderOnly)
    swift = Swift(model)
    plain = choice["score"] in ("dot", "scaled_dot") and choice["feedforward"] != "swiglu"  # that has norms on heads
    assert swift.ready == (plain and choice["position"] not in ("alibi", "relative"))
    if swift.ready:
        assert_same_steps(model, swift)


@torch.no_grad()
@pytest.mark.parametrize("part", PARTS)
def test_all_kinds_of_parts(part: str) -> None:
    model = translator(**PARTS[part])
    swift = Swift(model)
    assert swift.ready
    assert_same_steps(model, swift)


@torch.no_grad()
def test_what_it_has_no_list_for_is_the_models_own_step() -> None:
    model = translator(window=3)
    assert not Swift(model).ready
    assert_same_steps(model, Swift(model))
    adapted = translator()
    adapted.decoder.layers[1].attention.key = nn.utils.parametrizations.weight_norm(nn.Linear(16, 16))
    assert not Swift(adapted).ready
    assert_same_steps(adapted, Swift(adapted))


@torch.no_grad()
def test_positions_that_end_are_told_and_those_that_do_not_go_on() -> None:
    model = translator(position={"kind": "learned", "length": 8})
    swift, state = Swift(model), start(model)
    for _ in range(8):
        swift.step(random_tokens(ROWS, 1, seed=1), state)
    with pytest.raises(Exception, match="learned positions end at 8"):
        swift.step(random_tokens(ROWS, 1, seed=1), state)
    model = translator()
    swift, one, other = Swift(model), start(model, 300), start(model, 300)
    for place in range(300):  # beyond what is worked out at first
        token = random_tokens(ROWS, 1, seed=place)
        torch.testing.assert_close(swift.step(token, one), model.step(token, other), atol=CLOSE, rtol=0)


def test_it_notices_other_weights() -> None:
    model = translator()
    for change in (_learn, _load, _assign, _write_one, _write_behind, _exchange, _widen):
        swift = Swift(model)
        assert swift.fits()
        swift.step(random_tokens(ROWS, 1, seed=1), start(model))
        assert swift.fits()
        change(model)
        assert not swift.fits()
    with torch.inference_mode():
        uncounted = translator()
    assert not Swift(uncounted).fits()  # torch does not count there, so nobody can know


def _learn(model: nn.Module) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    loss: Tensor = model(random_tokens(ROWS, SOURCE, seed=3), random_tokens(ROWS, 4, seed=4)).sum()
    loss.backward()
    optimizer.step()


def _load(model: nn.Module) -> None:
    model.load_state_dict({name: tensor + 1 for name, tensor in model.state_dict().items()})


def _assign(model: nn.Module) -> None:
    model.load_state_dict({name: tensor + 1 for name, tensor in model.state_dict().items()}, assign=True)


@torch.no_grad()
def _write_one(model: nn.Module) -> None:
    next(model.get_submodule("decoder").parameters())[-1, -1] = 7.0


def _write_behind(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.data.mul_(1.001)


def _exchange(model: nn.Module) -> None:
    model.get_submodule("decoder.layers.1.feedforward").register_module("down", nn.Linear(24, 16))


def _widen(model: nn.Module) -> None:
    model.double()
