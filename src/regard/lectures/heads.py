"""Sizes of attention heads: matrices, parameters and weights."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from regard.config.codec import preset
from regard.lectures.shapes import SOURCE, VOCABULARY
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder


def show_heads() -> Iterator[str]:
    """Heads: their size, weights and cost; d_k and d_v may differ from d / h."""
    yield f"Self-attention of one encoder block, d = 512, {SOURCE} tokens:\n"
    yield "heads  d_k  d_v  W_q, W_k        W_v             W_O             parameters  attention weights"
    for heads, key_dim, value_dim in (
        (1, 512, 512),
        (4, 128, 128),
        (8, 64, 64),
        (16, 32, 32),
        (8, 32, 64),
        (8, 64, 32),
    ):
        sizes = {"encoder.attention": {"heads": heads, "key_dim": key_dim, "value_dim": value_dim}}
        model: EncoderDecoder = build(
            preset("base", {"source.vocabulary": VOCABULARY, "encoder.layers": 1, "decoder.layers": 1, **sizes})
        )
        attention = model.encoder.layers[0].attention
        matrices = [
            " x ".join(map(str, getattr(attention, name).weight.shape)) for name in ("query", "value", "output")
        ]
        count = sum(parameter.numel() for parameter in attention.parameters())
        cells = "  ".join(f"{matrix:14}" for matrix in matrices)
        yield f"{heads:5}  {key_dim:3}  {value_dim:3}  {cells}  {count:10,}  {heads} x {SOURCE} x {SOURCE}"
    yield "\nWith d_k = d_v = d / h, the number of heads changes neither the matrices nor their cost."


def count_multiplications(left: Tensor, right: Tensor) -> int:
    """Return the multiplications of left right^T."""
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.linear(left, right)
    return int(counter.get_total_flops()) // 2


def show_crossing() -> Iterator[str]:
    """N^2 d against N d^2: where the scores of attention cost as much as a projection."""
    width = 512
    yield f"Multiplications that torch counts, d = {width}: scores Q K^T, N^2 d, and one projection X W, N d^2:\n"
    yield "     N      N^2 d          N d^2          ratio"
    for tokens in (32, 128, 512, 2048, 8192):
        x, matrix = (torch.empty(count, width, device="meta") for count in (tokens, width))
        scores, projection = count_multiplications(x, x), count_multiplications(x, matrix)
        yield f"{tokens:6,}  {scores:14,} {projection:14,} {scores / projection:10.4g}"
    yield f"\nThey are equal at N = d = {width}; for longer texts the scores decide."


SUBJECTS: dict[str, Callable[[], Iterator[str]]] = {"heads": show_heads, "crossing": show_crossing}
