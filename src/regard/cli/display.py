"""A run as a live display: where it stands, how it learns, and what it says so far. Notices scroll above it.

It is drawn 80 columns wide at most, so that a terminal can be made wider and narrower without a trace.
"""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import TracebackType
from typing import Self

from rich.console import Console, Group  # noqa: TID251
from rich.live import Live  # noqa: TID251
from rich.progress_bar import ProgressBar  # noqa: TID251
from rich.table import Table  # noqa: TID251
from rich.text import Text  # noqa: TID251

from regard.base.times import format_duration
from regard.cli.lines import Speed, brief, ending, one_line, score, started
from regard.train.events import (
    Event,
    Finished,
    Message,
    SampleOutput,
    Saved,
    Spiked,
    Stage,
    Started,
    Updated,
    Validated,
)

WIDTH = 80
BLOCKS = "▁▂▃▄▅▆▇█"
SPARKS = 60  # blocks of the loss
KEPT = 4096  # losses that the sparkline is made of; beyond, every second one is forgotten
PER_SECOND = 4


class Display:
    """A listener that draws.

    with Display(Console()) as display:
        fit(run, folder, listeners=[display])
    """

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._speed, self._losses = Speed(), Losses()
        self._started: Started | None = None
        self._updated: Updated | None = None
        self._validated: Validated | None = None
        self._best: Validated | None = None
        self._saved: int | None = None
        self._stage, self._began = "starting", clock()
        # Other people's writes to stdout are left alone: nothing below the cli prints.
        self._live = Live(
            console=console,
            get_renderable=self.render,
            refresh_per_second=PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        """Hear an event. Drawing happens a few times a second, whatever is heard."""
        match event:
            case Message():
                self._print(event.text, "yellow" if event.kind == "warning" else "")
            case Stage():
                self._stage = event.name + (f": {event.progress}" if event.progress else "")
            case Started():
                self._started = event
                for line in started(event):
                    self._print(line)
            case Updated():
                self._speed.add(event)
                self._losses.add(event.loss)
                self._updated = event  # last: a drawing thread may look in between
            case Validated():
                self._validated = event
                self._best = event if event.is_best else self._best
                self._print(f"{event.update:,}  {brief(event.scores)}", "bold" if event.is_best else "")
            case Saved():
                self._saved = event.update
            case Spiked():
                self._print(f"spike at update {event.update:,}: {event.fault}; {event.action}", "yellow")
            case Finished():
                self._print(ending(event), "bold")

    def _print(self, text: str, style: str = "") -> None:
        """Above the display; text of users is never read as markup."""
        self._console.print(Text(one_line(text), style=style))

    def render(self) -> Group:
        """What is to be seen now."""
        width = min(self._console.width, WIDTH)
        if self._started is None or self._updated is None:
            waited = format_duration(self._clock() - self._began)
            return Group(_cut(f"{self._stage} ... {waited}", width))
        parts: list[Text | Table] = [
            self._progress(width),
            self._figures(width),
            self._spark(width),
            *self._scores(width),
        ]
        if self._validated is not None and self._validated.samples:
            parts.append(_sample(self._validated.samples[0], width))
        return Group(*parts)

    def _progress(self, width: int) -> Table:
        assert self._started is not None and self._updated is not None  # noqa: S101, PT018 - `render` asked
        update, updates = self._updated.update, self._started.updates
        left = format_duration((updates - update) * self._speed.update)
        ends = (f"{update:,}/{updates:,}", f"{update / updates:.0%}", f"{left} left")
        table = Table.grid(padding=(0, 1))
        for _ in range(4):
            table.add_column(no_wrap=True)
        bar = max(4, width - sum(map(len, ends)) - 4)
        table.add_row(ProgressBar(total=updates, completed=update, width=bar), *(Text(end) for end in ends))
        return table

    def _figures(self, width: int) -> Text:
        assert self._updated is not None  # noqa: S101 - `render` asked
        event = self._updated
        saved = "" if self._saved is None else f"  saved at {self._saved:,}"
        return _cut(
            f"epoch {event.epoch + 1}  {self._speed.tokens:,.0f} tokens/s  rate {event.learning_rate:.3g}  "
            f"gradient {event.gradient_norm:.2f}{saved}",
            width,
        )

    def _spark(self, width: int) -> Text:
        losses = self._losses.shown(min(SPARKS, width - 16))
        text = Text("loss ")
        text.append(sparkline(losses), style="cyan")
        text.append(f" {losses[-1]:.4f}")
        return _cut(text, width)

    def _scores(self, width: int) -> list[Text]:
        assert self._started is not None  # noqa: S101 - `render` asked
        metric, before = self._started.metric, self._started.best_score
        if self._validated is None:
            line = "no validation yet" if before is None else f"best {metric} {score(metric, before)} before this start"
            return [_cut(line, width)]
        lines = [_cut(f"last {brief(self._validated.scores)}", width)]
        if self._best is not None and (best := self._best.scores.get(metric)) is not None:
            line = f"best {metric} {score(metric, best)} at update {self._best.update:,}"
            lines.insert(0, _cut(Text(line, style="bold green"), width))
        return lines


class Losses:
    """All losses of a run in little room: when there are too many, neighbours become one."""

    def __init__(self) -> None:
        self._means: list[float] = []
        self._open: list[float] = []
        self._each = 1

    def add(self, loss: float) -> None:
        """One more."""
        self._open.append(loss)
        if len(self._open) >= self._each:
            self._means.append(sum(self._open) / len(self._open))
            self._open.clear()
        if len(self._means) >= KEPT:
            self._means = [(one + other) / 2 for one, other in zip(self._means[::2], self._means[1::2], strict=True)]
            self._each *= 2

    def shown(self, most: int) -> list[float]:
        """At most so many means over equal stretches, from the first to the last."""
        values = list(self._means)  # a copy: it is drawn in another thread than it grows in
        count = min(most, len(values))
        edges = [round(index * len(values) / count) for index in range(count + 1)]
        return [sum(values[low:high]) / (high - low) for low, high in pairwise(edges)]


def sparkline(values: Sequence[float]) -> str:
    """Heights as blocks; what is no number leaves a gap.

    >>> sparkline([3.0, 2.0, 1.0, float("nan"), 1.5])
    '█▅▁ ▃'
    """
    numbers = [value for value in values if value == value and abs(value) != float("inf")]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    step = (high - low) / (len(BLOCKS) - 1) or 1.0
    return "".join(BLOCKS[round((value - low) / step)] if value in numbers else " " for value in values)


def _sample(shown: SampleOutput, width: int) -> Table:
    """A source, what the model makes of it, and what a person made of it, two lines each at most."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(width=width - 11)
    for name, text in (("source", shown.source), ("output", shown.output), ("reference", shown.reference)):
        if text or name == "output":
            cell = Text(one_line(text)[: 4 * width] or "(nothing)", style="bold" if name == "output" else "")
            cell.truncate(2 * (width - 11) - 2, overflow="ellipsis")
            table.add_row(name, cell)
    return table


def _cut(text: str | Text, width: int) -> Text:
    """One line, never two: a display that grows and shrinks flickers."""
    line = Text(text) if isinstance(text, str) else text
    line.truncate(width, overflow="ellipsis")
    line.no_wrap = True
    return line
