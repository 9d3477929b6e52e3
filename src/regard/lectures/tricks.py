"""What residual connections, norms and the scale of scores do in a new stack, before any training."""

import math
from collections.abc import Callable, Iterator
from itertools import product

import torch

from regard.config.codec import preset
from regard.lectures.chain import remove_parts
from regard.models.build import build
from regard.models.encoder_only import EncoderOnly
from regard.nn.masks import no_mask

WIDTH, TOKENS = 64, 16
DEPTHS = (1, 2, 4, 8)


def measure_stack(layers: int, *, has_residual: bool, has_norm: bool) -> tuple[float, float]:
    """Return the standard deviations of a new pre-norm stack's output, and of the gradient at its input.

    Those of its input, and of the gradient at its output, are 1.
    """
    changes = {
        "source.vocabulary": 100,
        "d_model": WIDTH,
        "encoder.layers": layers,
        "encoder.position.kind": "none",
        "initial.kind": "xavier",
    }
    model: EncoderOnly = build(preset("encoder-tiny", changes), seed=1).eval()
    remove_parts(model, has_residual=has_residual, has_norm=has_norm)
    model.encoder.final_norm = None
    x, back = torch.randn(2, 1, TOKENS, WIDTH, generator=torch.Generator().manual_seed(2))  # (B, T, D) each
    output = model.encoder(x.requires_grad_(), no_mask())
    (gradient,) = torch.autograd.grad(output, x, back)
    return output.std().item(), gradient.std().item()


def measure_softmax(key_dim: int, scale: float) -> tuple[float, float]:
    """Return the mean largest weight of 16 random keys, and the mean size of the softmax's gradient p (1 - p)."""
    query, key = torch.randn(2, 500, TOKENS, key_dim, generator=torch.Generator().manual_seed(3))
    weights = (scale * (query[:, :1] @ key.transpose(1, 2))).softmax(dim=-1)  # (N, 1, S)
    return weights.amax(dim=-1).mean().item(), (weights * (1 - weights)).sum(dim=-1).mean().item()


def show_tricks() -> Iterator[str]:
    """Residual connections, norms and the scale, switched off one by one in a new stack."""
    yield "Standard deviation of the output, and of the gradient at the input (both are 1 without layers):\n"
    yield "residual  norm  " + "  ".join(f"{layers} layers         " for layers in DEPTHS)
    for has_residual, has_norm in product((True, False), repeat=2):
        sizes = (measure_stack(layers, has_residual=has_residual, has_norm=has_norm) for layers in DEPTHS)
        cells = "  ".join(f"{output:8.2g} {gradient:8.2g}" for output, gradient in sizes)
        yield f"{'yes' if has_residual else 'no':8}  {'yes' if has_norm else 'no':4}  {cells}"
    yield "\n   d_k  largest weight  its gradient  and with the scale"
    for key_dim in (4, 64, 512):
        plain, scaled = measure_softmax(key_dim, 1), measure_softmax(key_dim, 1 / math.sqrt(key_dim))
        yield f"{key_dim:6}  {plain[0]:14.2f}  {plain[1]:12.3f}  {scaled[0]:8.2f}  {scaled[1]:.3f}"


SUBJECTS: dict[str, Callable[[], Iterator[str]]] = {"tricks": show_tricks}
