"""Pictures for the report: bars as inline SVG that stretches to the page, labels as HTML that does not."""

from html import escape

import numpy as np
from numpy.typing import NDArray

from regard.data.doctor.alignment import Alignment
from regard.data.doctor.statistics import Histogram


def lengths(histogram: Histogram, unit: str) -> str:
    """A histogram of lengths."""
    spans = zip(histogram.edges[:-1], histogram.edges[1:], strict=True)
    titles = [
        f"{int(low):,} to {int(high) - 1:,} {unit}: {count:,} lines"
        for (low, high), count in zip(spans, histogram.counts, strict=True)
    ]
    middle = histogram.edges[len(histogram.edges) // 2]
    axis = (f"{int(histogram.edges[0]):,}", f"{int(middle):,}", f"{int(histogram.edges[-1]):,} {unit}")
    beyond = f"{histogram.beyond:,} lines are longer still." if histogram.beyond else ""
    return _figure(_bars(histogram.counts, titles), axis, beyond)


def ratios(histogram: Histogram) -> str:
    """A histogram of ratios of lengths."""
    spans = zip(histogram.edges[:-1], histogram.edges[1:], strict=True)
    titles = [
        f"{low:.2f} to {high:.2f} times as long: {count:,} lines"
        for (low, high), count in zip(spans, histogram.counts, strict=True)
    ]
    outside = histogram.below + histogram.beyond
    more = f"{outside:,} lines lie outside." if outside else ""
    return _figure(_bars(histogram.counts, titles), ("a quarter as long", "equally long", "four times as long"), more)


def correlations(alignment: Alignment, rows: int) -> str:
    """How well the lengths of the two sides go together, along the corpus; misaligned stretches in another colour."""
    parts = np.array_split(np.arange(len(alignment.windows)), min(120, len(alignment.windows)))
    slipped = np.zeros(len(alignment.windows), bool)
    window = 50
    for slip in alignment.slips:
        slipped[slip.first // window : slip.last // window + 1] = True
    values = [max(float(np.median(alignment.windows[part])), 0.02) for part in parts]
    classes = ["bad" if slipped[part].any() else "" for part in parts]
    titles = [
        f"lines {part[0] * window + 1:,} to {(part[-1] + 1) * window:,}: {value:.2f}"
        for part, value in zip(parts, values, strict=True)
    ]
    return _figure(_bars(values, titles, classes, highest=1.0), ("line 1", "", f"line {rows:,}"), "")


def _bars(
    values: "list[float] | tuple[int, ...] | NDArray[np.float64]",
    titles: list[str],
    classes: list[str] | None = None,
    highest: float | None = None,
) -> str:
    top = highest or max(max(values), 1)
    bars = []
    for place, (value, title) in enumerate(zip(values, titles, strict=True)):
        height = max(100 * value / top, 0.8 if value else 0)
        mark = f' class="{classes[place]}"' if classes and classes[place] else ""
        if mark:
            bars.append(f'<rect x="{place}" y="0" width="1" height="100" class="zone"></rect>')
        bars.append(
            f'<rect x="{place + 0.06:.2f}" y="{100 - height:.2f}" width="0.88" height="{height:.2f}"{mark}>'
            f"<title>{escape(title)}</title></rect>"
        )
    return f'<svg viewBox="0 0 {len(values)} 100" preserveAspectRatio="none" role="img">{"".join(bars)}</svg>'


def _figure(picture: str, axis: tuple[str, str, str], more: str) -> str:
    labels = "".join(f"<span>{escape(label)}</span>" for label in axis)
    note = f'<p class="note">{escape(more)}</p>' if more else ""
    return f'<figure>{picture}<figcaption class="axis">{labels}</figcaption>{note}</figure>'
