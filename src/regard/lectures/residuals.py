"""Layer norm and residual connections: what they do to vectors and to gradients."""

from collections.abc import Callable, Iterator
from itertools import product

import torch
from torch import nn

from regard.lectures.chain import remove_parts
from regard.lectures.shapes import SOURCE, build_base
from regard.nn.layer import Residual
from regard.nn.masks import no_mask
from regard.nn.record import Record


def show_norm() -> Iterator[str]:
    """Layer norm over the features: mean 0 and deviation 1, whatever comes in."""
    norm = build_base(1).encoder.layers[0].attention_residual.norm
    assert isinstance(norm, nn.LayerNorm)  # noqa: S101 - the preset's norm
    generator = torch.Generator().manual_seed(1)
    gamma, beta = (float(parameter[0].detach()) for parameter in (norm.weight, norm.bias))
    yield f"gamma {gamma:g}, beta {beta:g}, eps {norm.eps:g}; 512 features of a token:\n"
    yield "       before: mean  deviation   after: mean  deviation   gradient's norm"
    for shift, size in ((0.0, 1.0), (3.0, 0.1), (-50.0, 20.0), (0.0, 1e-4)):
        x = (shift + size * torch.randn(512, generator=generator)).requires_grad_()
        y = norm(x)
        (gradient,) = torch.autograd.grad(y[0], x)
        cells = (x.mean(), x.std(correction=0), y.mean(), y.std(correction=0))
        yield "      " + " ".join(f"{float(cell.detach()):11.4f}" for cell in cells) + f" {gradient.norm():17.4g}"
    yield "\nThe output does not depend on the size of the input, so the gradient is divided by it. In the last line"
    yield "the variance is 1e-8, less than eps.\n"
    yield "Deviation of the residual stream after each of 4 new blocks, attention and feed-forward:"
    for order, has_pre_norm in (("LN(x + f(x)), post-norm", False), ("x + f(LN(x)), pre-norm", True)):
        encoder, record = build_base(4, width=64).encoder, Record()
        for module in encoder.modules():
            if isinstance(module, Residual):
                module.is_pre_norm = has_pre_norm
        with torch.no_grad():
            encoder(torch.randn(1, SOURCE, 64, generator=generator), no_mask(), record=record)
        sizes = [record.residuals[f"encoder.{block}.feedforward"].std() for block in range(4)]
        yield f"  {order:24} " + " ".join(f"{size:6.2f}" for size in sizes)


def measure_gradient(layers: int, *, has_residual: bool, has_norm: bool) -> float:
    """Return |d output / d input| of a new pre-norm encoder, along a random direction of its output."""
    encoder = build_base(layers, width=64).encoder
    for module in list(encoder.modules()):
        if isinstance(module, Residual):
            module.is_pre_norm = True
    remove_parts(encoder, has_residual=has_residual, has_norm=has_norm)
    x, direction = torch.randn(2, 1, SOURCE, 64, generator=torch.Generator().manual_seed(1)).unbind()
    x.requires_grad_()
    (gradient,) = torch.autograd.grad((encoder(x, no_mask()) * direction).sum(), x)
    return float(gradient.norm() / direction.norm())


def show_residual() -> Iterator[str]:
    """The gradient at the input of a new encoder, with and without residual connections and norms."""
    depths = (1, 2, 4, 8, 16)
    yield "|d output / d input| along a random direction; new encoders of width 64, pre-norm:\n"
    yield f"{'blocks':34}" + "".join(f"{depth:>10}" for depth in depths)
    for has_residual, has_norm in product((True, False), repeat=2):
        name = f"{'with' if has_residual else 'without'} residual, {'with' if has_norm else 'without'} norm"
        sizes = [measure_gradient(depth, has_residual=has_residual, has_norm=has_norm) for depth in depths]
        yield f"{name:34}" + "".join(f"{size:10.2g}" for size in sizes)
    yield "\nWithout both, the gradient vanishes with the depth. Residual connections alone let it grow, norms alone"
    yield "hold it at about a tenth, and together they keep its size."


SUBJECTS: dict[str, Callable[[], Iterator[str]]] = {
    "norm": show_norm,
    "residual": show_residual,
}
