"""Our parameter names and those of other engines: what all tables are written with, and those of torch's own stacks.

>>> from regard.exchange.rules import to_ours
>>> theirs = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, batch_first=True), 1)
>>> ours = to_ours(torch_encoder(final_norm=False), theirs.state_dict())
>>> ours["layers.0.attention.query.weight"].shape
torch.Size([8, 8])

There is one table for each architecture, good for both directions. `torch_encoder` and `torch_decoder` name the
tensors of one stack (`model.encoder.state_dict()`), those of Hugging Face a whole model: see `translators`,
`writers` and `readers`. What names cannot say, the configurations on both sides must: T5 has `score.scale = 1`,
BART's positions have `offset = 2`, Marian's sinusoid has `layout = "halves"`, and so on.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.exchange.rules import SAME, Constant, Packed, Piece, Rule, Table, Tensors
from regard.nn.positions import Sinusoidal

Names = Mapping[str, str]  # a module of ours -> the module of theirs with the same parameters
Rules = tuple[Rule, ...]
Constants = tuple[Constant, ...]

BOTH = ("weight", "bias")
WEIGHT = ("weight",)
BIAS = ("bias",)
SOURCE, TARGET, TOKENS = "source.table.weight", "target.table.weight", "tokens.table.weight"  # our embeddings
HEAD = "head.words.weight"  # our output matrix
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}  # of the BART and the Llama family
ROUNDED = 4e-3
"""How far a stored sinusoid may be from ours: bfloat16 rounds numbers near 1 by 2e-3."""


def under(ours: str, theirs: str, names: Names) -> dict[str, str]:
    """The same names, one level deeper on both sides.

    >>> under("attention", "self_attn", {"query": "q_proj"})
    {'attention.query': 'self_attn.q_proj'}
    """
    return {f"{ours}.{our}": f"{theirs}.{their}" for our, their in names.items()}


def rules(names: Names, fields: tuple[str, ...], piece: Piece = SAME) -> Rules:
    """A rule for each field of each module."""
    return tuple(Rule(f"{our}.{field}", f"{their}.{field}", piece) for our, their in names.items() for field in fields)


def packed(ours: str, theirs: str, transposed: bool = False) -> Rules:
    """Query, key and value in one tensor of theirs; `theirs` is its name up to "weight" or "bias"."""
    return tuple(
        Rule(f"{ours}.{name}.{field}", f"{theirs}{field}", Packed(part, 3, transposed and field == "weight"))
        for part, name in enumerate(("query", "key", "value"))
        for field in BOTH
    )


@dataclass(frozen=True)
class Sinusoid:
    """Positions that we compute, written into the table where an engine would learn them."""

    length: int
    base: float = 10000.0
    interleaved: bool = False

    def rows(self, like: Tensor, spare: int) -> Tensor:
        """(spare + length, D): zeros, then exactly what our model adds to embeddings of this kind."""
        width = like.size(1)
        waves = Sinusoidal(width, self.base, self.interleaved).encode(torch.arange(self.length)[None])[0]
        return torch.cat((torch.zeros(spare, width), waves)).to(like)


def position_tables(
    names: Names, sinusoid: Sinusoid | None, embeddings: str, spare: int = 0
) -> tuple[Rules, Constants]:
    """Tables of positions: learned, and then ours as well, or a sinusoid. `spare` rows stand before the first."""
    if sinusoid is None:
        return rules(names, WEIGHT), ()

    def made(ours: Tensors) -> Tensor:
        return sinusoid.rows(ours[embeddings], spare)

    reason = "a sinusoid, which we compute."
    return (), tuple(Constant(f"{their}.weight", reason, made, ROUNDED) for their in names.values())


# torch.nn: layers of one stack, without embeddings and head.

TORCH_FEEDFORWARD = {"feedforward.up": "linear1", "feedforward.down": "linear2"}
TORCH_ENCODER_NORMS = {"around_attention.norm": "norm1", "around_feedforward.norm": "norm2"}
TORCH_DECODER_NORMS = {
    "around_attention.norm": "norm1",
    "around_cross.norm": "norm2",
    "around_feedforward.norm": "norm3",
}


def torch_encoder(*, final_norm: bool) -> Table:
    """`torch.nn.TransformerEncoder`, with or without its `norm`."""
    return Table(
        "torch.nn.TransformerEncoder", _torch_stack({"attention": "self_attn"}, TORCH_ENCODER_NORMS, final_norm)
    )


def torch_decoder(*, final_norm: bool) -> Table:
    """`torch.nn.TransformerDecoder`, with or without its `norm`."""
    attentions = {"attention": "self_attn", "cross": "multihead_attn"}
    return Table("torch.nn.TransformerDecoder", _torch_stack(attentions, TORCH_DECODER_NORMS, final_norm))


def _torch_stack(attentions: Names, norms: Names, final_norm: bool) -> Rules:
    layer = "layers.{i}"
    outputs = {f"{our}.output": f"{their}.out_proj" for our, their in attentions.items()}
    return (
        *(one for our, their in under(layer, layer, attentions).items() for one in packed(our, f"{their}.in_proj_")),
        *rules(under(layer, layer, {**outputs, **TORCH_FEEDFORWARD, **norms}), BOTH),
        *(rules({"final_norm": "norm"}, BOTH) if final_norm else ()),
    )
