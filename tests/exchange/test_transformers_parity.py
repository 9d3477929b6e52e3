"""Every Hugging Face architecture with a weight map gives the same logits as our model with its weights."""

from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from regard.exchange.mapping import find_ignored, to_hf, to_regard
from regard.exchange.weight_map import WeightMap
from regard.models.build import AnyModel
from regard.nn.positions import Sinusoidal
from tests.exchange.cases import CASES
from tests.exchange.models import (
    POSITIONS,
    TOLERANCE,
    WIDTH,
    build_model,
    compute_outputs,
    max_difference,
    max_gradient_difference,
    randomize_weights,
)


@dataclass(frozen=True)
class Pair:
    weight_map: WeightMap
    theirs: nn.Module
    ours: AnyModel


@cache  # building models takes most of the time, and no test changes them
def _make_pair(name: str) -> Pair:
    """Make their model with random weights, and ours with the same; `load_state_dict` checks names and shapes."""
    case = CASES[name]
    theirs, ours = randomize_weights(case.make_theirs()), build_model(case.settings)
    ours.load_state_dict(to_regard(case.weight_map, theirs.state_dict()))
    return Pair(case.weight_map, theirs, ours)


@pytest.fixture(params=CASES)
def pair(request: pytest.FixtureRequest) -> Pair:
    return _make_pair(request.param)


def test_same_outputs(pair: Pair) -> None:
    assert type(pair.theirs).__name__ == pair.weight_map.architecture
    with torch.no_grad():
        assert max_difference(*compute_outputs(pair.theirs, pair.ours)) < TOLERANCE


@pytest.mark.parametrize("name", ["gpt2-gelu", "mbart-relu", "llama-both-biases", "bert-classes-gelu"])
def test_same_gradients(name: str) -> None:
    pair = _make_pair(name)
    outputs = compute_outputs(pair.theirs, pair.ours)
    assert max_gradient_difference(pair.weight_map, pair.theirs, pair.ours, *outputs) < TOLERANCE


def test_round_trip(pair: Pair) -> None:
    theirs, ours = pair.theirs.state_dict(), pair.ours.state_dict()
    _assert_equal(to_hf(pair.weight_map, to_regard(pair.weight_map, theirs)), theirs)
    _assert_equal(to_regard(pair.weight_map, to_hf(pair.weight_map, ours)), ours)


def test_tied_copies_and_constants_may_be_absent(pair: Pair) -> None:
    theirs = pair.theirs.state_dict()
    skipped = pair.weight_map.hf_copies | find_ignored(pair.weight_map, theirs).keys()
    part = {name: tensor for name, tensor in theirs.items() if name not in skipped}
    _assert_equal(to_regard(pair.weight_map, part), to_regard(pair.weight_map, theirs))


def _assert_equal(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert actual.keys() == expected.keys()
    assert [name for name in actual if not torch.equal(actual[name], expected[name])] == []


@pytest.mark.parametrize("name", ["marian-relu", "pegasus-relu"])
def test_marian_sinusoid_equals_ours(name: str) -> None:
    theirs = _make_pair(name).theirs.state_dict()
    computed = Sinusoidal(WIDTH, 10000.0, interleaved=False).encode(torch.arange(POSITIONS)[None])[0]
    for side in ("encoder", "decoder"):
        assert torch.allclose(computed, theirs[f"model.{side}.embed_positions.weight"], rtol=0, atol=1e-5)
