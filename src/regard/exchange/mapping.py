"""The same weights under other names: how a table joins our tensors to another engine's, in both directions.

A table is data. This line of GPT-2's says that our query matrix is the first third of their packed one, turned over:

    Rule("decoder.layers.{i}.attention.query.weight", "transformer.h.{i}.attn.c_attn.weight", Packed(0, 3, True))

`to_ours` and `to_theirs` read it either way. Nothing is lost on the way: a tensor that is missing, left over or
not what the table says is a fault, and all faults are named at once.

>>> table = WeightMap("Toy", (Rule("up.weight", "fc.weight", Transpose()),))
>>> to_ours(table, {"fc.weight": torch.ones(2, 3)})["up.weight"].shape
torch.Size([3, 2])
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, assert_never

import torch
from torch import Tensor

from regard.base.errors import RegardError

Tensors = Mapping[str, Tensor]
Side = Literal["ours", "theirs"]


@dataclass(frozen=True)
class Identity:
    """The tensor as it is."""


@dataclass(frozen=True)
class Transpose:
    """Their matrix is ours turned over: Conv1D keeps (in, out), a Linear (out, in)."""


@dataclass(frozen=True)
class Chunk:
    """Ours is one of several equal parts that they keep as one tensor, part after part along the output."""

    index: int
    chunks: int
    transposed: bool = False


@dataclass(frozen=True)
class Unsqueeze:
    """The same numbers, with one more axis of size 1 in front on one side."""

    side: Side


Transform = Identity | Transpose | Chunk | Unsqueeze
IDENTITY = Identity()


@dataclass(frozen=True)
class Rule:
    """One tensor of ours and where it is in theirs. `{i}` stands for the number of a layer.

    Copies are further names of the same tensor (tied weights): any of the names may be given, those given
    must be equal, and what comes out has them all.
    """

    ours: str
    theirs: str
    transform: Transform = IDENTITY
    our_copies: tuple[str, ...] = ()
    their_copies: tuple[str, ...] = ()

    def names(self, side: Side) -> tuple[str, ...]:
        """All names of the tensor on one side."""
        return (self.ours, *self.our_copies) if side == "ours" else (self.theirs, *self.their_copies)


@dataclass(frozen=True)
class Constant:
    """A tensor of theirs that we do not keep, and why.

    With `make` it follows from our tensors: it is made for them, and checked when it comes from them. Without,
    it is what some files hold and no model needs: it is left out, and never made.
    """

    theirs: str
    reason: str
    make: Callable[[Tensors], Tensor] | None = None
    tolerance: float = 0.0
    """How far theirs may be from what we make: rounding, where a function is computed."""


@dataclass(frozen=True)
class WeightMap:
    """All rules of one architecture."""

    architecture: str
    rules: tuple[Rule, ...]
    constants: tuple[Constant, ...] = ()

    @property
    def their_copies(self) -> frozenset[str]:
        """Their names that only repeat another tensor: a file of theirs may leave them out."""
        return frozenset(name for rule in self.rules for name in rule.their_copies)


def to_ours(weight_map: WeightMap, theirs: Tensors) -> dict[str, Tensor]:
    """Our tensors out of theirs. What needs no change is passed on, not copied."""
    rules = list(_expand_layers(weight_map, "theirs", theirs))
    constants = _match_constants(weight_map, theirs)
    tensors, faults = _match_tensors(rules, "theirs", theirs, ignored_names=constants)
    _raise_faults(weight_map, [*faults, *_find_shape_faults(rules, "theirs", tensors)])
    ours = {name: tensor for rule in rules for name, tensor in _extract(rule, tensors[rule.theirs])}
    _raise_faults(
        weight_map,
        [
            fault
            for name, constant in constants.items()
            for fault in _find_value_faults(name, constant, theirs[name], ours)
        ],
    )
    return ours


def to_theirs(weight_map: WeightMap, ours: Tensors) -> dict[str, Tensor]:
    """Their tensors out of ours, constants included. What needs no change is passed on, not copied."""
    rules = list(_expand_layers(weight_map, "ours", ours))
    tensors, faults = _match_tensors(rules, "ours", ours, ignored_names=())
    _raise_faults(weight_map, [*faults, *_find_shape_faults(rules, "ours", tensors)])
    theirs: dict[str, Tensor] = {}
    for group in _group_by_theirs(rules):
        packed = _join([(rule.transform, tensors[rule.ours]) for rule in group])
        theirs |= dict.fromkeys(group[0].names("theirs"), packed)
    return theirs | {
        constant.theirs: constant.make(tensors) for constant in weight_map.constants if constant.make is not None
    }


def ignored(weight_map: WeightMap, theirs: Tensors) -> dict[str, str]:
    """The tensors that `to_ours` does not take over, each with the reason."""
    return {name: constant.reason for name, constant in _match_constants(weight_map, theirs).items()}


def _expand_layers(weight_map: WeightMap, side: Side, tensors: Tensors) -> Iterator[Rule]:
    """The rules with layers numbered: as many layers as the tensors have, and at least one."""
    for rule in weight_map.rules:
        pattern = rule.names(side)[0]
        if "{i}" not in pattern:
            yield rule
            continue
        for number in range(max(1, _count_layers(pattern, tensors))):
            yield replace(rule, ours=_insert_layer(rule.ours, number), theirs=_insert_layer(rule.theirs, number))


def _count_layers(pattern: str, names: Iterable[str]) -> int:
    # Layers are counted, not taken from the largest number: a file that skips one then has a layer missing
    # and a layer left over, and a file with a "layer 999999999" does not cost a billion rules.
    layer = re.compile(re.escape(pattern.partition("{i}")[0]) + r"(\d+)\.")
    return len({match[1] for name in names if (match := layer.match(name))})


def _insert_layer(pattern: str, number: int) -> str:
    return pattern.replace("{i}", str(number))


def _match_constants(weight_map: WeightMap, theirs: Tensors) -> dict[str, Constant]:
    patterns = [(re.escape(constant.theirs).replace(r"\{i\}", r"\d+"), constant) for constant in weight_map.constants]
    return {name: constant for name in theirs for pattern, constant in patterns if re.fullmatch(pattern, name)}


def _match_tensors(
    rules: list[Rule], side: Side, given: Tensors, ignored_names: Iterable[str]
) -> tuple[dict[str, Tensor], list[str]]:
    """The tensor of each rule by its first name, and what is missing, left over or no copy."""
    matched: dict[str, Tensor] = {}
    faults: dict[str, None] = {}  # a set that keeps its order: the parts of a packed tensor all miss the same one
    expected_names = set(ignored_names)
    for rule in rules:
        names = rule.names(side)
        expected_names.update(names)
        present = [name for name in names if name in given]
        if not present:
            faults[f"{names[0]} is missing."] = None
            continue
        matched[names[0]] = given[present[0]]
        for copy in present[1:]:
            if not torch.equal(given[copy], given[present[0]]):
                faults[f"{copy} differs from {present[0]}, but both are one tensor here (tied)."] = None
    faults |= dict.fromkeys(f"{name} is left over." for name in given if name not in expected_names)
    return matched, list(faults)


def _group_by_theirs(rules: list[Rule]) -> list[list[Rule]]:
    """The rules of each tensor of theirs: one, or all parts of what is packed."""
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(rule.theirs, []).append(rule)
    return list(groups.values())


def _find_shape_faults(rules: list[Rule], side: Side, tensors: Tensors) -> Iterator[str]:
    """Tensors that would lose something, or get muddled, if they were cut or joined."""
    for group in _group_by_theirs(rules):
        shapes = {
            rule.names(side)[0]: tuple(tensors[name].shape)
            for rule in group
            if (name := rule.names(side)[0]) in tensors
        }
        if len(set(shapes.values())) > 1:
            yield f"{', '.join(shapes)} are of different shapes, but {group[0].theirs} packs equal ones."
        for name, shape in shapes.items():
            match group[0].transform:
                case Chunk(chunks=chunks, transposed=transposed) if side == "theirs" and (
                    not shape or shape[-1 if transposed else 0] % chunks
                ):
                    yield f"{name} of shape {shape} cannot be cut into {chunks} equal parts."
                case Unsqueeze(side=unsqueezed_side) if unsqueezed_side == side and shape[:1] != (1,):
                    yield f"{name} of shape {shape} holds more or less than one row."
                case _:
                    pass


def _find_value_faults(name: str, constant: Constant, given: Tensor, ours: Tensors) -> Iterator[str]:
    if constant.make is None:
        return
    expected = constant.make(ours).to(given)
    if given.shape != expected.shape or not torch.allclose(given, expected, rtol=0.0, atol=constant.tolerance):
        yield f"{name} is not what it must be: {constant.reason}"


def _raise_faults(weight_map: WeightMap, faults: list[str]) -> None:
    if faults:
        raise RegardError(
            "\n".join(["The weights do not fit the table of names:", *(f"  - {fault}" for fault in faults)]),
            where=weight_map.architecture,
            fix="Check that the weights are of this architecture, and that tied and bias are as the table says.",
        )


def _extract(rule: Rule, theirs: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Our piece of their tensor, under all of our names."""
    transform = rule.transform
    match transform:
        case Identity():
            ours = theirs
        case Transpose():
            ours = theirs.T.contiguous()
        case Chunk(index=index, chunks=chunks):
            whole = theirs.T if transform.transposed else theirs
            ours = whole.chunk(chunks)[index].clone(memory_format=torch.contiguous_format)  # let the packed one go
        case Unsqueeze(side=side):
            ours = theirs[0] if side == "theirs" else theirs[None]
        case _:
            assert_never(transform)
    return ((name, ours) for name in rule.names("ours"))


def _join(parts: list[tuple[Transform, Tensor]]) -> Tensor:
    """Their tensor, out of all the pieces of ours that make it up."""
    transform, ours = parts[0]
    match transform:
        case Identity():
            return ours
        case Transpose():
            return ours.T.contiguous()
        case Chunk(transposed=transposed):
            ordered = sorted(parts, key=lambda pair: pair[0].index if isinstance(pair[0], Chunk) else 0)
            whole = torch.cat([tensor for _, tensor in ordered])
            return whole.T.contiguous() if transposed else whole
        case Unsqueeze(side=side):
            return ours[None] if side == "theirs" else ours[0]
        case _:
            assert_never(transform)
