"""Attention groups of a document: statistics, thumbnails, full maps and the head to open first.

Up to `MAX_COMPLETE_ROWS` rows everything comes from all rows. Longer texts use `SAMPLED_ROWS` evenly spread rows: for
144 heads and 2,048 tokens the complete maps would take seconds and 2.4 GB.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.look.document import THUMBNAIL_SIZE, Blob, Group, GroupName, Table, Token, encode_sqrt, finite
from regard.look.record import MAX_COMPLETE_ROWS, LookRecord, spread
from regard.nn.record import AttentionRecord, Record

SAMPLED_ROWS = 128
GROUPS: tuple[GroupName, ...] = ("encoder.self", "decoder.self", "decoder.cross")
StatisticName = Literal["entropy", "distance", "previous", "first"]
STATISTICS: tuple[StatisticName, ...] = ("entropy", "distance", "previous", "first")


@dataclass(frozen=True)
class _Head:
    """What is known about one head."""

    statistics: dict[StatisticName, float | None]
    telling: float
    thumbnail: NDArray[np.float32]  # at most 48 x 48


@dataclass(frozen=True)
class _Context:
    """What the heads of a group have in common."""

    skipped_rows: int
    """1 if the first row can only attend to itself: it does not count."""
    rows: Tensor  # (t) without the skipped one
    distance: Tensor | None  # (t, S); None for cross-attention
    special_columns: Tensor


def attention_name(group: str, layer: int) -> str:
    """Return the name of an attention in a record.

    >>> attention_name("decoder.cross", 3)
    'decoder.3.cross'
    """
    stack, kind = group.split(".")
    return f"{stack}.{layer}.{kind}"


def read_map(record: LookRecord, group: str, layer: int, head: int) -> NDArray[np.float32]:
    """Return the weights of one head, (rows, columns)."""
    return record.weights(attention_name(group, layer), [head])[0, 0].float().cpu().numpy()


@torch.no_grad()
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
    context = _make_context(name, rows, is_text)
    layers = [
        [
            _describe_head(weights, context)
            for weights in _iter_heads(record.attention[attention_name(name, layer)], rows)
        ]
        for layer in range(layer_count)
    ]
    blobs[f"{name}.thumbnails"] = encode_sqrt(np.array([[head.thumbnail for head in heads] for heads in layers]))
    telling = [[head.telling for head in heads] for heads in layers]
    best = max((score, -layer, -head) for layer, row in enumerate(telling) for head, score in enumerate(row))
    statistics: dict[StatisticName, Table] = {
        key: [[head.statistics[key] for head in heads] for heads in layers] for key in STATISTICS
    }
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


def _iter_heads(attention: AttentionRecord, rows: Sequence[int]) -> Iterator[Tensor]:
    """Iterate over the weights (t, S) of each head in these rows.

    One head at a time stays in the cache of the processor: half the time of all heads together.
    """
    head_index, row_index = attention.indices(None, rows)
    mask = attention.mask.select(head_index, row_index, attention.key.size(2))
    scale = attention.score.scale
    if scale is None or mask.bias is not None:
        record = Record()
        record.attention[""] = attention
        yield from record.weights("", rows=rows)[0].float().cpu()
        return
    additive = None
    if mask.allowed is not None:
        additive = torch.where(mask.allowed[0, 0], 0.0, float("-inf"))  # (1|t, S)
    query = attention.query[0][:, row_index].float() * scale  # (H, t, K)
    heads_per_group = query.size(0) // attention.key.size(1)
    for head in range(query.size(0)):
        scores = query[head] @ attention.key[0, head // heads_per_group].float().T  # (t, S)
        yield (scores if additive is None else scores.add_(additive)).softmax(dim=-1).cpu()


def _make_context(name: GroupName, rows: Sequence[int], is_text: Tensor) -> _Context:
    is_cross, skipped = name == "decoder.cross", int(name == "decoder.self" and len(rows) > 1)
    row = torch.tensor(rows)[skipped:]
    distance = None if is_cross else (row[:, None] - torch.arange(len(is_text))).abs().float()  # (t, S)
    return _Context(skipped, row, distance, (~is_text).nonzero()[:, 0])


def _describe_head(weights: Tensor, context: _Context) -> _Head:
    """Return statistics and thumbnail of a head whose rows have these weights (t, S), which are overwritten."""
    thumbnail = shrink(weights.numpy())
    if thumbnail.shape == weights.shape:
        thumbnail = thumbnail.copy()  # nothing was shrunk: it is the weights themselves
    weights, row = weights[context.skipped_rows :], context.rows
    statistics: dict[StatisticName, float | None] = {
        "entropy": _mean(-weights.clamp_min(1e-30).log_().mul_(weights).sum(dim=-1)),
        "distance": None,
        "previous": None,
        "first": _mean(weights[:, 0]),
    }
    if context.distance is not None:
        total = torch.dot(weights.flatten(), context.distance.flatten())
        statistics["distance"] = round(float(total) / len(row), 5)
        has_previous = row > 0
        statistics["previous"] = _mean(weights[has_previous, row[has_previous] - 1])
    return _Head(statistics, _rate(weights, context), thumbnail)


def _rate(weights: Tensor, context: _Context) -> float:
    """Return how much there is to see in a head (t, S): attention to a particular token, not too near.

    Special tokens and, in self-attention, the first token, the row's own one and its neighbours do not count. A
    cross-attention head must attend to different tokens in different rows. Overwrites the weights.
    """
    weights[:, context.special_columns] = 0.0
    if context.distance is None:
        distinct = len(set(weights.argmax(dim=-1).tolist())) / min(weights.shape)
        return float(weights.amax(dim=-1).mean()) * distinct
    weights[:, 0] = 0.0
    for offset in (-1, 0, 1):
        column = (context.rows + offset).clamp(0, weights.size(1) - 1)
        weights.scatter_(1, column[:, None], 0.0)
    return float(weights.amax(dim=-1).mean())


def shrink(weights: NDArray[np.float32], size: int = THUMBNAIL_SIZE) -> NDArray[np.float32]:
    """Shrink a map (rows, columns) to at most `size` x `size` by maximum: an average would make sparse maps blank."""
    rows, columns = weights.shape
    if rows > size:  # rows first: their maxima are vectorised, and leave less for the columns
        edges = np.arange(size + 1) * rows // size
        weights = np.stack([weights[start:end].max(axis=0) for start, end in pairwise(edges.tolist())])
    if columns > size:
        weights = np.maximum.reduceat(weights, np.arange(size) * columns // size, axis=1)
    return weights


def _mean(values: Tensor) -> float | None:
    return round(float(values.mean()), 5) if values.numel() else 0.0
