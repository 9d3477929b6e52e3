"""The same weights under other names: how a table joins our tensors to another engine's, in both directions.

A table is data. This line of GPT-2's says that our query matrix is the first third of their packed one, turned over:

    Rule("decoder.layers.{i}.attention.query.weight", "transformer.h.{i}.attn.c_attn.weight", Packed(0, 3, True))

`to_ours` and `to_theirs` read it either way. Nothing is lost on the way: a tensor that is missing, left over or
not what the table says is a fault, and all faults are named at once.

>>> table = Table("Toy", (Rule("up.weight", "fc.weight", Transposed()),))
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
class Same:
    """The tensor as it is."""


@dataclass(frozen=True)
class Transposed:
    """Their matrix is ours turned over: Conv1D keeps (in, out), a Linear (out, in)."""


@dataclass(frozen=True)
class Packed:
    """Ours is one of several equal parts that they keep as one tensor, part after part along the output."""

    part: int
    of: int
    transposed: bool = False


@dataclass(frozen=True)
class Wrapped:
    """The same numbers, with one more axis of size 1 in front on one side."""

    side: Side


Piece = Same | Transposed | Packed | Wrapped
SAME = Same()


@dataclass(frozen=True)
class Rule:
    """One tensor of ours and where it is in theirs. `{i}` stands for the number of a layer.

    Copies are further names of the same tensor (tied weights): any of the names may be given, those given
    must be equal, and what comes out has them all.
    """

    ours: str
    theirs: str
    piece: Piece = SAME
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
class Table:
    """All rules of one architecture."""

    architecture: str
    rules: tuple[Rule, ...]
    constants: tuple[Constant, ...] = ()

    @property
    def their_copies(self) -> frozenset[str]:
        """Their names that only repeat another tensor: a file of theirs may leave them out."""
        return frozenset(name for rule in self.rules for name in rule.their_copies)


def to_ours(table: Table, theirs: Tensors) -> dict[str, Tensor]:
    """Our tensors out of theirs. What needs no change is passed on, not copied."""
    rules = list(_expanded(table, "theirs", theirs))
    constants = _constants(table, theirs)
    found, faults = _found(rules, "theirs", theirs, also_known=constants)
    _refuse(table, [*faults, *_shape_faults(rules, "theirs", found)])
    ours = {name: tensor for rule in rules for name, tensor in _cut(rule, found[rule.theirs])}
    _refuse(table, [fault for name, one in constants.items() for fault in _value_faults(name, one, theirs[name], ours)])
    return ours


def to_theirs(table: Table, ours: Tensors) -> dict[str, Tensor]:
    """Their tensors out of ours, constants included. What needs no change is passed on, not copied."""
    rules = list(_expanded(table, "ours", ours))
    found, faults = _found(rules, "ours", ours, also_known=())
    _refuse(table, [*faults, *_shape_faults(rules, "ours", found)])
    theirs: dict[str, Tensor] = {}
    for group in _sharing(rules):
        joined = _join([(rule.piece, found[rule.ours]) for rule in group])
        theirs |= dict.fromkeys(group[0].names("theirs"), joined)
    return theirs | {one.theirs: one.make(found) for one in table.constants if one.make is not None}


def left_out(table: Table, theirs: Tensors) -> dict[str, str]:
    """The tensors that `to_ours` does not take over, each with the reason."""
    return {name: constant.reason for name, constant in _constants(table, theirs).items()}


def _expanded(table: Table, side: Side, tensors: Tensors) -> Iterator[Rule]:
    """The rules with layers numbered: as many layers as the tensors have, and at least one."""
    for rule in table.rules:
        pattern = rule.names(side)[0]
        if "{i}" not in pattern:
            yield rule
            continue
        for number in range(max(1, _layers(pattern, tensors))):
            yield replace(rule, ours=_numbered(rule.ours, number), theirs=_numbered(rule.theirs, number))


def _layers(pattern: str, names: Iterable[str]) -> int:
    # Layers are counted, not taken from the largest number: a file that skips one then has a layer missing
    # and a layer left over, and a file with a "layer 999999999" does not cost a billion rules.
    layer = re.compile(re.escape(pattern.partition("{i}")[0]) + r"(\d+)\.")
    return len({match[1] for name in names if (match := layer.match(name))})


def _numbered(pattern: str, number: int) -> str:
    return pattern.replace("{i}", str(number))


def _constants(table: Table, theirs: Tensors) -> dict[str, Constant]:
    patterns = [(re.escape(one.theirs).replace(r"\{i\}", r"\d+"), one) for one in table.constants]
    return {name: one for name in theirs for pattern, one in patterns if re.fullmatch(pattern, name)}


def _found(
    rules: list[Rule], side: Side, given: Tensors, also_known: Iterable[str]
) -> tuple[dict[str, Tensor], list[str]]:
    """The tensor of each rule by its first name, and what is missing, left over or no copy."""
    found: dict[str, Tensor] = {}
    faults: dict[str, None] = {}  # a set that keeps its order: the parts of a packed tensor all miss the same one
    known = set(also_known)
    for rule in rules:
        names = rule.names(side)
        known.update(names)
        present = [name for name in names if name in given]
        if not present:
            faults[f"{names[0]} is missing."] = None
            continue
        found[names[0]] = given[present[0]]
        for copy in present[1:]:
            if not torch.equal(given[copy], given[present[0]]):
                faults[f"{copy} differs from {present[0]}, but both are one tensor here (tied)."] = None
    faults |= dict.fromkeys(f"{name} is left over." for name in given if name not in known)
    return found, list(faults)


def _sharing(rules: list[Rule]) -> list[list[Rule]]:
    """The rules of each tensor of theirs: one, or all parts of what is packed."""
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(rule.theirs, []).append(rule)
    return list(groups.values())


def _shape_faults(rules: list[Rule], side: Side, found: Tensors) -> Iterator[str]:
    """Tensors that would lose something, or get muddled, if they were cut or joined."""
    for group in _sharing(rules):
        shapes = {
            rule.names(side)[0]: tuple(found[name].shape) for rule in group if (name := rule.names(side)[0]) in found
        }
        if len(set(shapes.values())) > 1:
            yield f"{', '.join(shapes)} are of different shapes, but {group[0].theirs} packs equal ones."
        for name, shape in shapes.items():
            match group[0].piece:
                case Packed(of=of, transposed=transposed) if side == "theirs" and (
                    not shape or shape[-1 if transposed else 0] % of
                ):
                    yield f"{name} of shape {shape} cannot be cut into {of} equal parts."
                case Wrapped(side=wrapped) if wrapped == side and shape[:1] != (1,):
                    yield f"{name} of shape {shape} holds more or less than one row."
                case _:
                    pass


def _value_faults(name: str, constant: Constant, given: Tensor, ours: Tensors) -> Iterator[str]:
    if constant.make is None:
        return
    made = constant.make(ours).to(given)
    if given.shape != made.shape or not torch.allclose(given, made, rtol=0.0, atol=constant.tolerance):
        yield f"{name} is not what it must be: {constant.reason}"


def _refuse(table: Table, faults: list[str]) -> None:
    if faults:
        raise RegardError(
            "\n".join(["The weights do not fit the table of names:", *(f"  - {fault}" for fault in faults)]),
            where=table.architecture,
            fix="Check that the weights are of this architecture, and that tied and bias are as the table says.",
        )


def _cut(rule: Rule, theirs: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Our piece of their tensor, under all of our names."""
    piece = rule.piece
    match piece:
        case Same():
            ours = theirs
        case Transposed():
            ours = theirs.T.contiguous()
        case Packed(part=part, of=of):
            whole = theirs.T if piece.transposed else theirs
            ours = whole.chunk(of)[part].clone(memory_format=torch.contiguous_format)  # let the packed one go
        case Wrapped(side=side):
            ours = theirs[0] if side == "theirs" else theirs[None]
        case _:
            assert_never(piece)
    return ((name, ours) for name in rule.names("ours"))


def _join(parts: list[tuple[Piece, Tensor]]) -> Tensor:
    """Their tensor, out of all the pieces of ours that make it up."""
    piece, ours = parts[0]
    match piece:
        case Same():
            return ours
        case Transposed():
            return ours.T.contiguous()
        case Packed(transposed=transposed):
            in_order = sorted(parts, key=lambda one: one[0].part if isinstance(one[0], Packed) else 0)
            whole = torch.cat([tensor for _, tensor in in_order])
            return whole.T.contiguous() if transposed else whole
        case Wrapped(side=side):
            return ours[None] if side == "theirs" else ours[0]
        case _:
            assert_never(piece)
