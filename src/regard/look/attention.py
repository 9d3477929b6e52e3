"""Attention groups of a document: statistics, thumbnails, full maps and the head to open first.

Up to `MAX_COMPLETE_ROWS` rows everything comes from all rows. Longer texts use `SAMPLED_ROWS` evenly spread rows: for
144 heads and 2,048 tokens the complete maps would take seconds and 2.4 GB.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.look.document import THUMBNAIL_SIZE, Blob, Group, GroupName, Table, Token, encode_sqrt, finite
from regard.look.record import MAX_COMPLETE_ROWS, LookRecord, spread

SAMPLED_ROWS = 128
GROUPS: tuple[GroupName, ...] = ("encoder.self", "decoder.self", "decoder.cross")
StatisticName = Literal["entropy", "distance", "previous", "first"]
STATISTICS: tuple[StatisticName, ...] = ("entropy", "distance", "previous", "first")


@dataclass(frozen=True)
class _Layer:
    """What is known about the heads of one layer."""

    statistics: dict[StatisticName, list[float | None]]
    telling: list[float]
    thumbnails: NDArray[np.float32]  # (H, at most 48, at most 48)


def attention_name(group: str, layer: int) -> str:
    """Return the name of an attention in a record.

    >>> attention_name("decoder.cross", 3)
    'decoder.3.cross'
    """
    stack, kind = group.split(".")
    return f"{stack}.{layer}.{kind}"


def read_map(record: LookRecord, group: str, layer: int, head: int) -> NDArray[np.float32]:
    """Return the weights of one head, (rows, columns)."""
    with torch.no_grad():
        return record.weights(attention_name(group, layer), [head])[0, 0].float().cpu().numpy()


def make_groups(
    record: LookRecord,
    sequences: dict[Literal["source", "target"], list[Token]],
    blobs: dict[str, Blob],
    max_cells: int,
) -> list[Group]:
    """Return the groups that a record has; their blobs go to `blobs`.

    Args:
        record: The record of one text.
        sequences: The tokens of rows and columns.
        blobs: Where thumbnails and maps are stored.
        max_cells: Number of cells of all maps that are stored, the most telling heads first.
    """
    groups = [
        _make_group(record, name, sequences, blobs) for name in GROUPS if attention_name(name, 0) in record.attention
    ]
    ranked = sorted(
        (
            (-telling, number, layer, head)
            for number, (_, scores) in enumerate(groups)
            for layer, row in enumerate(scores)
            for head, telling in enumerate(row)
        ),
        key=lambda entry: (list(groups[entry[1]][0]["opening"]) != [entry[2], entry[3]], entry),
    )  # the opening head of every group comes first
    for _, number, layer, head in ranked:
        group = groups[number][0]
        max_cells -= group["row_count"] * group["column_count"]
        if max_cells < 0:
            break
        name = f"{group['name']}.{layer}.{head}"
        blobs[name] = encode_sqrt(read_map(record, group["name"], layer, head))
        group["maps"][f"{layer}.{head}"] = name
    return [group for group, _ in groups]


def _make_group(
    record: LookRecord,
    name: GroupName,
    sequences: dict[Literal["source", "target"], list[Token]],
    blobs: dict[str, Blob],
) -> tuple[Group, list[list[float]]]:
    """Return a group without maps, and how telling each of its heads is, [layer][head]."""
    rows_of: Literal["source", "target"] = "source" if name == "encoder.self" else "target"
    columns_of: Literal["source", "target"] = "target" if name == "decoder.self" else "source"
    row_start = int(name == "decoder.cross")
    layer_count = 0
    while attention_name(name, layer_count) in record.attention:
        layer_count += 1
    query, key = (getattr(record.attention[attention_name(name, 0)], part) for part in ("query", "key"))
    row_count, column_count = query.size(2), key.size(2)
    rows = list(range(row_count)) if row_count <= MAX_COMPLETE_ROWS else spread(row_count, SAMPLED_ROWS)
    is_text = torch.tensor([token["role"] == "text" for token in sequences[columns_of][:column_count]])
    layers = [
        _describe_layer(record.weights(attention_name(name, layer), rows=rows)[0].float().cpu(), rows, name, is_text)
        for layer in range(layer_count)
    ]
    blobs[f"{name}.thumbnails"] = encode_sqrt(np.stack([layer.thumbnails for layer in layers]))
    telling = [layer.telling for layer in layers]
    best = max((score, -layer, -head) for layer, row in enumerate(telling) for head, score in enumerate(row))
    statistics: dict[StatisticName, Table] = {key: [layer.statistics[key] for layer in layers] for key in STATISTICS}
    group = Group(
        name=name,
        layers=layer_count,
        heads=query.size(1),
        rows=rows_of,
        row_start=row_start,
        row_count=row_count,
        columns=columns_of,
        column_count=column_count,
        statistics=statistics,
        sampled_rows=None if len(rows) == row_count else len(rows),
        opening=[-best[1], -best[2]],
        thumbnails=f"{name}.thumbnails",
        maps={},
        errors=[
            [finite(error) for error in record.head_errors(attention_name(name, layer))] for layer in range(layer_count)
        ],
    )
    return group, telling


def _describe_layer(weights: Tensor, rows: Sequence[int], name: GroupName, is_text: Tensor) -> _Layer:
    """Return statistics and thumbnails of the heads of a layer, whose `rows` have these weights (H, t, S)."""
    row, column = torch.tensor(rows), torch.arange(weights.size(2))
    thumbnails = shrink(weights.numpy())
    is_cross = name == "decoder.cross"
    if name == "decoder.self" and len(rows) > 1:  # the first row can only attend to itself
        weights, row = weights[:, 1:], row[1:]
    entropy = -torch.special.xlogy(weights, weights).sum(dim=-1).mean(dim=-1)  # (H)
    values: dict[StatisticName, list[float | None]] = {
        "entropy": _to_list(entropy),
        "first": _to_list(weights[:, :, 0].mean(dim=-1)),
    }
    if is_cross:
        nothing: list[float | None] = [None] * weights.size(0)
        values |= {"distance": nothing, "previous": nothing}
    else:
        distance = (row[:, None] - column).abs().float()  # (t, S)
        values["distance"] = _to_list((weights.flatten(1) @ distance.flatten()) / len(row))
        has_previous = row > 0
        previous = weights[:, has_previous, row[has_previous] - 1]  # (H, t)
        values["previous"] = _to_list(previous.mean(dim=-1) if has_previous.any() else torch.zeros(weights.size(0)))
    return _Layer(values, _rate(weights, row, is_text, is_cross=is_cross), thumbnails)


def _rate(weights: Tensor, row: Tensor, is_text: Tensor, *, is_cross: bool) -> list[float]:
    """Return for each head (H, t, S) how much there is to see in it: attention to a particular token, not too near.

    Special tokens and, in self-attention, the first token, the row's own one and its neighbours do not count. A
    cross-attention head must attend to different tokens in different rows.
    """
    counted = weights * is_text
    if not is_cross:
        counted[:, :, 0] = 0.0
        for offset in (-1, 0, 1):
            neighbour = (row + offset).clamp(0, weights.size(2) - 1)
            counted[:, torch.arange(len(row)), neighbour] = 0.0
    peaks, places = counted.max(dim=-1)  # (H, t)
    distinct = torch.tensor([len(set(head)) for head in places.tolist()]) / max(1, min(counted.shape[1:]))
    return (peaks.mean(dim=-1) * (distinct if is_cross else 1.0)).tolist()


def shrink(weights: NDArray[np.float32], size: int = THUMBNAIL_SIZE) -> NDArray[np.float32]:
    """Shrink the last two axes to at most `size` by maximum: an average would make sparse maps blank."""
    for axis in (-1, -2):
        length = weights.shape[axis]
        if length > size:
            weights = np.maximum.reduceat(weights, np.arange(size) * length // size, axis=axis)
    return weights


def _to_list(values: Tensor) -> list[float | None]:
    return [finite(round(value, 5)) for value in values.tolist()]
