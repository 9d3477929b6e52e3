"""A run as a person sees it: live on a terminal, and as lines where there is none."""

import io
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console  # noqa: TID251

from regard.cli.display import KEPT, WIDTH, Display, Losses, sparkline
from regard.cli.lines import Lines, Log, Speed, one_line
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

LONG = "Zwei junge weiße Männer stehen im Freien in der Nähe vieler Büsche. " * 5
MARKUP = "[bold red]not[/] markup [/unknown] [link=x]"


def updated(update: int, loss: float = 3.0, seconds: float = 0.5) -> Updated:
    return Updated(update, update // 10, loss, loss, 4000, 0.002, 1.25, seconds)


def validated(update: int, chrf: float, *, best: bool) -> Validated:
    scores = {"loss": 3.2, "perplexity": 24.53, "bits_per_byte": 1.21, "accuracy": 0.512, "bleu": 12.3, "chrf": chrf}
    shown = SampleOutput("Two men.", f"Zwei {MARKUP} \x1b[31mMänner\n.", LONG)
    return Validated(update, scores, best, (shown,), {"bleu": "tok:13a"}, seconds=2.0)


STARTED = Started(Path("my-model"), 0, 2000, 2_605_056, 28_000, 1_014, "cpu", "chrf")


def story() -> Iterator[Event]:
    yield Stage("learning the vocabulary")
    yield Stage("cutting train into tokens", "29,000 samples")
    yield Message(f"Fastest here: 2 threads. {MARKUP}")
    yield STARTED
    for update in range(1, 201):
        yield updated(update, 8 * math.exp(-update / 50) + 2)
        if update % 100 == 0:
            yield validated(update, chrf=40 - update / 100, best=update == 100)
            yield Saved(update, Path("my-model/checkpoints/step-00000100"))
    yield Spiked(201, "the loss is not finite", "left out")
    yield Message("Met in train: empty line: 2, first at a.en:7.", "warning")
    yield Finished(200, "asked to stop", Path("my-model"), {"chrf": 39.0})


class Seen:
    """A display on a terminal that is only text."""

    def __init__(self, width: int = 80) -> None:
        self.file = io.StringIO()
        self.console = Console(
            file=self.file, width=width, force_terminal=True, color_system=None, legacy_windows=False
        )
        self.now = 0.0
        self.display = Display(self.console, clock=lambda: self.now)

    def hear(self, *events: Event) -> None:
        for event in events:
            self.display(event)

    @property
    def drawn(self) -> list[str]:
        with self.console.capture() as capture:
            self.console.print(self.display.render())
        return capture.get().rstrip("\n").split("\n")

    @property
    def scrolled(self) -> str:
        return self.file.getvalue()


def test_before_the_first_update_the_stage_is_shown() -> None:
    seen = Seen()
    seen.hear(Stage("learning the vocabulary"))
    seen.now = 65.0
    assert seen.drawn == ["learning the vocabulary ... 1 min 05 s"]
    seen.hear(Stage("cutting train into tokens", "29,000 samples"), STARTED)
    assert seen.drawn == ["cutting train into tokens: 29,000 samples ... 1 min 05 s"]


def test_a_long_line_is_cut_and_says_so() -> None:
    seen = Seen(200)
    seen.hear(Stage("reading", "x" * 100))
    assert seen.drawn == ["reading: " + "x" * 70 + "…"]


def test_everything_is_to_be_seen() -> None:
    seen = Seen()
    seen.hear(*story())
    progress, figures, spark, best, last, source, *rest = seen.drawn
    assert progress.endswith("200/2,000 10% 15 min 00 s left")
    assert figures == "epoch 21  8,000 tokens/s  rate 0.002  gradient 1.25  saved at 200"
    assert spark.startswith("loss █")
    assert spark.endswith(" 2.1495")  # the mean of the last stretch
    assert best == "best chrf 39.00 at update 100"
    assert last == "last loss 3.200  ppl 24.5  bits/byte 1.210  acc 51.2 %  bleu 12.30  chrf 38.00"
    assert source.split() == ["source", "Two", "men."]
    text = " ".join(" ".join(rest).split())
    assert MARKUP in text
    assert "\\x1b[31mMänner⏎." in text
    assert text.endswith("…")


@pytest.mark.parametrize("width", [40, 60, 80, 81, 200])
def test_no_line_is_wider_than_the_terminal_or_80(width: int) -> None:
    seen = Seen(width)
    for event in story():
        seen.hear(event)
        assert max(map(len, seen.drawn)) <= min(width, WIDTH)
    assert len(seen.drawn) <= 11


def test_an_empty_output_is_shown_as_one() -> None:
    seen = Seen()
    shown = (SampleOutput("Two men.", "", "Zwei Männer."),)
    seen.hear(STARTED, updated(1), Validated(1, {"loss": 3.0}, True, shown))
    assert seen.drawn[-2].split() == ["output", "(nothing)"]
    seen.hear(Validated(2, {"loss": 3.0}, False, (SampleOutput("Once", " upon", ""),)))
    assert [line.split()[0] for line in seen.drawn[-2:]] == ["source", "output"]


def test_notices_scroll_above_without_markup() -> None:
    seen = Seen(200)
    seen.hear(*story())
    assert MARKUP in seen.scrolled
    assert "spike at update 201: the loss is not finite; left out" in seen.scrolled
    assert "empty line: 2, first at a.en:7" in seen.scrolled
    assert "100  loss 3.200  ppl 24.5" in seen.scrolled
    assert "stopped when asked, and saved, at update 200; best: chrf 39.00" in seen.scrolled
    assert "\x1b[31m" not in seen.scrolled


def test_the_live_display_leaves_nothing_behind() -> None:
    seen = Seen()
    with seen.display as display:
        for event in story():
            display(event)
    assert "\x1b[2K" in seen.scrolled  # the last frame is erased: only notices stay
    assert seen.scrolled.count("\x1b[?25l") == seen.scrolled.count("\x1b[?25h") == 1  # the cursor is back


def test_sparklines() -> None:
    assert sparkline([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]) == "▁▂▃▄▅▆▇█"
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert sparkline([float("inf"), 1.0, float("nan"), 2.0]) == " ▁ █"
    assert sparkline([]) == ""


def test_losses_take_little_room_and_keep_their_shape() -> None:
    losses = Losses()
    count = 5 * KEPT
    for number in range(count):
        losses.add(float(number))
    shown = losses.shown(60)
    assert len(shown) == 60
    assert shown == sorted(shown)
    assert shown[0] < count / 50
    assert shown[-1] > count * 0.97
    assert len(losses._means) < KEPT
    few = Losses()
    few.add(3.0)
    few.add(2.0)
    assert few.shown(60) == [3.0, 2.0]


def test_speed_is_recent() -> None:
    speed = Speed()
    for update in range(100):
        speed.add(updated(update, seconds=10.0 if update < 50 else 0.5))
    assert speed.tokens == pytest.approx(8000)
    assert speed.update == pytest.approx(0.5)


class Clock:
    """Half a second passes with every update."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def lines() -> list[str]:
    clock, written = Clock(), list[str]()
    listener = Lines(written.append, seconds=10.0, clock=clock)
    for event in story():
        if isinstance(event, Updated):
            clock.now += 0.5
        listener(event)
    return [line[10:] for line in written]  # without the time of day


def test_plain_lines() -> None:
    told = lines()
    assert told[:4] == [
        "learning the vocabulary",
        "cutting train into tokens: 29,000 samples",
        f"Fastest here: 2 threads. {MARKUP}",
        "starting: 2,605,056 parameters, 28,000 samples to learn from, 1,014 for validation, on cpu",
    ]
    assert told[4] == (
        "update 1/2,000  epoch 1  loss 9.8416  8,000 tokens/s  rate 0.002  gradient 1.25  16 min 40 s left"
    )
    updates = [line for line in told if line.startswith("update")]
    assert [line.split()[1] for line in updates] == [f"{update}/2,000" for update in range(1, 201, 20)]
    at = told.index(
        "validation at 100: loss 3.2000, perplexity 24.53, bits per byte 1.2100, accuracy 51.2 %, bleu 12.30, "
        "chrf 39.00, best so far (2 s)"
    )
    assert told[at + 1] == "  source:    Two men."
    assert told[at + 2] == f"  output:    Zwei {MARKUP} \\x1b[31mMänner⏎."
    assert told[at + 3] == f"  reference: {LONG}"
    assert told[at + 4 : at + 6] == ["  bleu is tok:13a", "saved my-model/checkpoints/step-00000100"]
    assert told.count("  bleu is tok:13a") == 1
    assert told[-3:] == [
        "warning: spike at update 201: the loss is not finite; left out",
        "warning: Met in train: empty line: 2, first at a.en:7.",
        "stopped when asked, and saved, at update 200; best: chrf 39.00",
    ]


def test_the_last_update_is_always_told() -> None:
    written: list[str] = []
    listener = Lines(written.append, clock=Clock())
    listener(STARTED)
    for update in range(1, 2001):
        listener(updated(update))
    assert [line.split()[2] for line in written[1:]] == ["1/2,000", "2,000/2,000"]


def test_a_resumed_run_says_where_it_goes_on() -> None:
    written: list[str] = []
    Lines(written.append)(Started(Path("m"), 1200, 2000, 10, 10, 1, "cpu", "loss"))
    assert "going on after update 1,200" in written[0]


def test_the_log_begins_with_the_reasons_and_grows(tmp_path: Path) -> None:
    path = tmp_path / "run" / "log.txt"
    log = Log(path, before=["29,000 pairs: preset tiny."])
    assert not path.parent.exists()  # a new run's folder must be empty
    path.parent.mkdir()
    log(Message("one \ud800"))
    log(Message("two"))
    Log(path)(Message("three"))
    first, *others = path.read_text(encoding="utf-8").split("\n")
    assert first == "29,000 pairs: preset tiny."
    assert [line[10:] for line in others] == ["one \\ud800", "two", "three", ""]


def test_text_cannot_move_the_cursor() -> None:
    assert one_line("a\rb\tc\x07\u202e") == "a\\rb\\tc\\x07\\u202e"
    assert one_line("Grüße, 世界 🙂") == "Grüße, 世界 🙂"
