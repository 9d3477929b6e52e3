"""One more token: with the cache its cost grows by the same for every token before it, without it ever faster."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from regard.config.codec import MODEL_FILES
from regard.models.build import build
from regard.models.cost import cost
from regard.models.cpu_decoder import CpuDecoder
from regard.models.decoder_only import DecoderOnly
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


@pytest.mark.parametrize("max_length", [64, pytest.param(2048, marks=pytest.mark.slow)])
@torch.inference_mode()
def test_flops_with_the_cache_are_linear_and_without_it_quadratic(max_length: int) -> None:
    config = MODEL_FILES.parse(make_settings(CHOICE))
    model = build(config, seed=0).eval()
    assert isinstance(model, DecoderOnly)
    stride = max_length // 4
    cached_flops: list[int] = []
    cpu_decoder_flops: list[int] = []
    uncached_flops: list[int] = []
    for length in range(stride, max_length + 1, stride):
        tokens = random_tokens(2, length, seed=1)
        for step, counts in ((model.step, cached_flops), (CpuDecoder(model).step, cpu_decoder_flops)):
            state = model.start(max_length)
            model.step(tokens[:, :-1], state)
            with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
                step(tokens[:, -1:], state)
            counts.append(counter.get_total_flops())
            assert state.bytes == cost(config, batch_size=2, target=max_length).kv_cache.total()
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            model(tokens)
        uncached_flops.append(counter.get_total_flops())
    assert cached_flops == cpu_decoder_flops
    first, second, third = (cached_flops[place + 1] - cached_flops[place] for place in range(3))
    assert first == second == third > 0  # a straight line
    increments = [uncached_flops[place + 1] - uncached_flops[place] for place in range(3)]
    assert increments[2] - increments[1] == increments[1] - increments[0] > 0  # a parabola
