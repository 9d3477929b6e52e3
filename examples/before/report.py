"""What a part of the comparison found: text, a table and a chart, written into RESULTS.md and an SVG."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import isfinite, log10
from pathlib import Path

COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f", "#e377c2", "#bcbd22")
WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 170, 24, 48


@dataclass(frozen=True)
class Chart:
    """Lines over a common axis."""

    x_label: str
    y_label: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Report:
    """The section of one part."""

    title: str
    text: str
    """What was measured and how, and where it contradicts the lectures."""
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    chart: Chart
    notes: Sequence[str] = field(default=())


def write_report(report: Report, part: str, folder: Path) -> None:
    """Write the chart as PART.svg, and replace the section of this part in RESULTS.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part}.svg").write_text(draw(report.chart), encoding="utf-8")
    lines = [f"## {report.title}", "", report.text, "", *format_table(report.header, report.rows), ""]
    lines += [*(f"- {note}" for note in report.notes), *([""] if report.notes else [])]
    lines += [f"![{report.title}]({part}.svg)", ""]
    start, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
    section = "\n".join([start, "", *lines, end])
    page = folder / "RESULTS.md"
    text = page.read_text(encoding="utf-8") if page.exists() else "# Before the Transformer: results\n"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    text = pattern.sub(lambda _: section, text) if start in text else f"{text.rstrip()}\n\n{section}\n"
    page.write_text(text, encoding="utf-8")


def read_section(part: str, folder: Path) -> str:
    """Return the section of a part in RESULTS.md, without its picture."""
    text = (folder / "RESULTS.md").read_text(encoding="utf-8")
    _, start, rest = text.partition(f"<!-- {part} -->\n")
    if not start:
        raise SystemExit(f"RESULTS.md has no section '{part}' yet: run it without --stored.")
    return rest.partition("\n![")[0].strip()


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table; the first column is text, the others are numbers.

    >>> format_table(["model", "loss"], [["gru", "1.2"]])
    ['| model | loss |', '|---|---:|', '| gru | 1.2 |']
    """
    return [
        f"| {' | '.join(header)} |",
        f"|---|{'---:|' * (len(header) - 1)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def draw(chart: Chart) -> str:
    """Return the chart as SVG; points that are not finite are left out."""
    values = [value for line in chart.lines.values() for value in line if _is_shown(value, chart.log_y)]
    x_range, y_range = _range(chart.x, chart.log_x), _range(values or [0.0, 1.0], chart.log_y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for tick in _ticks(*y_range, chart.log_y):
        y = _place(tick, y_range, chart.log_y, HEIGHT - BOTTOM, TOP)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in _ticks(*x_range, chart.log_x):
        x = _place(tick, x_range, chart.log_x, LEFT, WIDTH - RIGHT)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    for number, (name, line) in enumerate(chart.lines.items()):
        color = COLORS[number % len(COLORS)]
        points = [
            f"{_place(x, x_range, chart.log_x, LEFT, WIDTH - RIGHT):.1f},"
            f"{_place(y, y_range, chart.log_y, HEIGHT - BOTTOM, TOP):.1f}"
            for x, y in zip(chart.x, line, strict=True)
            if _is_shown(y, chart.log_y)
        ]
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{color}" stroke-width="2"/>')
        y = TOP + 10 + 18 * number
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{y}" fill="{color}">{escape(name)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{escape(chart.x_label)}</text>')
    parts.append(f'<text x="{LEFT - 50}" y="{TOP - 8}">{escape(chart.y_label)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _is_shown(value: float, is_log: bool) -> bool:
    return isfinite(value) and (value > 0 or not is_log)


def _range(values: Sequence[float], is_log: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if is_log:
        return low, high if high > low else 10 * low
    return min(low, 0.0), high if high > min(low, 0.0) else low + 1.0


def _place(value: float, span: tuple[float, float], is_log: bool, start: float, end: float) -> float:
    low, high, value = (log10(part) for part in (*span, value)) if is_log else (*span, value)
    return start + (value - low) / (high - low) * (end - start)


def _ticks(low: float, high: float, is_log: bool) -> list[float]:
    if is_log:
        powers = range(int(log10(low)) - 1, int(log10(high)) + 2)
        ticks = [10.0**power for power in powers if low <= 10.0**power <= high]
        return ticks[:: -(-len(ticks) // 8)] if len(ticks) > 1 else [low, high]
    step = 10.0 ** int(log10(high - low) // 1)
    step = next(step * factor for factor in (0.1, 0.2, 0.5, 1, 2, 5) if (high - low) / (step * factor) <= 6)
    count = int((high - low) / step + 1e-9)
    first = -int(-low // step) if low < 0 else 0
    return [round((first + number) * step, 10) for number in range(count + 1) if low <= (first + number) * step <= high]
