"""Events of a short run, and a terminal and a clock that tests set."""

import io
from pathlib import Path

from rich.console import Console  # noqa: TID251

from regard.cli.display import Display
from regard.training.events import Event, Started, StepFinished

MARKUP = "[bold red]not[/] markup [/unknown] [link=x]"


def make_step_finished(step: int, loss: float = 3.0, seconds: float = 0.5) -> StepFinished:
    return StepFinished(step, step // 10, loss, loss, 30, 4000, 0.002, 1.25, seconds)


STARTED = Started(Path("my-model"), 0, 2000, 2_605_056, 28_000, 1_014, "cpu", "chrf")


class FakeTerminal:
    """A display on a terminal that records its output."""

    def __init__(self, width: int = 80) -> None:
        self.file = io.StringIO()
        self.console = Console(
            file=self.file, width=width, force_terminal=True, color_system=None, legacy_windows=False
        )
        self.now = 0.0
        self.display = Display(self.console, clock=lambda: self.now)

    def send(self, *events: Event) -> None:
        for event in events:
            self.display(event)

    @property
    def rendered(self) -> list[str]:
        with self.console.capture() as capture:
            self.console.print(self.display.render())
        return capture.get().rstrip("\n").split("\n")

    @property
    def printed(self) -> str:
        return self.file.getvalue()


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now
