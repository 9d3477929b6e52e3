"""Lines that describe the events of a run."""

from pathlib import Path

import pytest

from regard.training.event_lines import EventFormatter, FileLog, LineLogger
from regard.training.events import Message, Planned, Started
from tests.cli.event_samples import MARKUP, STARTED, Clock, FakeTerminal, make_step_finished


def test_the_reasons_of_a_plan_are_wrapped_at_the_width_of_a_terminal_only() -> None:
    terminal, lines = FakeTerminal(40), list[str]()
    planned = Planned((f"Vocabulary: 10,000 tokens. {MARKUP}", "Dropout: none."))
    terminal.send(planned)
    LineLogger(lines.append)(planned)
    assert terminal.printed.splitlines() == [
        "- Vocabulary: 10,000 tokens. [bold",
        "  red]not[/] markup [/unknown] [link=x]",
        "- Dropout: none.",
    ]
    assert lines == [f"- Vocabulary: 10,000 tokens. {MARKUP}", "- Dropout: none."]


def test_speed_is_recent() -> None:
    speed = EventFormatter()
    for step in range(100):
        speed.record(make_step_finished(step, seconds=10.0 if step < 50 else 0.5))
    assert speed.tokens_per_second == pytest.approx(8000)
    assert speed.seconds_per_step == pytest.approx(0.5)


def test_the_last_step_is_always_logged() -> None:
    logged: list[str] = []
    listener = LineLogger(logged.append, clock=Clock())
    listener(STARTED)
    for step in range(1, 2001):
        listener(make_step_finished(step))
    assert [line.split()[2] for line in logged[1:]] == ["1/2,000", "2,000/2,000"]


def test_a_resumed_run_reports_where_it_continues() -> None:
    logged: list[str] = []
    LineLogger(logged.append)(Started(Path("m"), 1200, 2000, 10, 10, 1, "cpu", "loss"))
    assert "resuming after step 1,200" in logged[0]


def test_the_log_begins_with_the_reasons_and_grows(tmp_path: Path) -> None:
    path = tmp_path / "run" / "log.txt"
    log = FileLog(path, header=["29,000 pairs: preset tiny."])
    assert not path.parent.exists()  # a new run's folder must be empty
    path.parent.mkdir()
    log(Message("one \ud800"))
    log(Message("two"))
    FileLog(path)(Message("three"))
    first, *others = path.read_text(encoding="utf-8").split("\n")
    assert first == "29,000 pairs: preset tiny."
    assert [line[10:] for line in others] == ["one \\ud800", "two", "three", ""]
