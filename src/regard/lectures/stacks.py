"""Stacks of Transformer blocks with and without residual connections and norms, before any training.

The post-norm block is the lecture's LN(x + Sublayer(x)). All layers are Regard's, with random weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from regard.config.codec import preset
from regard.lectures.lines import join
from regard.lectures.shapes import SOURCE, build_base
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.nn.context import Context
from regard.nn.layer import Residual, Sublayer
from regard.nn.masks import causal, no_mask
from regard.nn.record import Record
from regard.nn.stack import Stack

WIDTH, TOKENS, DEPTHS, SEEDS = 32, 8, 12, 3
PRE_NORM_DEPTHS, KEYS = (1, 2, 4, 8), 16
VARIANTS = {  # has residual, has norm
    f"{'with' if residual else 'without'} residual, {'with' if norm else 'without'} norm": (residual, norm)
    for residual, norm in product((True, False), repeat=2)
}


class Chain(Residual):
    """sublayer(norm(x)) (pre-norm) or norm(sublayer(x)) (post-norm): nothing is added to x."""

    def forward(self, x: Tensor, sublayer: Sublayer, context: Context) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if self.is_pre_norm:
            return sublayer(self.norm(x), context)
        output: Tensor = self.norm(sublayer(x, context))
        return output


def remove_parts(stack: nn.Module, *, has_residual: bool, has_norm: bool) -> None:
    """Remove the residual connections, the norms inside of them, or both."""
    for module in list(stack.modules()):
        if isinstance(module, Residual):
            if not has_residual:
                module.__class__ = Chain
            if not has_norm:
                module.norm = nn.Identity()


@dataclass(frozen=True)
class Depth:
    """What a stack of some depth does to its input: means over seeds."""

    gradient: float  # the norm of d (random mixture of outputs) / d x
    similarity: float  # the mean cosine of two tokens' outputs: 1 if all tokens have become equal


@dataclass(frozen=True)
class Steps:
    """One token's vectors (D) in the first block's self-attention."""

    x: list[float]
    sublayer: list[float]
    output: list[float]


def build_post_norm(encoder_layers: int, decoder_layers: int, seed: int) -> EncoderDecoder:
    """Build the preset `base` in a small size, without positions; its blocks are the lecture's."""
    changes: dict[str, object] = {"d_model": WIDTH, "source.vocabulary": 10}
    for stack, layers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        changes |= {f"{stack}.layers": layers, f"{stack}.position.kind": "none"}
        changes |= {f"{stack}.attention.heads": 4, f"{stack}.feedforward.d_ff": 2 * WIDTH}
    model: EncoderDecoder = build(preset("base", changes | {"decoder.cross.heads": 4}), seed=seed)
    return model.eval()


def build_encoder(layers: int, seed: int, has_residual: bool = True, has_norm: bool = True) -> Stack:
    """Build an encoder, and take out residual connections or norms."""
    encoder = build_post_norm(layers, 1, seed).encoder
    remove_parts(encoder, has_residual=has_residual, has_norm=has_norm)
    return encoder


def draw(*shape: int, seed: int) -> Tensor:
    """Return normal numbers of a fixed seed."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@cache
def measure_depths(has_residual: bool, has_norm: bool) -> list[Depth]:
    """Measure stacks of 1 to 12 layers."""
    gradients, similarities = torch.zeros(2, SEEDS, DEPTHS, dtype=torch.float64)
    for seed in range(SEEDS):
        x = draw(1, TOKENS, WIDTH, seed=seed).requires_grad_()
        mixture = draw(1, TOKENS, WIDTH, seed=100 + seed)
        encoder = build_encoder(DEPTHS, seed, has_residual, has_norm)
        outputs: list[Tensor] = []
        for layer in encoder.layers:
            layer.register_forward_hook(lambda _layer, _inputs, output, outputs=outputs: outputs.append(output))
        encoder(x, no_mask())
        for depth, output in enumerate(outputs):
            (gradient,) = torch.autograd.grad((output * mixture).sum(), x, retain_graph=True)
            tokens = output.detach()[0]  # (T, D)
            gradients[seed, depth] = gradient.norm()
            similarities[seed, depth] = cosine_similarity(tokens[:, None], tokens[None], dim=-1).mean()
    means = gradients.log().mean(dim=0).exp().tolist(), similarities.mean(dim=0).tolist()
    return [Depth(gradient, similarity) for gradient, similarity in zip(*means, strict=True)]


def take_steps(has_residual: bool) -> Steps:
    """Return x, Sublayer(x) and the block's output of the first token."""
    encoder = build_encoder(1, 0, has_residual)
    layer, seen = encoder.layers[0], []
    for module in (layer.attention, layer.attention_residual):
        module.register_forward_hook(lambda _module, inputs, output: seen.append((inputs[0], output)))
    with torch.no_grad():
        encoder(draw(1, TOKENS, WIDTH, seed=0), no_mask())
    (x, sublayer), (_, output) = seen
    return Steps(*(part[0, 0].tolist() for part in (x, sublayer, output)))


def follow_printed_index() -> tuple[float, int]:
    """Run two decoder blocks as printed: the second cross-attention reads the first block's self-attention.

    Returns:
        The largest difference of the outputs, and how many weights of the second self-attention then have no use.
    """
    decoder = build_post_norm(2, 2, seed=0).decoder
    y, memory = draw(1, 5, WIDTH, seed=1), draw(1, TOKENS, WIDTH, seed=2)
    first, second = decoder.layers
    states: list[Tensor] = []
    first.attention_residual.register_forward_hook(lambda _module, _inputs, output: states.append(output))
    output = decoder(y, causal(), memory=memory, memory_mask=no_mask())
    second.attention_residual.register_forward_hook(lambda _module, _inputs, _output: states[-1])
    printed = decoder(y, causal(), memory=memory, memory_mask=no_mask())
    printed.square().sum().backward()
    unused = sum(weight.numel() for weight in second.attention.parameters() if weight.grad is None)
    return float((output - printed).detach().abs().max()), unused


def _format(values: Sequence[float]) -> str:
    return "  ".join(f"{value:5.2f}" for value in values[:8])


def show_depth() -> Iterator[str]:
    """The block LN(x + Sublayer(x)): its steps, and stacks without residual connections or norms."""
    steps = take_steps(has_residual=True)
    yield f"The first 8 of {WIDTH} numbers of one token in the first block:\n"
    yield join("x                   ", _format(steps.x))
    yield join("Sublayer(x)         ", _format(steps.sublayer))
    yield join("LN(x + Sublayer(x)) ", _format(steps.output))
    output = torch.tensor(steps.output)
    yield f"mean {abs(float(output.mean())):.4f}, standard deviation {output.std(correction=0):.4f}"
    measured = {name: measure_depths(*variant) for name, variant in VARIANTS.items()}
    shown = (1, 2, 3, 6, 12)
    yield join("\nNorm of the gradient at the input; layers:", *(f"{depth:8}" for depth in shown))
    for name, depths in measured.items():
        yield join(f"{name:42}", *(f"{depths[depth - 1].gradient:8.2g}" for depth in shown))
    yield join("\nMean cosine of two tokens' outputs; layers:", *(f"{depth:7}" for depth in shown))
    for name, depths in measured.items():
        yield join(f"{name:42}", *(f"{depths[depth - 1].similarity:8.2f}" for depth in shown))
    difference, unused = follow_printed_index()
    yield "\nTwo decoder blocks with the slide's index of the cross-attention: the outputs differ by up to"
    yield f"{difference:.2f}, and {unused:,} weights of the second self-attention have no gradient."


def measure_stack(layers: int, *, has_residual: bool, has_norm: bool) -> tuple[float, float]:
    """Return the standard deviations of a new pre-norm stack's output, and of the gradient at its input.

    Those of its input, and of the gradient at its output, are 1.
    """
    changes = {
        "source.vocabulary": 100,
        "d_model": 64,
        "encoder.layers": layers,
        "encoder.position.kind": "none",
        "initial.kind": "xavier",
    }
    model: EncoderOnly = build(preset("encoder-tiny", changes), seed=1).eval()
    remove_parts(model, has_residual=has_residual, has_norm=has_norm)
    model.encoder.final_norm = None
    x, back = torch.randn(2, 1, KEYS, 64, generator=torch.Generator().manual_seed(2))  # (B, T, D) each
    output = model.encoder(x.requires_grad_(), no_mask())
    (gradient,) = torch.autograd.grad(output, x, back)
    return output.std().item(), gradient.std().item()


def measure_softmax(key_dim: int, scale: float) -> tuple[float, float]:
    """Return the mean largest weight of 16 random keys, and the mean size of the softmax's gradient p (1 - p)."""
    query, key = torch.randn(2, 500, KEYS, key_dim, generator=torch.Generator().manual_seed(3))
    weights = (scale * (query[:, :1] @ key.transpose(1, 2))).softmax(dim=-1)  # (N, 1, S)
    return weights.amax(dim=-1).mean().item(), (weights * (1 - weights)).sum(dim=-1).mean().item()


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


def show_residual() -> Iterator[str]:
    """The gradient at the input of a new encoder, with and without residual connections and norms."""
    depths = (1, 2, 4, 8, 16)
    yield "Size of the gradient at the input, if it is 1 at the output; new encoders of width 64, pre-norm:\n"
    yield f"{'blocks':34}" + "".join(f"{depth:>10}" for depth in depths)
    for name, (has_residual, has_norm) in VARIANTS.items():
        sizes = [measure_stack(depth, has_residual=has_residual, has_norm=has_norm)[1] for depth in depths]
        yield f"{name:34}" + "".join(f"{size:10.2g}" for size in sizes)
    yield "\nWithout both, the gradient vanishes with the depth. Residual connections alone let it grow, norms alone"
    yield "let it fall, and together they keep it within a factor of 5."


def measure_shift(*, has_residual: bool, has_norm: bool, steps: int = 40) -> tuple[float, float, float]:
    """Train a post-norm stack of 4 layers on random vectors, and watch what its last layer reads.

    Returns:
        By how many standard deviations a feature's mean moves per step, by which factor its standard deviation changes
        in all, and the last loss.
    """
    encoder = build_encoder(4, 0, has_residual, has_norm)
    x, goal = draw(16, TOKENS, WIDTH, seed=0), draw(16, TOKENS, WIDTH, seed=100)
    inputs: list[Tensor] = []
    encoder.layers[-1].register_forward_pre_hook(lambda _, args: inputs.append(args[0].detach().flatten(0, 1)))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.003)
    loss = torch.tensor(0.0)
    for _ in range(steps):
        loss = nn.functional.mse_loss(encoder(x, no_mask()), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    deviations, means = torch.std_mean(torch.stack(inputs), dim=1)  # (steps, D)
    moved = (means.diff(dim=0).abs() / deviations[:-1]).mean()
    return float(moved), float((deviations[-1] / deviations[0]).mean()), float(loss.detach())


def show_shift() -> Iterator[str]:
    """Internal covariate shift: how the input of the last layer changes while the layers below it learn."""
    yield "40 steps of Adam; 4 layers learn to map random vectors to random vectors. Input of the last layer:\n"
    yield f"{'blocks':30} mean moves, per step  deviation, at the end  last loss"
    for name, (has_residual, has_norm) in VARIANTS.items():
        moved, factor, loss = measure_shift(has_residual=has_residual, has_norm=has_norm)
        yield f"{name:30} {moved:9.3f} deviations {factor:12.2f} x start {loss:10.2f}"
    yield "\nNorms keep the deviation near its start. They do not keep the mean of a feature in place: it moves as far"
    yield "with them. So less covariate shift is not why they help (Santurkar et al. 2018 on batch norm)."
