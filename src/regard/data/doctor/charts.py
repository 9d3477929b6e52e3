"""Bar charts for the report: inline SVG that stretches to the page width, with HTML labels that do not stretch."""

from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regard.base.formatting import pluralize
from regard.data.doctor.detectors.sentence_alignment import Alignment
from regard.data.doctor.statistics import Histogram


def draw_lengths(histogram: Histogram, unit: str) -> str:
    """Draw a histogram of lengths as HTML."""
    titles = [
        f"{int(low):,} to {int(high) - 1:,} {unit}: {pluralize(count, 'line')}"
        for (low, high), count in zip(pairwise(histogram.edges), histogram.counts, strict=True)
    ]
    middle = histogram.edges[len(histogram.edges) // 2]
    axis = (f"{int(histogram.edges[0]):,}", f"{int(middle):,}", f"{int(histogram.edges[-1]):,} {unit}")
    remark = f"Not shown: {pluralize(histogram.beyond, 'longer line')}." if histogram.beyond else ""
    return _make_figure(_draw_bars(histogram.counts, titles), axis, remark)


def draw_ratios(histogram: Histogram) -> str:
    """Draw a histogram of length ratios as HTML."""
    titles = [
        f"{low:.2f} to {high:.2f} times as long: {pluralize(count, 'line')}"
        for (low, high), count in zip(pairwise(histogram.edges), histogram.counts, strict=True)
    ]
    outside = histogram.below + histogram.beyond
    remark = f"Not shown: {pluralize(outside, 'line')} outside this range." if outside else ""
    return _make_figure(
        _draw_bars(histogram.counts, titles), ("a quarter as long", "equally long", "four times as long"), remark
    )


def draw_correlations(alignment: Alignment, rows: int) -> str:
    """Draw the correlation of source and target lengths along the corpus, with misaligned stretches highlighted."""
    groups = np.array_split(np.arange(len(alignment.correlations)), min(120, len(alignment.correlations)))
    is_misaligned = np.zeros(len(alignment.correlations), bool)
    window_size = 50
    for stretch in alignment.misaligned:
        is_misaligned[stretch.first_row // window_size : stretch.last_row // window_size + 1] = True
    values = [max(float(np.median(alignment.correlations[part])), 0.02) for part in groups]
    classes = ["bad" if is_misaligned[part].any() else "" for part in groups]
    titles = [
        f"lines {part[0] * window_size + 1:,} to {(part[-1] + 1) * window_size:,}: {value:.2f}"
        for part, value in zip(groups, values, strict=True)
    ]
    return _make_figure(_draw_bars(values, titles, classes, max_value=1.0), ("line 1", "", f"line {rows:,}"), "")


def _draw_bars(
    values: "list[float] | tuple[int, ...] | NDArray[np.float64]",
    titles: list[str],
    classes: list[str] | None = None,
    max_value: float | None = None,
) -> str:
    scale = max_value or max(max(values), 1)
    bars = []
    for index, (value, title) in enumerate(zip(values, titles, strict=True)):
        height = max(100 * value / scale, 0.8 if value else 0)
        css_class = f' class="{classes[index]}"' if classes and classes[index] else ""
        if css_class:
            bars.append(f'<rect x="{index}" y="0" width="1" height="100" class="zone"></rect>')
        bars.append(
            f'<rect x="{index + 0.06:.2f}" y="{100 - height:.2f}" width="0.88" height="{height:.2f}"{css_class}>'
            f"<title>{escape(title)}</title></rect>"
        )
    return f'<svg viewBox="0 0 {len(values)} 100" preserveAspectRatio="none" role="img">{"".join(bars)}</svg>'


def _make_figure(svg: str, axis: tuple[str, str, str], remark: str) -> str:
    labels = "".join(f"<span>{escape(label)}</span>" for label in axis)
    note = f'<p class="note">{escape(remark)}</p>' if remark else ""
    return f'<figure>{svg}<figcaption class="axis">{labels}</figcaption>{note}</figure>'
