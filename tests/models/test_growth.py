"""One more token: with the cache its cost grows by the same for every token before it, without it ever faster."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from regard.config.codec import parse
from regard.models.build import build
from regard.models.cost import cost
from regard.models.decoder_only import DecoderOnly
from regard.models.swift import Swift
from tests.matrix.models import Choice, make_settings, random_tokens

CHOICE: Choice = {
    "family": "decoder_only",
    "position": "sinusoidal",
    "score": "scaled_dot",
    "placement": "pre",
    "norm": "layer",
    "heads": "gqa",
    "feedforward": "relu",
}


@pytest.mark.parametrize("longest", [64, pytest.param(2048, marks=pytest.mark.slow)])
@torch.inference_mode()
def test_flops_with_the_cache_are_linear_and_without_it_quadratic(longest: int) -> None:
    config = parse(make_settings(CHOICE))
    model = build(config, seed=0).eval()
    assert isinstance(model, DecoderOnly)
    stride = longest // 4
    cached: list[int] = []
    quick: list[int] = []
    whole: list[int] = []
    for length in range(stride, longest + 1, stride):
        tokens = random_tokens(2, length, seed=1)
        for step, counts in ((model.step, cached), (Swift(model).step, quick)):
            state = model.start(longest)
            model.step(tokens[:, :-1], state)
            with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
                step(tokens[:, -1:], state)
            counts.append(counter.get_total_flops())
            assert state.bytes == cost(config, batch=2, target=longest).cache.total()
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            model(tokens)
        whole.append(counter.get_total_flops())
    assert cached == quick
    first, second, third = (cached[place + 1] - cached[place] for place in range(3))
    assert first == second == third > 0  # a straight line
    rises = [whole[place + 1] - whole[place] for place in range(3)]
    assert rises[2] - rises[1] == rises[1] - rises[0] > 0  # a parabola
