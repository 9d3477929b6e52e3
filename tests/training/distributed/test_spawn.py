"""`regard.train(..., ranks=2)`: the ranks of a call from Python, their events and their end."""

import json
import signal
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import pytest

import regard
from regard.base.errors import RegardError
from regard.config.codec import RUN_FILES
from regard.data.example import SampleOutput
from regard.training import events
from regard.training.distributed.spawn import _forward_events, _parse_event
from regard.training.events import Diverged, Event, Finished, Message, Planned, Saved, Spiked, Started, StepFinished
from tests.faults.frozen import make_smallest_run

ROOT = Path(__file__).parents[3]
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the launcher reads /proc"),
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),  # the agent leaves files open
]
EVENTS: list[Event] = [
    Message("a note"),
    events.Stage("finetune", "1 of 2"),
    Planned(("one", "two")),
    Started(Path("run"), 0, 9, 100, 50, 5, "cpu", "loss", None),
    StepFinished(1, 0, 2.5, float("inf"), 10, 20, 0.1, 1.0, 0.5),
    events.Timed(100, 4000.0, 0.4, 1e11, 1, (0.5, 0.6), (0.0, 0.1), (0.1, 0.0), (0.4, 0.6), (0.4, 0.5), (10, 20)),
    events.Validated(1, {"loss": 2.0}, True, (SampleOutput("a", "b", "c"),), {"bleu": "x"}),
    Saved(1, Path("run/step-1")),
    events.Replanned(1, 8, 3.0, 0.1),
    Spiked(2, "the loss", "skipped"),
    Diverged(2, "8 spikes in a row", "back to step 0"),
    Finished(2, "spike", Path("run"), {"loss": 2.0}),
]


@pytest.mark.usefixtures("launcher_environment")
def test_a_call_trains_with_two_ranks(tmp_path: Path) -> None:
    RUN_FILES.save(make_smallest_run(tmp_path, **{"train.steps": 4}), tmp_path / "run.toml")
    received: list[Event] = []
    finished = regard.train(run=tmp_path / "run.toml", out=tmp_path / "run", ranks=2, listeners=[received.append])
    assert finished == received[-1]
    assert (finished.step, finished.reason, finished.folder) == (4, "finished", tmp_path / "run")
    assert "not usable yet" in finished.shortfall
    assert [event.step for event in received if isinstance(event, StepFinished)] == [1, 2, 3, 4]
    (newest,) = (tmp_path / "run" / "checkpoints").glob("step-00000004")
    assert len(list(newest.glob("shard-*"))) == 2, "each rank has written its file"
    assert finished.load() is not None


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_is_passed_on_as_it_was(event: Event) -> None:
    line = json.dumps({"event": type(event).__name__, **asdict(event)}, default=str)
    assert _parse_event(line.encode()) == event
    assert _parse_event(line.encode()[:-5]) is None, "the line of a killed rank"


def test_every_kind_of_event_is_tested() -> None:
    assert {type(event) for event in EVENTS} == set(Event.__args__)


def test_an_error_of_a_listener_stops_the_run(tmp_path: Path) -> None:
    signals: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, _: signals.append(number))

    def fail(event: Event) -> None:
        raise ValueError(event)

    def write_and_wait() -> None:
        line = json.dumps({"event": "Message", **asdict(EVENTS[0])})
        (tmp_path / "events").write_text(f"{line}\n")
        deadline = time.monotonic() + 20
        while not signals and time.monotonic() < deadline:
            time.sleep(0.01)

    try:
        with pytest.raises(ValueError, match="a note"), _forward_events(tmp_path / "events", fail):
            write_and_wait()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert signals == [signal.SIGINT], "as if the user had pressed Ctrl-C: the run saves and stops"


def test_what_cannot_be_started_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="ranks must be positive, got 0"):
        regard.train("a.en", "a.de", out=tmp_path / "run", ranks=0)
    errors: list[RegardError] = []

    def train() -> None:
        try:
            regard.train("a.en", "a.de", out=tmp_path / "run", ranks=2)
        except RegardError as error:
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert "main thread" in errors[0].message


def test_callback_that_returns_true_stops_the_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ranks get Ctrl-C, save and stop; here a function takes their place."""
    RUN_FILES.save(make_smallest_run(tmp_path), tmp_path / "run.toml")
    is_stopped = threading.Event()

    def pretend_to_launch(arguments: list[str], *_: object, **__: object) -> int:
        path = Path(arguments[-1]) / "events.jsonl"
        handler = signal.signal(signal.SIGINT, lambda *_: is_stopped.set())
        try:
            for event in (EVENTS[4], Finished(1, "stop requested", tmp_path / "run")):
                line = json.dumps({"event": type(event).__name__, **asdict(event)}, default=str)
                with path.open("a") as file:
                    file.write(f"{line}\n")
                assert is_stopped.wait(60)
        finally:
            signal.signal(signal.SIGINT, handler)
        return 0

    monkeypatch.setattr("regard.training.distributed.launcher.launch", pretend_to_launch)
    finished = regard.train(
        run=tmp_path / "run.toml",
        out=tmp_path / "run",
        ranks=2,
        listeners=[lambda event: isinstance(event, StepFinished)],
        progress=False,
    )
    assert finished.reason == "stop requested"
