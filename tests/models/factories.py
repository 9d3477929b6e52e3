"""Settings of small models."""

from typing import Any

import torch

CLOSE = 3e-5
STACK = {
    "layers": 2,
    "norm_order": "pre",
    "final_norm": True,
    "position": {"kind": "rotary"},
    "attention": {"heads": 2},
    "feedforward": {"kind": "plain", "d_ff": 24},
}


TOKENS = {"kind": "tokens", "vocabulary": 20}
PATCHES = {"kind": "patches", "patch": 2, "channels": 3}
MEL = {"kind": "mel", "bins": 5, "frames": 2}
LABELS = {"kind": "classes", "labels": ["cat", "dog", "cow"]}


def check_packing(model: Any) -> None:
    first, second = torch.tensor([[1, 2, 3]]), torch.tensor([[7, 8, 9, 10]])
    packed = model(
        torch.cat((first, second), dim=1),
        documents=torch.tensor([[0, 0, 0, 1, 1, 1, 1]]),
        positions=torch.tensor([[0, 1, 2, 0, 1, 2, 3]]),
    )
    torch.testing.assert_close(packed, torch.cat((model(first), model(second)), dim=1), atol=CLOSE, rtol=0)
