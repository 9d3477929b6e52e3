"""The Transformer block LN(x + Sublayer(x)), with and without its parts, and the printed index of the decoder block.

All layers are Regard's, with random weights: what is measured holds before any training.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from regard.config.codec import preset
from regard.lectures.chain import remove_parts
from regard.lectures.lines import join
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.masks import causal, no_mask
from regard.nn.stack import Stack

WIDTH, TOKENS, DEPTHS, SEEDS = 32, 8, 12, 3
VARIANTS = {  # has residual, has norm
    f"{'with' if residual else 'without'} residual, {'with' if norm else 'without'} norm": (residual, norm)
    for residual, norm in product((True, False), repeat=2)
}


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


def build_post_norm(layers: int, seed: int) -> EncoderDecoder:
    """Build the preset `base` in a small size, without positions; its blocks are the lecture's."""
    changes: dict[str, object] = {"d_model": WIDTH, "source.vocabulary": 10}
    for stack in ("encoder", "decoder"):
        changes |= {f"{stack}.layers": layers, f"{stack}.position.kind": "none"}
        changes |= {f"{stack}.attention.heads": 4, f"{stack}.feedforward.d_ff": 2 * WIDTH}
    model: EncoderDecoder = build(preset("base", changes | {"decoder.cross.heads": 4}), seed=seed)
    return model.eval()


def build_encoder(layers: int, seed: int, has_residual: bool = True, has_norm: bool = True) -> Stack:
    """Build an encoder, and take out residual connections or norms."""
    encoder = build_post_norm(layers, seed).encoder
    remove_parts(encoder, has_residual=has_residual, has_norm=has_norm)
    return encoder


def draw(*shape: int, seed: int) -> Tensor:
    """Return normal numbers of a fixed seed."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


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
    decoder = build_post_norm(2, seed=0).decoder
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


def show_block() -> Iterator[str]:
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


SUBJECTS: dict[str, Callable[[], Iterator[str]]] = {"depth": show_block}
