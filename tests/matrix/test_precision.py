"""Parameters are float32; the compute type comes from outside, and nothing inside insists on one."""

import pytest
import torch
from torch import Tensor, nn

from tests.matrix.models import OPTIONS, make_model, random_tokens

BASE = {"score": "scaled_dot", "norm_order": "pre", "norm": "rms", "heads": "gqa", "feedforward": "swiglu"}
VALID = torch.arange(8) < torch.tensor([8, 3, 5])[:, None]


def run(model: nn.Module, family: str) -> Tensor:
    source, target = random_tokens(3, 8, seed=1), random_tokens(3, 6, seed=2)
    match family:
        case "encoder_decoder":
            return model(source, target, VALID)
        case "decoder_only":
            return model(target)
        case _:
            return model(source, VALID)


@pytest.mark.parametrize("family", OPTIONS["family"])
@pytest.mark.parametrize("position", OPTIONS["position"])
@torch.no_grad()
def test_double_precision_and_bfloat16_autocast_are_near_float32(family: str, position: str) -> None:
    model = make_model(BASE | {"family": family, "position": position})
    single = run(model, family)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = run(model, family)
    assert half.dtype == torch.bfloat16
    assert (half - single).abs().max() < 0.05 * single.abs().max()
    double = run(model.double(), family)
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), single, atol=3e-5, rtol=0)


def test_packed_rows_may_be_longer_than_learned_positions() -> None:
    choice = BASE | {"family": "decoder_only", "position": "learned"}
    model: nn.Module = make_model(choice)  # 32 positions
    tokens = random_tokens(1, 40, seed=1)
    documents, positions = torch.arange(40)[None] // 20, torch.arange(40)[None] % 20
    packed = model(tokens, documents=documents, positions=positions)
    alone = torch.cat([model(part) for part in tokens.split(20, dim=1)], dim=1)
    torch.testing.assert_close(packed, alone, atol=3e-5, rtol=0)
