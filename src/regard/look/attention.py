"""Attention groups of a document: statistics, thumbnails, full maps and the head to open first.

Up to `MAX_COMPLETE_ROWS` rows, all rows are used. Longer texts use `SAMPLED_ROWS` evenly spread rows: for
144 heads and 2,048 tokens the complete maps would take seconds and 2.4 GB.
"""

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.blobs import Blob, encode_sqrt, finite
from regard.look.document import Group, GroupName, Table, Token
from regard.look.record import MAX_COMPLETE_ROWS, LookRecord, spread
from regard.look.statistics import STATISTICS, GroupRows, StatisticName, describe_heads

SAMPLED_ROWS = 128
GROUPS: tuple[GroupName, ...] = ("encoder.self", "decoder.self", "decoder.cross")


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
    delta: dict[GroupName, Table] | None = None,
) -> list[Group]:
    """Return the groups that a record has; their blobs go to `blobs`.

    Args:
        record: The record of one text.
        sequences: The tokens of rows and columns.
        blobs: Where thumbnails and maps are stored.
        max_cells: Maximum number of cells over all stored maps, the most interesting heads first.
        delta: Change of the output's log-probability without each head; a page opens the head with the largest effect.
    """
    groups = [
        _make_group(record, name, sequences, blobs) for name in GROUPS if attention_name(name, 0) in record.attention
    ]
    for group, _ in groups:
        group["default_head"] = find_largest_effect((delta or {}).get(group["name"], [])) or group["default_head"]
    ranked = sorted(
        (
            (-interest, number, layer, head)
            for number, (_, scores) in enumerate(groups)
            for layer, row in enumerate(scores)
            for head, interest in enumerate(row)
        ),
        key=lambda entry: (list(groups[entry[1]][0]["default_head"]) != [entry[2], entry[3]], entry),
    )  # the default head of every group comes first
    for _, number, layer, head in ranked:
        group = groups[number][0]
        max_cells -= group["row_count"] * group["column_count"]
        if max_cells < 0:
            break
        name = f"{group['name']}.{layer}.{head}"
        blobs[name] = encode_sqrt(read_map(record, group["name"], layer, head))
        group["maps"][f"{layer}.{head}"] = name
    return [group for group, _ in groups]


def find_largest_effect(delta: Table) -> list[int] | None:
    """Return [layer, head] of the head without which the output loses most, or gains most if it loses nowhere.

    >>> find_largest_effect([[0.5, -0.25], [None, -1.0]]), find_largest_effect([[0.5, 0.25]]), find_largest_effect([])
    ([1, 1], [0, 0], None)
    """
    changes = {
        (layer, head): change
        for layer, row in enumerate(delta)
        for head, change in enumerate(row)
        if change is not None
    }
    if not changes:
        return None
    place = min(changes, key=changes.__getitem__)
    if changes[place] >= 0:
        place = max(changes, key=changes.__getitem__)
    return list(place)


def _make_group(
    record: LookRecord,
    name: GroupName,
    sequences: dict[Literal["source", "target"], list[Token]],
    blobs: dict[str, Blob],
) -> tuple[Group, list[list[float]]]:
    """Return a group without maps, and the interest of each head, [layer][head]."""
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
    skips_first_row = name == "decoder.self" and len(rows) > 1
    layout = GroupRows(rows, is_text, is_self=name != "decoder.cross", skips_first_row=skips_first_row)
    layers = [describe_heads(record.attention[attention_name(name, layer)], layout) for layer in range(layer_count)]
    blobs[f"{name}.thumbnails"] = encode_sqrt(np.array([[head.thumbnail for head in heads] for heads in layers]))
    interest = [[head.interest for head in heads] for heads in layers]
    best = max((score, -layer, -head) for layer, row in enumerate(interest) for head, score in enumerate(row))
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
        default_head=[-best[1], -best[2]],
        thumbnails=f"{name}.thumbnails",
        maps={},
        errors=[
            [finite(error) for error in record.head_errors(attention_name(name, layer))] for layer in range(layer_count)
        ],
    )
    return group, interest
