"""Statistics, thumbnail and interest of each attention head.

The weights of a long text are computed and read in bands of rows that stay in the cache of the processor. A band is
only as wide as any of its rows may attend: under a causal mask that leaves 3/4 of the cells.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.look.document import THUMBNAIL_SIZE
from regard.nn.record import AttentionRecord, Record

StatisticName = Literal["entropy", "distance", "previous", "first"]
STATISTICS: tuple[StatisticName, ...] = ("entropy", "distance", "previous", "first")
BANDS = 2
MAX_CELLS = 2**15  # of a map that is not divided into bands


@dataclass(frozen=True)
class GroupRows:
    """The rows and columns of a group that are used."""

    rows: Sequence[int]
    is_text: Tensor  # (S) False for special tokens
    is_self: bool
    """Rows and columns are the same tokens."""
    skips_first_row: bool
    """The first row can only attend to itself, so it does not count."""


@dataclass(frozen=True)
class Head:
    """Statistics of one head."""

    statistics: dict[StatisticName, float | None]
    interest: float
    """How interesting the head is: attention to a particular token that is not too near.

    Special tokens and, in self-attention, the first token, the row's own one and its neighbors do not count. A
    cross-attention head must attend to different tokens in different rows.
    """
    thumbnail: NDArray[np.float32]  # at most 48 x 48


@dataclass(frozen=True)
class _Band:
    """Successive rows of a layer's maps, and the values that its heads share there.

    A cell is numbered row * width + column, from the first row that counts.
    """

    start: int
    stop: int
    width: int  # no row attends to a column beyond
    row_edges: list[int]  # of the parts that become a row of the thumbnail
    column_edges: list[int]
    additive: Tensor | None  # (t, W): 0 where a row may attend, else the lowest number
    skipped_rows: int
    distance: Tensor | None  # of every cell; None for cross-attention
    previous_cells: Tensor
    ignored_cells: Tensor  # that do not count for `interest`


def describe_heads(attention: AttentionRecord, layout: GroupRows) -> list[Head]:
    """Return the statistics of each head of a recorded attention in the rows of the layout."""
    head_index, row_index = attention.indices(None, layout.rows)
    row_count, column_count = len(layout.rows), attention.key.size(2)
    mask = attention.mask.select(head_index, row_index, column_count)
    allowed = None if mask.allowed is None else mask.allowed[0, 0].cpu().expand(row_count, column_count)
    band_count = BANDS if row_count > THUMBNAIL_SIZE and row_count * column_count > MAX_CELLS else 1
    bands = [_make_band(layout, start, stop, allowed) for start, stop in pairwise(divide(row_count, band_count))]
    has_empty_rows = allowed is not None and not bool(allowed.any(dim=1).all())
    if attention.score.scale is None or mask.bias is not None or has_empty_rows:
        heads = _iter_heads(attention, layout.rows, bands)
    else:
        heads = _iter_plain_heads(attention, row_index, bands, attention.score.scale)
    return [_describe_head(parts, bands, layout) for parts in heads]


def _make_band(layout: GroupRows, start: int, stop: int, allowed: Tensor | None) -> _Band:
    width = len(layout.is_text)
    additive: Tensor | None = None
    if allowed is not None:
        attended = allowed[start:stop].any(dim=0).nonzero()
        width = int(attended.max()) + 1 if len(attended) else 1
        additive = torch.where(allowed[start:stop, :width], 0.0, torch.finfo(torch.float32).min)
    skipped = int(layout.skips_first_row and start == 0)
    row = torch.tensor(layout.rows[start + skipped : stop])
    line = torch.arange(len(row)) * width  # the first cell of each row
    untold = [line + column for column in (~layout.is_text[:width]).nonzero()[:, 0]]
    distance: Tensor | None = None
    previous = line[:0]
    if layout.is_self:
        distance = (row[:, None] - torch.arange(width)).abs().float().flatten()
        previous = (line + row - 1)[(row > 0) & (row <= width)]
        untold += [line, *(line + (row + offset).clamp(0, width - 1) for offset in (-1, 0, 1))]
    return _Band(
        start=start,
        stop=stop,
        width=width,
        row_edges=[edge - start for edge in divide(len(layout.rows)) if start <= edge <= stop],
        column_edges=[*(edge for edge in divide(len(layout.is_text)) if edge < width), width],
        additive=additive,
        skipped_rows=skipped,
        distance=distance,
        previous_cells=previous,
        ignored_cells=torch.cat([line[:0], *untold]),
    )


def _iter_plain_heads(
    attention: AttentionRecord, row_index: Tensor, bands: Sequence[_Band], scale: float
) -> Iterator[Iterator[Tensor]]:
    """Iterate over heads whose scores are scaled products, and of each over the weights (t, W) of its bands."""
    query = attention.query[0][:, row_index].float() * scale  # (H, t, K)
    heads_per_group = query.size(0) // attention.key.size(1)

    def iter_bands(head: int) -> Iterator[Tensor]:
        key = attention.key[0, head // heads_per_group].float()  # (S, K)
        for band in bands:
            scores = (query[head, band.start : band.stop] @ key[: band.width].T).cpu()  # (t, W)
            yield (scores if band.additive is None else scores.add_(band.additive)).softmax(dim=-1)

    return (iter_bands(head) for head in range(query.size(0)))


def _iter_heads(attention: AttentionRecord, rows: Sequence[int], bands: Sequence[_Band]) -> Iterator[Iterator[Tensor]]:
    """As `_iter_plain_heads`, for every kind of attention: all heads are computed at once."""
    record = Record()
    record.attention[""] = attention
    weights = record.weights("", rows=rows)[0].float().cpu()  # (H, t, S)
    return (
        (head[band.start : band.stop, : band.width].clone(memory_format=torch.contiguous_format) for band in bands)
        for head in weights
    )


def _describe_head(parts: Iterator[Tensor], bands: Sequence[_Band], layout: GroupRows) -> Head:
    """Return statistics and thumbnail of a head from the weights of its bands, which are overwritten."""
    row_count, column_count = len(layout.rows), len(layout.is_text)
    thumbnail = np.zeros([min(count, THUMBNAIL_SIZE) for count in (row_count, column_count)], dtype=np.float32)
    sums: dict[StatisticName, float] = dict.fromkeys(STATISTICS, 0.0)
    strongest, attended, top = 0.0, set[int](), 0
    for weights, band in zip(parts, bands, strict=True):
        small = shrink(weights.numpy(), band.row_edges, band.column_edges)
        thumbnail[top : top + len(small), : small.shape[1]] = small
        top += len(small)
        counted = weights[band.skipped_rows :]
        cells = counted.flatten()
        sums["entropy"] -= float(torch.dot(cells.clamp_min(1e-30).log_(), cells))
        sums["first"] += float(counted[:, 0].sum())
        if band.distance is not None:
            sums["distance"] += float(torch.dot(cells, band.distance))
            sums["previous"] += float(cells[band.previous_cells].sum())
        cells[band.ignored_cells] = 0.0
        if band.distance is None:
            attended.update(counted.argmax(dim=-1).tolist())
        strongest += float(counted.amax(dim=-1).sum())
    rows = max(1, row_count - bands[0].skipped_rows)
    means: dict[StatisticName, float | None] = {name: round(total / rows, 5) for name, total in sums.items()}
    if layout.is_self:
        means["previous"] = round(sums["previous"] / max(1, sum(row > 0 for row in layout.rows)), 5)
        return Head(means, strongest / rows, thumbnail)
    means["distance"] = means["previous"] = None
    return Head(means, strongest / rows * len(attended) / min(row_count, column_count), thumbnail)


def divide(count: int, parts: int = THUMBNAIL_SIZE) -> list[int]:
    """Return the edges of at most `parts` parts of `count` things.

    >>> divide(7, 3), divide(2, 3)
    ([0, 2, 4, 7], [0, 1, 2])
    """
    parts = min(count, parts)
    return [part * count // parts for part in range(parts + 1)]


def shrink(weights: NDArray[np.float32], row_edges: list[int], column_edges: list[int]) -> NDArray[np.float32]:
    """Shrink a map (rows, columns) to the maxima of its parts: averages would make sparse maps blank."""
    if len(column_edges) <= weights.shape[1]:  # columns first: they are contiguous, and leave little for the rows
        weights = np.maximum.reduceat(weights, column_edges[:-1], axis=1)
    if len(row_edges) <= weights.shape[0]:
        weights = np.maximum.reduceat(weights, row_edges[:-1], axis=0)
    return weights
