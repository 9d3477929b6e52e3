"""The live display of a run: progress, loss curve, scores and a sample output. Messages scroll above it.

It is at most 80 columns wide, so resizing the terminal leaves no artifacts.
"""

import io
import sys
import textwrap
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

from regard.base.formatting import escape_control_characters, format_duration
from regard.cli.notebook import NotebookOutput
from regard.data.example import SampleOutput
from regard.training.event_lines import EventFormatter, format_brief_scores, format_score
from regard.training.events import (
    Event,
    Finished,
    Message,
    Planned,
    Saved,
    Spiked,
    Stage,
    Started,
    StepFinished,
    Validated,
)

WIDTH = 80
BLOCKS = "▁▂▃▄▅▆▇█"
SPARKLINE_WIDTH = 60  # characters of the loss curve
MAX_LOSSES = 4096  # values in the loss history; when it is full, neighbors are averaged
REFRESH_RATE = 4  # per second


class Display:
    """Listener that draws a live display.

    with Display(Console()) as display:
        fit(run, folder, listeners=[display])
    """

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._format, self._losses = EventFormatter(), LossHistory()
        self._started: Started | None = None
        self._updated: StepFinished | None = None
        self._validated: Validated | None = None
        self._best_validation: Validated | None = None
        self._saved_step: int | None = None
        self._stage, self._start_time = "starting", clock()
        # Lines printed by Python listeners scroll above the display. Commands print to the display's own stream.
        self._live = Live(
            console=console,
            get_renderable=self.render,
            refresh_per_second=REFRESH_RATE,
            transient=True,
            redirect_stdout=console.stderr and sys.stdout.isatty(),
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
        """Handle an event. A thread redraws the display a few times per second, independently of events."""
        self._format.record(event)
        match event:
            case Stage():
                self._stage = next(text for text, _ in self._format(event))
            case StepFinished():
                self._losses.add(event.loss)
                self._updated = event  # set last: the drawing thread may read in between
            case Validated():
                self._validated = event
                self._best_validation = event if event.is_best else self._best_validation
                self._print(f"{event.step:,}  {format_brief_scores(event.scores)}", "bold" if event.is_best else "")
            case Saved():
                self._saved_step = event.step
            case Message() | Planned() | Started() | Spiked() | Finished():
                self._started = event if isinstance(event, Started) else self._started
                for text, kind in self._format(event):
                    lines = [text]
                    if kind == "reason":
                        width = self._console.width
                        lines = textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)
                    for line in lines:
                        self._print(line, {"warning": "yellow", "end": "bold"}.get(kind, ""))

    def _print(self, text: str, style: str = "") -> None:
        """Print above the display; user text is never interpreted as markup."""
        self._console.print(Text(escape_control_characters(text), style=style))

    def render(self) -> Group:
        """Render the current state."""
        width = min(self._console.width, WIDTH)
        if self._started is None or self._updated is None:
            elapsed = format_duration(self._clock() - self._start_time)
            return Group(_truncate(f"{self._stage} ... {elapsed}", width))
        parts: list[Text | Table] = [
            self._render_progress(width),
            self._render_figures(width),
            self._render_sparkline(width),
            *self._render_scores(width),
        ]
        if self._validated is not None and self._validated.samples:
            parts.append(_make_sample_table(self._validated.samples[0], width))
        return Group(*parts)

    def _render_progress(self, width: int) -> Table:
        assert self._updated is not None  # noqa: S101 - `render` checked
        step, steps = self._updated.step, self._format.steps
        labels = (f"{step:,}/{steps:,}", f"{step / steps:.0%}", self._format.format_time_left(self._updated))
        table = Table.grid(padding=(0, 1))
        for _ in range(4):
            table.add_column(no_wrap=True)
        bar_width = max(4, width - sum(map(len, labels)) - 4)
        table.add_row(ProgressBar(total=steps, completed=step, width=bar_width), *(Text(label) for label in labels))
        return table

    def _render_figures(self, width: int) -> Text:
        assert self._updated is not None  # noqa: S101 - `render` checked
        event = self._updated
        saved = "" if self._saved_step is None else f"  saved at {self._saved_step:,}"
        return _truncate(f"epoch {event.epoch + 1}  {self._format.format_figures(event)}{saved}", width)

    def _render_sparkline(self, width: int) -> Text:
        losses = self._losses.downsample(min(SPARKLINE_WIDTH, width - 16))
        text = Text("loss ")
        text.append(sparkline(losses), style="cyan")
        text.append(f" {losses[-1]:.4f}")
        return _truncate(text, width)

    def _render_scores(self, width: int) -> list[Text]:
        assert self._started is not None  # noqa: S101 - `render` checked
        metric, previous_best = self._started.metric, self._started.best_score
        if self._validated is None:
            line = (
                "no validation yet"
                if previous_best is None
                else f"best {metric} {format_score(metric, previous_best)} before resuming"
            )
            return [_truncate(line, width)]
        lines = [_truncate(f"last {format_brief_scores(self._validated.scores)}", width)]
        if self._best_validation is not None and (best := self._best_validation.scores.get(metric)) is not None:
            line = f"best {metric} {format_score(metric, best)} at step {self._best_validation.step:,}"
            lines.insert(0, _truncate(Text(line, style="bold green"), width))
        return lines


class NotebookDisplay(Display):
    """Notebook display: one output that is updated in place, with the messages above it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        console = Console(file=io.StringIO(), width=WIDTH, color_system=None, force_jupyter=False)
        super().__init__(console, clock=clock)
        self._messages: list[str] = []
        self._next_update = 0.0
        self._output = NotebookOutput()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, event: Event) -> None:
        """Handle an event and update the output; step events update it a few times per second."""
        super().__call__(event)
        if not isinstance(event, StepFinished) or self._clock() >= self._next_update:
            self._next_update = self._clock() + 1 / REFRESH_RATE
            self._update()

    def _print(self, text: str, style: str = "") -> None:  # noqa: ARG002 - plain text has no style
        self._messages.append(escape_control_characters(text))

    def _update(self) -> None:
        with self._console.capture() as capture:
            self._console.print(self.render())
        self._output.show("\n".join([*self._messages, capture.get().rstrip()]))


class LossHistory:
    """Loss history in bounded memory: when it is full, neighbors are averaged."""

    def __init__(self) -> None:
        self._means: list[float] = []
        self._pending: list[float] = []
        self._bin_size = 1

    def add(self, loss: float) -> None:
        """Add a loss."""
        self._pending.append(loss)
        if len(self._pending) >= self._bin_size:
            self._means.append(sum(self._pending) / len(self._pending))
            self._pending.clear()
        if len(self._means) >= MAX_LOSSES:
            self._means = [(left + right) / 2 for left, right in zip(self._means[::2], self._means[1::2], strict=True)]
            self._bin_size *= 2

    def downsample(self, max_points: int) -> list[float]:
        """Return at most `max_points` means over equal intervals of the run."""
        values = list(self._means)  # a copy: the drawing thread is not the training thread
        count = min(max_points, len(values))
        edges = [round(index * len(values) / count) for index in range(count + 1)]
        return [sum(values[low:high]) / (high - low) for low, high in pairwise(edges)]


def sparkline(values: Sequence[float]) -> str:
    """Draw values as block characters; non-finite values leave a gap.

    >>> sparkline([3.0, 2.0, 1.0, float("nan"), 1.5])
    '█▅▁ ▃'
    """
    numbers = [value for value in values if value == value and abs(value) != float("inf")]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    step = (high - low) / (len(BLOCKS) - 1) or 1.0
    return "".join(BLOCKS[round((value - low) / step)] if value in numbers else " " for value in values)


def _make_sample_table(sample: SampleOutput, width: int) -> Table:
    """Lay out source, output and reference, at most two lines each."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(width=width - 11)
    for name, text in (("source", sample.source), ("output", sample.output), ("reference", sample.reference)):
        if text or name == "output":
            cell = Text(
                escape_control_characters(text)[: 4 * width] or "(empty)", style="bold" if name == "output" else ""
            )
            cell.truncate(2 * (width - 11) - 2, overflow="ellipsis")
            table.add_row(name, cell)
    return table


def _truncate(text: str | Text, width: int) -> Text:
    """Truncate to one line: a display that changes height flickers."""
    line = Text(text) if isinstance(text, str) else text
    line.truncate(width, overflow="ellipsis")
    line.no_wrap = True
    return line
