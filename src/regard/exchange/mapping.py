"""Conversion of tensors by a weight map (`regard.exchange.weight_map`), in both directions.

No tensor is lost silently: a missing, unexpected or mismatched tensor is an error, and the error lists all of them (up
to 20).

>>> weight_map = WeightMap("Toy", (MappingRule("up.weight", "fc.weight", Transpose()),))
>>> to_regard(weight_map, {"fc.weight": torch.ones(2, 3)})["up.weight"].shape
torch.Size([3, 2])
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import assert_never

import torch
from torch import Tensor

from regard.base import limits
from regard.base.errors import RegardError
from regard.exchange.weight_map import (
    Constant,
    Identity,
    MappingRule,
    Side,
    TensorChunk,
    Tensors,
    Transform,
    Transpose,
    Unsqueeze,
    WeightMap,
)


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
    """Return the part of their tensor that belongs to each of our names."""
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
