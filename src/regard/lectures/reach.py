"""Which words a sublayer connects: the change of each output when one input vector changes."""

import torch
from torch import Tensor

from regard.lectures.worked_numbers import build_small
from regard.nn.attend import resolve_mask
from regard.nn.context import Context
from regard.nn.masks import no_mask
from regard.nn.positions import Position


@torch.inference_mode()
def change_first() -> dict[str, Tensor]:
    """Return how feed-forward and self-attention change at each of five words (T) if the first word changes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        layer = build_small(width=32, vocabulary=20).encoder.layers[0]
    index = torch.arange(5)[None]
    mask = resolve_mask(no_mask(), index, index, is_square=True)
    context = Context(Position(), None, mask, None, None, None, None)
    x = torch.randn(1, 5, 32, generator=torch.Generator().manual_seed(1))
    changed = torch.cat((-x[:, :1], x[:, 1:]), dim=1)
    sublayers = {"feedforward": layer.feedforward, "attention": layer.attention}
    return {
        name: (compute(changed, context) - compute(x, context))[0].norm(dim=-1) for name, compute in sublayers.items()
    }
