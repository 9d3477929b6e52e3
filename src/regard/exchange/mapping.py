"""Weight maps: data that renames and reshapes our tensors into those of another architecture, and back.

This rule of GPT-2 states that our query weight is the first third of their packed weight, transposed:

    Rule("decoder.layers.{i}.attention.query.weight", "transformer.h.{i}.attn.c_attn.weight", Chunk(0, 3, True))

`to_regard` and `to_hf` apply the rules in either direction. No tensor is lost silently: a missing, unexpected or
mismatched tensor is an error, and the error lists all of them (up to 20).

The maps themselves are in `torch_nn` (one stack), `encoder_only`, `decoder_only` and `encoder_decoder` (whole Hugging
Face models). A map renames tensors only; the settings of both sides must agree as well: T5 has `score.scale = 1`,
BART's positions have `offset = 2`, Marian's sinusoid has `layout = "halves"`, and so on.

>>> weight_map = WeightMap("Toy", (MappingRule("up.weight", "fc.weight", Transpose()),))
>>> to_regard(weight_map, {"fc.weight": torch.ones(2, 3)})["up.weight"].shape
torch.Size([3, 2])
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, assert_never

import torch
from torch import Tensor

from regard.base import limits
from regard.base.errors import RegardError
from regard.nn.positions import Sinusoidal

Tensors = Mapping[str, Tensor]
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
    make: Callable[[Tensors], Tensor] | None = None
    tolerance: float = 0.0
    """Largest accepted difference between their tensor and the computed one (rounding)."""


NameMap = Mapping[str, str]  # our module -> their module with the same parameters
Rules = tuple[MappingRule, ...]
Constants = tuple[Constant, ...]

WEIGHT_AND_BIAS = ("weight", "bias")
WEIGHT = ("weight",)
BIAS = ("bias",)
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


def to_regard(weight_map: WeightMap, theirs: Tensors, *, location: str | None = None) -> dict[str, Tensor]:
    """Convert their tensors to ours. Tensors that need no change are returned without a copy.

    Raises:
        RegardError: A tensor is missing, unexpected, of a wrong shape, or differs from its tied copy or constant.
    """
    rules = list(_expand_layers(weight_map, "theirs", theirs))
    constants = _match_constants(weight_map, theirs)
    tensors, faults = _match_tensors(rules, "theirs", theirs, ignored_names=constants)
    _raise_faults(location or weight_map.architecture, [*faults, *_find_shape_faults(rules, "theirs", tensors)])
    ours = {name: tensor for rule in rules for name, tensor in _extract(rule, tensors[rule.theirs])}
    _raise_faults(
        location or weight_map.architecture,
        [
            fault
            for name, constant in constants.items()
            for fault in _find_value_faults(name, constant, theirs[name], ours)
        ],
    )
    return ours


def to_hf(weight_map: WeightMap, ours: Tensors) -> dict[str, Tensor]:
    """Convert our tensors to theirs, constants included. Tensors that need no change are returned without a copy.

    Raises:
        RegardError: A tensor is missing, unexpected, of a wrong shape, or differs from its tied copy.
    """
    rules = list(_expand_layers(weight_map, "ours", ours))
    tensors, faults = _match_tensors(rules, "ours", ours, ignored_names=())
    _raise_faults(weight_map.architecture, [*faults, *_find_shape_faults(rules, "ours", tensors)])
    theirs: dict[str, Tensor] = {}
    for group in _group_by_theirs(rules):
        packed = _join([(rule.transform, tensors[rule.ours]) for rule in group])
        theirs |= dict.fromkeys(group[0].names("theirs"), packed)
    return theirs | {
        constant.theirs: constant.make(tensors) for constant in weight_map.constants if constant.make is not None
    }


def find_ignored(weight_map: WeightMap, theirs: Tensors) -> dict[str, str]:
    """Return the names of the tensors that `to_regard` ignores, each with the reason."""
    return {name: constant.reason for name, constant in _match_constants(weight_map, theirs).items()}


def find_rule(weight_map: WeightMap, ours: str) -> MappingRule:
    """Return the rule of one of our tensors, with the index of its layer.

    Raises:
        RegardError: The architecture has no such tensor, or shares it with an embedding.
    """
    for rule in weight_map.rules:
        if match := re.fullmatch(re.escape(rule.ours).replace(r"\{i\}", r"(\d+)"), ours):
            return replace(rule, ours=ours, theirs=rule.theirs.replace("{i}", "".join(match.groups())))
    raise RegardError(
        f"{weight_map.architecture} has no tensor of its own for {ours}.", location=weight_map.architecture
    )


def add_prefix(ours: str, theirs: str, names: NameMap) -> dict[str, str]:
    """Put a module prefix before the names on both sides.

    >>> add_prefix("attention", "self_attn", {"query": "q_proj"})
    {'attention.query': 'self_attn.q_proj'}
    """
    return {f"{ours}.{our}": f"{theirs}.{their}" for our, their in names.items()}


def make_rules(names: NameMap, fields: tuple[str, ...], transform: Transform = IDENTITY) -> Rules:
    """Make one rule for each field (`weight`, `bias`) of each module."""
    return tuple(
        MappingRule(f"{our}.{field}", f"{their}.{field}", transform) for our, their in names.items() for field in fields
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


@dataclass(frozen=True)
class Sinusoid:
    """Our sinusoidal positions, to be stored in the table where the other architecture keeps learned positions."""

    length: int
    base: float = 10000.0
    interleaved: bool = False

    def make_table(self, like: Tensor, offset: int) -> Tensor:
        """Return (offset + length, D): rows of zeros, then the encodings that our model adds to its embeddings."""
        width = like.size(1)
        encodings = Sinusoidal(width, self.base, self.interleaved).encode(torch.arange(self.length)[None])[0]
        return torch.cat((torch.zeros(offset, width), encodings)).to(like)


def make_position_rules(
    names: NameMap, sinusoid: Sinusoid | None, embedding: str, offset: int = 0
) -> tuple[Rules, Constants]:
    """Map position tables: learned on both sides, or computed by us as `sinusoid` and stored by them.

    Args:
        names: Our position module -> theirs.
        sinusoid: Our positions, or None if they are learned.
        embedding: Name of our embedding, which gives the width and the dtype of the table.
        offset: Number of unused rows before the first position of their table.
    """
    if sinusoid is None:
        return make_rules(names, WEIGHT), ()

    def make_table(ours: Tensors) -> Tensor:
        return sinusoid.make_table(ours[embedding], offset)

    reason = "sinusoidal positions, which Regard computes."
    return (), tuple(Constant(f"{their}.weight", reason, make_table, ROUNDING_TOLERANCE) for their in names.values())


def _expand_layers(weight_map: WeightMap, side: Side, tensors: Tensors) -> Iterator[MappingRule]:
    """Repeat the rules of a layer for each layer of the tensors, at least once."""
    for rule in weight_map.rules:
        pattern = rule.names(side)[0]
        if "{i}" not in pattern:
            yield rule
            continue
        for number in range(max(1, _count_layers(pattern, tensors))):
            yield replace(rule, ours=_insert_layer(rule.ours, number), theirs=_insert_layer(rule.theirs, number))


def _count_layers(pattern: str, names: Iterable[str]) -> int:
    # Count the layers instead of using the largest index: a file that skips an index then has a missing and an
    # unexpected layer, and a file with "layer 999999999" does not cost a billion rules.
    layer = re.compile(re.escape(pattern.partition("{i}")[0]) + r"(\d+)\.")
    return len({match[1] for name in names if (match := layer.match(name))})


def _insert_layer(pattern: str, number: int) -> str:
    return pattern.replace("{i}", str(number))


def _match_constants(weight_map: WeightMap, theirs: Tensors) -> dict[str, Constant]:
    patterns = [(re.escape(constant.theirs).replace(r"\{i\}", r"\d+"), constant) for constant in weight_map.constants]
    return {name: constant for name in theirs for pattern, constant in patterns if re.fullmatch(pattern, name)}


def _match_tensors(
    rules: list[MappingRule], side: Side, tensors: Tensors, ignored_names: Iterable[str]
) -> tuple[dict[str, Tensor], list[str]]:
    """Return the tensor of each rule by its first name, and the missing, unexpected and unequal tied tensors."""
    matched: dict[str, Tensor] = {}
    faults: dict[str, None] = {}  # an ordered set: all chunks of a packed tensor report the same missing name
    expected_names = set(ignored_names)
    for rule in rules:
        names = rule.names(side)
        expected_names.update(names)
        present = [name for name in names if name in tensors]
        if not present:
            faults[f"{names[0]} is missing."] = None
            continue
        matched[names[0]] = tensors[present[0]]
        for copy in present[1:]:
            if not torch.equal(tensors[copy], tensors[present[0]]):
                faults[f"{copy} differs from {present[0]}, but this architecture ties them."] = None
    faults |= dict.fromkeys(f"{name} is unexpected." for name in tensors if name not in expected_names)
    return matched, list(faults)


def _group_by_theirs(rules: list[MappingRule]) -> list[list[MappingRule]]:
    """Group the rules by their tensor: one rule each, or all chunks of a packed tensor."""
    groups: dict[str, list[MappingRule]] = {}
    for rule in rules:
        groups.setdefault(rule.theirs, []).append(rule)
    return list(groups.values())


def _find_shape_faults(rules: list[MappingRule], side: Side, tensors: Tensors) -> Iterator[str]:
    """Report tensors whose shape does not allow their split, concatenation or squeeze."""
    for group in _group_by_theirs(rules):
        shapes = {
            rule.names(side)[0]: tuple(tensors[name].shape)
            for rule in group
            if (name := rule.names(side)[0]) in tensors
        }
        if len(set(shapes.values())) > 1:
            yield f"{', '.join(shapes)} have different shapes, but {group[0].theirs} packs equal shapes."
        for name, shape in shapes.items():
            match group[0].transform:
                case TensorChunk(chunks=chunks, transposed=transposed) if side == "theirs" and (
                    not shape or shape[-1 if transposed else 0] % chunks
                ):
                    yield f"{name} of shape {shape} cannot be split into {chunks} equal parts."
                case Unsqueeze(side=unsqueezed_side) if unsqueezed_side == side and shape[:1] != (1,):
                    yield f"{name} of shape {shape} must have a first axis of size 1."
                case _:
                    pass


def _find_value_faults(name: str, constant: Constant, theirs: Tensor, ours: Tensors) -> Iterator[str]:
    if constant.make is None:
        return
    expected = constant.make(ours).to(theirs)
    if theirs.shape != expected.shape or not torch.allclose(theirs, expected, rtol=0.0, atol=constant.tolerance):
        yield f"{name} has unexpected values. It should be: {constant.reason}"


def _raise_faults(location: str, faults: list[str]) -> None:
    if faults:
        lines = ["The weights do not match the weight map:", *(f"  - {fault[:200]}" for fault in faults)]
        if (omitted := len(faults) - limits.MAX_REPORTED) > 0:
            lines[limits.MAX_REPORTED + 1 :] = [f"  - and {omitted:,} more."]
        raise RegardError(
            "\n".join(lines),
            location=location,
            hint="Check that the weights have this architecture, and that `tied` and `bias` agree with them.",
        )


def _extract(rule: MappingRule, theirs: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Return our part of their tensor under each of our names."""
    transform = rule.transform
    match transform:
        case Identity():
            ours = theirs
        case Transpose():
            ours = theirs.T.contiguous()
        case TensorChunk(index=index, chunks=chunks):
            whole = theirs.T if transform.transposed else theirs
            # A view would keep the packed tensor alive.
            ours = whole.chunk(chunks)[index].clone(memory_format=torch.contiguous_format)
        case Unsqueeze(side=side):
            ours = theirs[0] if side == "theirs" else theirs[None]
        case _:
            assert_never(transform)
    return ((name, ours) for name in rule.names("ours"))


def _join(parts: list[tuple[Transform, Tensor]]) -> Tensor:
    """Build their tensor from all of our tensors that it packs."""
    transform, ours = parts[0]
    match transform:
        case Identity():
            return ours
        case Transpose():
            return ours.T.contiguous()
        case TensorChunk(transposed=transposed):
            ordered = sorted(parts, key=lambda pair: pair[0].index if isinstance(pair[0], TensorChunk) else 0)
            whole = torch.cat([tensor for _, tensor in ordered])
            return whole.T.contiguous() if transposed else whole
        case Unsqueeze(side=side):
            return ours[None] if side == "theirs" else ours[0]
        case _:
            assert_never(transform)
