"""Formats run events as lines: for output without a terminal, above a live display, and in log.txt.

12:01:33  step 1,200/8,000  epoch 19  loss 3.4120  9,812 tokens/s  lr 0.003  grad norm 0.84  1 h 02 min left
12:01:40  validation at 1,200: loss 3.2010, chrf 31.20, best so far
12:01:40    source:    A man in a blue shirt.
"""

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from regard.base.formatting import escape_control_characters, format_duration, pluralize
from regard.data.example import SampleOutput
from regard.training.events import (
    Diverged,
    Event,
    Finished,
    Message,
    Planned,
    Replanned,
    Saved,
    Spiked,
    Stage,
    Started,
    StepFinished,
    Timed,
    Validated,
)

LOG_INTERVAL = 10.0  # seconds between two lines about steps
SPEED_WINDOW = 30  # number of steps in the speed average
CHOICES = ("Validation data", "Steps", "Languages")  # shown without --explain, like the model and its data
LOG_HINT = "log.txt has the reason for each setting."
Clock = Callable[[], float]
LineKind = Literal["note", "warning", "detail", "reason", "end"]


class EventFormatter:
    """Formats the events of a run as lines for a log and a display, and measures its speed.

    Attributes:
        steps: Total number of steps.
        tokens_per_second: Source and target tokens, without padding, averaged over the last few steps.
        seconds_per_step: Averaged over the last few steps.
    """

    def __init__(self) -> None:
        self._recent: deque[tuple[int, float]] = deque(maxlen=SPEED_WINDOW)
        self._printed_signatures: set[str] = set()
        self.steps, self.tokens_per_second, self.seconds_per_step = 0, 0.0, 0.0

    def record(self, event: Event) -> None:
        """Update the total number of steps and the speed."""
        if isinstance(event, Started | Replanned):
            self.steps = event.steps
        if isinstance(event, StepFinished):
            self._recent.append((event.input_tokens, event.seconds))
            tokens, seconds = (sum(column) for column in zip(*self._recent, strict=True))
            self.tokens_per_second = tokens / max(seconds, 1e-9)
            self.seconds_per_step = seconds / len(self._recent)

    def __call__(self, event: Event) -> Iterator[tuple[str, LineKind]]:
        """Yield the lines of a recorded event with their kind."""
        match event:
            case Message():
                yield event.text, event.kind
            case Stage():
                yield event.name + (f": {event.progress}" if event.progress else ""), "note"
            case Planned():
                for reason in event.reasons:
                    yield f"- {reason}", "reason"
            case Started():
                yield format_started(event), "note"
            case StepFinished():
                progress = f"step {event.step:,}/{self.steps:,}  epoch {event.epoch + 1}  loss {event.loss:.4f}"
                yield f"{progress}  {self.format_figures(event)}  {self.format_time_left(event)}", "note"
            case Timed():
                yield format_timing(event), "detail"
            case Validated():
                best = ", best so far" if event.is_best else ""
                duration = f" ({format_duration(event.seconds)})" if event.seconds >= 1 else ""
                scores = format_scores(event.scores, event.errors)
                yield f"validation at {event.step:,}: {scores}{best}{duration}", "note"
                for sample in event.samples:
                    for line in format_sample(sample):
                        yield line, "note"
                for name, signature in event.signatures.items():
                    if name not in self._printed_signatures:  # it never changes in a run
                        self._printed_signatures.add(name)
                        yield f"  {name} signature: {signature}", "note"
            case Saved():
                yield f"saved {event.path}", "note"
            case Replanned():
                speed = f"a step takes {event.seconds_per_step:.2g} s"
                left = format_duration(event.seconds_left)
                yield f"new plan: {event.steps:,} steps in all, because {speed} and {left} are left", "note"
            case Diverged():
                yield f"diverged at step {event.step:,}: {event.fault}; {event.action}", "warning"
            case Spiked():
                yield f"spike at step {event.step:,}: {event.fault}; {event.action}", "warning"
            case Finished():
                yield format_finished(event), "end"

    def format_figures(self, event: StepFinished) -> str:
        """Format speed, learning rate and gradient norm."""
        speed = f"{self.tokens_per_second:,.0f} tokens/s"
        return f"{speed}  lr {event.learning_rate:.3g}  grad norm {event.gradient_norm:.2f}"

    def format_time_left(self, event: StepFinished) -> str:
        """Format the remaining time at the current speed."""
        return f"{format_duration((self.steps - event.step) * self.seconds_per_step)} left"


class LineLogger:
    """Listener that writes one line per event, with at most one step line every few seconds."""

    def __init__(
        self, write: Callable[[str], object], *, seconds: float = LOG_INTERVAL, clock: Clock = time.time
    ) -> None:
        self._write, self._interval, self._clock = write, seconds, clock
        self._format, self._next_line_time = EventFormatter(), 0.0

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        self._format.record(event)
        if isinstance(event, StepFinished):
            if event.step not in (1, self._format.steps) and self._clock() < self._next_line_time:
                return
            self._next_line_time = self._clock() + self._interval
        stamp = time.strftime("%H:%M:%S", time.localtime(self._clock()))
        for text, kind in self._format(event):
            prefix = "" if kind == "reason" else f"{stamp}  warning: " if kind == "warning" else f"{stamp}  "
            self._write(f"{prefix}{text}")


def remove_details(event: Event) -> Event | None:
    """Return an event without reasons, signatures and all but one sample; None if only details remain.

    >>> remove_details(Planned(("90 pairs: preset mini, because they are few.", "Dropout: none.", "Steps: 9; enough.")))
    Planned(reasons=('90 pairs: preset mini.', 'Steps: 9.', 'log.txt has the reason for each setting.'))
    """
    match event:
        case Message(kind="detail"):
            return None
        case Planned():
            choices = tuple(_shorten_reasons(event.reasons))
            return event if choices == event.reasons else Planned((*choices, LOG_HINT))
        case Validated():
            return replace(event, signatures={}, samples=event.samples[:1])
    return event


def _shorten_reasons(reasons: Sequence[str]) -> Iterator[str]:
    """Yield the choices of model, data and length without explanations, and all warnings."""
    for index, reason in enumerate(reasons):
        name = reason.partition(":")[0]
        if name == "Warning":
            yield reason
        elif index == 0 or name in CHOICES:
            yield re.split("; |, because ", reason)[0].removesuffix(".") + "."


class FileLog:
    """Listener that appends the same lines to log.txt, which it creates on the first event."""

    def __init__(self, path: Path, *, header: Sequence[str] = (), clock: Clock = time.time) -> None:
        self._path, self._header = path, list(header)
        self._logger = LineLogger(self._append, clock=clock)

    def __call__(self, event: Event) -> None:
        """Handle an event. The trainer creates and locks the folder before the first event."""
        self._logger(event)

    def _append(self, line: str) -> None:
        with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{text}\n" for text in (*self._header, line))
        self._header.clear()


def format_timing(event: Timed) -> str:
    """Format where the time of the last steps went."""
    seconds, ranks = max(event.seconds), len(event.seconds)
    line = f"timing: {seconds:.3g} s per step, {100 * max(event.data_seconds) / max(seconds, 1e-9):.0f} % for data"
    if ranks > 1:
        slowest, fastest = max(event.work_seconds), min(event.work_seconds)
        line += f", rank {event.slowest_rank} slowest ({slowest:.3g} s of work; fastest {fastest:.3g} s)"
    memory = f"{max(event.memory_bytes) / 1e9:.2f} GB"
    return f"{line}, peak memory {memory}, MFU {100 * event.mfu:.0f} % of {event.peak_flops:.3g} FLOP/s"


def format_started(event: Started) -> str:
    """Describe a starting or resuming run."""
    position = f"resuming after step {event.step:,}" if event.step else "starting"
    return (
        f"{position}: {event.parameters:,} parameters, {pluralize(event.samples, f'training {event.unit}')}, "
        f"{pluralize(event.validation_samples, f'validation {event.unit}')}, device {event.device}"
    )


def format_finished(event: Finished) -> str:
    """Describe how a run ended, in one line."""
    reasons = {
        "finished": "finished",
        "no improvement": "stopped early: validation no longer improves",
        "stop requested": "stopped on request, checkpoint saved",
        "spike": "stopped by a spike; the last checkpoint precedes it",
        "divergence": "stopped because the loss diverged",
    }
    best = f"; best: {format_scores(event.best_scores)}" if event.best_scores else ""
    shortfall = f". {event.shortfall}" if event.shortfall else ""
    return f"{reasons[event.reason]}, at step {event.step:,}{best}{shortfall}"


def format_scores(values: Mapping[str, float], errors: Mapping[str, float] | None = None) -> str:
    """Format scores in one line, with standard errors if known.

    >>> format_scores({"loss": 3.20111, "chrf": 31.204, "accuracy": 0.51234})
    'loss 3.2011, chrf 31.20, accuracy 51.2 %'
    >>> format_scores({"accuracy": 0.51234}, {"accuracy": 0.02})
    'accuracy 51.2 % ± 2.0 %'
    """
    texts = {name: format_score(name, value) for name, value in values.items()}
    texts |= {name: f"{texts[name]} ± {format_score(name, error)}" for name, error in (errors or {}).items()}
    return ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in texts.items())


SHORT_NAMES = {"perplexity": "ppl", "bits_per_byte": "bits/byte", "accuracy": "acc", "retrieval_at_1": "r@1"}


def format_brief_scores(values: Mapping[str, float]) -> str:
    """Format scores with short names, for one line of a terminal.

    >>> format_brief_scores({"loss": 3.20111, "bits_per_byte": 1.41, "accuracy": 0.51234})
    'loss 3.201  bits/byte 1.410  acc 51.2 %'
    """
    return "  ".join(
        f"{SHORT_NAMES.get(name, name)} {format_score(name, value, is_brief=True)}" for name, value in values.items()
    )


def format_score(name: str, value: float, *, is_brief: bool = False) -> str:
    """Format a score with the usual number of digits."""
    if name in ("accuracy", "f1", "retrieval_at_1"):
        return f"{value:.1%}".replace("%", " %")
    if name == "perplexity":
        return f"{value:,.1f}" if is_brief else f"{value:,.2f}"
    if name in ("bleu", "chrf"):
        return f"{value:.2f}"
    return f"{value:.3f}" if is_brief else f"{value:.4f}"


def format_sample(sample: SampleOutput) -> Iterator[str]:
    """Format a sample: source, output and reference."""
    yield f"  source:    {escape_control_characters(sample.source)}"
    yield f"  output:    {escape_control_characters(sample.output)}"
    if sample.reference:
        yield f"  reference: {escape_control_characters(sample.reference)}"
