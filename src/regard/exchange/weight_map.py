"""Weight maps: rules that rename and reshape our tensors for another architecture, and back.

This rule of GPT-2 states that our query weight is the first third of their packed weight, transposed:

    MappingRule("decoder.layers.{i}.attention.query.weight", "transformer.h.{i}.attn.c_attn.weight",
                TensorChunk(0, 3, True))

`regard.exchange.mapping` applies the rules in either direction. The maps themselves are in the architectures of
`huggingface`. A map renames tensors only; the settings of both sides must agree as well: T5 has `score.scale = 1`,
BART's positions have `offset = 2`, Marian's sinusoid has `layout = "halves"`, and so on. This module imports no torch,
because training asks architectures whether they can represent the model.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from regard.base.errors import RegardError
from regard.config.parts import PositionConfig, SinusoidalConfig

if TYPE_CHECKING:
    from torch import Tensor

Tensors = Mapping[str, "Tensor"]
Side = Literal["ours", "theirs"]


@dataclass(frozen=True)
class Identity:
    """Both sides store the same tensor."""


@dataclass(frozen=True)
class Transpose:
    """Their matrix is ours transposed: Conv1D stores (in, out), Linear (out, in)."""


@dataclass(frozen=True)
class TensorChunk:
    """Ours is part `index` of the `chunks` equal parts of their tensor, split along the output axis."""

    index: int
    chunks: int
    transposed: bool = False


@dataclass(frozen=True)
class Unsqueeze:
    """One side (`side`) has an additional leading axis of size 1."""

    side: Side


Transform = Identity | Transpose | TensorChunk | Unsqueeze
IDENTITY = Identity()


@dataclass(frozen=True)
class MappingRule:
    """The name of one tensor on both sides. `{i}` stands for the index of a layer.

    Copies are further names of the same tensor (tied weights). The input needs at least one of the names, and all
    that are present must be equal. The output has all of them.
    """

    ours: str
    theirs: str
    transform: Transform = IDENTITY
    regard_copies: tuple[str, ...] = ()
    hf_copies: tuple[str, ...] = ()

    def names(self, side: Side) -> tuple[str, ...]:
        """Return all names of the tensor on one side."""
        return (self.ours, *self.regard_copies) if side == "ours" else (self.theirs, *self.hf_copies)


@dataclass(frozen=True)
class Constant:
    """One of their tensors that corresponds to no weight of ours, and the reason.

    With `make`, `to_hf` computes the tensor from ours and `to_regard` checks it. Without `make`, some files contain
    the tensor but no model needs it: `to_regard` ignores it and `to_hf` omits it.
    """

    theirs: str
    reason: str
    make: "Callable[[Tensors], Tensor] | None" = None
    tolerance: float = 0.0
    """Largest accepted difference between their tensor and the computed one (rounding)."""


NameMap = Mapping[str, str]  # our module -> their module with the same parameters
Rules = tuple[MappingRule, ...]
Constants = tuple[Constant, ...]

WEIGHT_AND_BIAS = ("weight", "bias")
SOURCE_EMBEDDING = "source.embedding.weight"
TARGET_EMBEDDING = "target.embedding.weight"
TOKEN_EMBEDDING = "tokens.embedding.weight"  # noqa: S105 - no password
HEAD_WEIGHT = "head.projection.weight"  # our output projection
PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}  # in the BART and Llama families
ROUNDING_TOLERANCE = 4e-3
"""Largest accepted difference between a stored sinusoid and ours: bfloat16 rounds numbers near 1 by 2e-3."""


@dataclass(frozen=True)
class WeightMap:
    """All rules and constants of one architecture."""

    architecture: str
    rules: tuple[MappingRule, ...]
    constants: tuple[Constant, ...] = ()

    @property
    def hf_copies(self) -> frozenset[str]:
        """Their names that repeat another tensor (tied weights); a checkpoint may omit them."""
        return frozenset(name for rule in self.rules for name in rule.hf_copies)


def find_rule(weight_map: WeightMap, ours: str) -> MappingRule:
    """Return the rule of one of our tensors, with the index of its layer.

    Raises:
        RegardError: The architecture has no such tensor, or shares it with an embedding.
    """
    for rule in weight_map.rules:
        if match := re.fullmatch(re.escape(rule.ours).replace(r"\{i\}", r"(\d+)"), ours):
            return replace(rule, ours=ours, theirs=rule.theirs.replace("{i}", "".join(match.groups())))
    raise RegardError(f"{weight_map.architecture} has no separate tensor for {ours}.", location=weight_map.architecture)


def add_prefix(ours: str, theirs: str, names: NameMap) -> dict[str, str]:
    """Put a module prefix before the names on both sides.

    >>> add_prefix("attention", "self_attn", {"query": "q_proj"})
    {'attention.query': 'self_attn.q_proj'}
    """
    return {f"{ours}.{our}": f"{theirs}.{their}" for our, their in names.items()}


def make_rules(names: NameMap, *fields: str, transform: Transform = IDENTITY) -> Rules:
    """Make one rule for each field of each module; by default for `weight` and `bias`."""
    return tuple(
        MappingRule(f"{our}.{field}", f"{their}.{field}", transform)
        for our, their in names.items()
        for field in fields or WEIGHT_AND_BIAS
    )


def make_qkv_rules(ours: str, theirs: str, transposed: bool = False) -> Rules:
    """Make the rules for query, key and value that are packed into one tensor.

    Args:
        ours: Our attention module.
        theirs: Name of their packed tensor up to `weight` or `bias`, e.g. `self_attn.in_proj_`.
        transposed: Whether their weight is stored as (in, out).
    """
    return tuple(
        MappingRule(
            f"{ours}.{name}.{field}", f"{theirs}{field}", TensorChunk(part, 3, transposed and field == "weight")
        )
        for part, name in enumerate(("query", "key", "value"))
        for field in WEIGHT_AND_BIAS
    )


def make_position_rules(
    names: NameMap, position: PositionConfig, max_positions: int, embedding: str, offset: int = 0
) -> tuple[Rules, Constants]:
    """Map position tables: learned on both sides, or computed by us as a sinusoid and stored by them.

    Args:
        names: Our position module -> theirs.
        position: Our positions, learned or sinusoidal.
        max_positions: Number of sinusoidal positions that they store.
        embedding: Name of our embedding, which gives the width and the dtype of the table.
        offset: Number of unused rows before the first position of their table.
    """
    if not isinstance(position, SinusoidalConfig):
        return make_rules(names, "weight"), ()

    def make_table(ours: Tensors) -> "Tensor":
        import torch  # only when needed

        from regard.nn.positions import Sinusoidal

        width = ours[embedding].size(1)
        encoding = Sinusoidal(width, position.base, position.layout == "interleaved")
        rows = encoding.encode(torch.arange(max_positions)[None])[0]  # (positions, D)
        return torch.cat((torch.zeros(offset, width), rows)).to(ours[embedding])

    reason = "sinusoidal positions, which Regard computes."
    return (), tuple(Constant(f"{their}.weight", reason, make_table, ROUNDING_TOLERANCE) for their in names.values())
