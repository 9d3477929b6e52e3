"""Our parameter names and those of other engines: what all tables are written with, and those of torch's own stacks.

>>> from regard.exchange.mapping import to_ours
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

from regard.exchange.mapping import IDENTITY, Chunk, Constant, Rule, Tensors, Transform, WeightMap
from regard.nn.positions import Sinusoidal

NameMap = Mapping[str, str]  # a module of ours -> the module of theirs with the same parameters
Rules = tuple[Rule, ...]
Constants = tuple[Constant, ...]

WEIGHT_AND_BIAS = ("weight", "bias")
WEIGHT = ("weight",)
BIAS = ("bias",)
SOURCE_EMBEDDING, TARGET_EMBEDDING, TOKEN_EMBEDDING = (
    "source.embedding.weight",
    "target.embedding.weight",
    "tokens.embedding.weight",
)  # our embeddings
HEAD_WEIGHT = "head.projection.weight"  # our output matrix
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}  # of the BART and the Llama family
ROUNDING_TOLERANCE = 4e-3
"""How far a stored sinusoid may be from ours: bfloat16 rounds numbers near 1 by 2e-3."""


def prefixed(ours: str, theirs: str, names: NameMap) -> dict[str, str]:
    """The same names, one level deeper on both sides.

    >>> prefixed("attention", "self_attn", {"query": "q_proj"})
    {'attention.query': 'self_attn.q_proj'}
    """
    return {f"{ours}.{our}": f"{theirs}.{their}" for our, their in names.items()}


def make_rules(names: NameMap, fields: tuple[str, ...], transform: Transform = IDENTITY) -> Rules:
    """A rule for each field of each module."""
    return tuple(
        Rule(f"{our}.{field}", f"{their}.{field}", transform) for our, their in names.items() for field in fields
    )


def make_qkv_rules(ours: str, theirs: str, transposed: bool = False) -> Rules:
    """Query, key and value in one tensor of theirs; `theirs` is its name up to "weight" or "bias"."""
    return tuple(
        Rule(f"{ours}.{name}.{field}", f"{theirs}{field}", Chunk(part, 3, transposed and field == "weight"))
        for part, name in enumerate(("query", "key", "value"))
        for field in WEIGHT_AND_BIAS
    )


@dataclass(frozen=True)
class Sinusoid:
    """Positions that we compute, written into the table where an engine would learn them."""

    length: int
    base: float = 10000.0
    interleaved: bool = False

    def make_table(self, like: Tensor, offset: int) -> Tensor:
        """(spare + length, D): zeros, then exactly what our model adds to embeddings of this kind."""
        width = like.size(1)
        encodings = Sinusoidal(width, self.base, self.interleaved).encode(torch.arange(self.length)[None])[0]
        return torch.cat((torch.zeros(offset, width), encodings)).to(like)


def make_position_rules(
    names: NameMap, sinusoid: Sinusoid | None, embedding: str, offset: int = 0
) -> tuple[Rules, Constants]:
    """Tables of positions: learned, and then ours as well, or a sinusoid. `spare` rows stand before the first."""
    if sinusoid is None:
        return make_rules(names, WEIGHT), ()

    def make_table(ours: Tensors) -> Tensor:
        return sinusoid.make_table(ours[embedding], offset)

    reason = "a sinusoid, which we compute."
    return (), tuple(Constant(f"{their}.weight", reason, make_table, ROUNDING_TOLERANCE) for their in names.values())


# torch.nn: layers of one stack, without embeddings and head.

TORCH_FEEDFORWARD = {"feedforward.up": "linear1", "feedforward.down": "linear2"}
TORCH_ENCODER_NORMS = {"attention_residual.norm": "norm1", "feedforward_residual.norm": "norm2"}
TORCH_DECODER_NORMS = {
    "attention_residual.norm": "norm1",
    "cross_residual.norm": "norm2",
    "feedforward_residual.norm": "norm3",
}


def torch_encoder(*, final_norm: bool) -> WeightMap:
    """`torch.nn.TransformerEncoder`, with or without its `norm`."""
    return WeightMap(
        "torch.nn.TransformerEncoder", _make_stack_rules({"attention": "self_attn"}, TORCH_ENCODER_NORMS, final_norm)
    )


def torch_decoder(*, final_norm: bool) -> WeightMap:
    """`torch.nn.TransformerDecoder`, with or without its `norm`."""
    attentions = {"attention": "self_attn", "cross": "multihead_attn"}
    return WeightMap("torch.nn.TransformerDecoder", _make_stack_rules(attentions, TORCH_DECODER_NORMS, final_norm))


def _make_stack_rules(attentions: NameMap, norms: NameMap, final_norm: bool) -> Rules:
    layer = "layers.{i}"
    outputs = {f"{our}.output": f"{their}.out_proj" for our, their in attentions.items()}
    return (
        *(
            rule
            for our, their in prefixed(layer, layer, attentions).items()
            for rule in make_qkv_rules(our, f"{their}.in_proj_")
        ),
        *make_rules(prefixed(layer, layer, {**outputs, **TORCH_FEEDFORWARD, **norms}), WEIGHT_AND_BIAS),
        *(make_rules({"final_norm": "norm"}, WEIGHT_AND_BIAS) if final_norm else ()),
    )
