"""The live display of a run, and its plain lines without a terminal."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.cli.display import MAX_LOSSES, WIDTH, LossHistory, sparkline
from regard.data.example import SampleOutput
from regard.training.event_lines import LineLogger
from regard.training.events import Event, Finished, Message, Saved, Spiked, Stage, StepFinished, Validated
from tests.cli.event_samples import MARKUP, STARTED, Clock, FakeTerminal, make_step_finished

LONG_TEXT = "Zwei junge weiße Männer stehen im Freien in der Nähe vieler Büsche. " * 5


def make_validated(step: int, chrf: float, *, best: bool) -> Validated:
    scores = {"loss": 3.2, "perplexity": 24.53, "bits_per_byte": 1.21, "accuracy": 0.512, "bleu": 12.3, "chrf": chrf}
    sample = SampleOutput("Two men.", f"Zwei {MARKUP} \x1b[31mMänner\n.", LONG_TEXT)
    return Validated(step, scores, best, (sample,), {"bleu": "tok:13a"}, seconds=2.0)


def make_events() -> Iterator[Event]:
    yield Stage("learning the vocabulary")
    yield Stage("tokenizing the train corpus", "29,000 samples")
    yield Message(f"Fastest here: 2 threads. {MARKUP}")
    yield STARTED
    for step in range(1, 201):
        yield make_step_finished(step, 8 * math.exp(-step / 50) + 2)
        if step % 100 == 0:
            yield make_validated(step, chrf=40 - step / 100, best=step == 100)
            yield Saved(step, Path("my-model/checkpoints/step-00000100"))
    yield Spiked(201, "the loss is not finite", "skipped")
    yield Message("Defects in the train corpus: empty line: 2, first at a.en:7.", "warning")
    yield Finished(200, "stop requested", Path("my-model"), {"chrf": 39.0})


def test_before_the_first_step_the_stage_is_shown() -> None:
    terminal = FakeTerminal()
    terminal.send(Stage("learning the vocabulary"))
    terminal.now = 65.0
    assert terminal.rendered == ["learning the vocabulary ... 1 min 05 s"]
    terminal.send(Stage("tokenizing the train corpus", "29,000 samples"), STARTED)
    assert terminal.rendered == ["tokenizing the train corpus: 29,000 samples ... 1 min 05 s"]


def test_a_long_line_is_truncated_with_an_ellipsis() -> None:
    terminal = FakeTerminal(200)
    terminal.send(Stage("reading", "x" * 100))
    assert terminal.rendered == ["reading: " + "x" * 70 + "…"]


def test_the_display_shows_every_part() -> None:
    terminal = FakeTerminal()
    terminal.send(*make_events())
    progress, figures, spark, best, last, source, *rest = terminal.rendered
    assert progress.endswith("200/2,000 10% 15 min 00 s left")
    assert figures == "epoch 21  8,000 tokens/s  lr 0.002  grad norm 1.25  saved at 200"
    assert spark.startswith("loss █")
    assert spark.endswith(" 2.1495")  # the mean of the last interval
    assert best == "best chrf 39.00 at step 100"
    assert last == "last loss 3.200  ppl 24.5  bits/byte 1.210  acc 51.2 %  bleu 12.30  chrf 38.00"
    assert source.split() == ["source", "Two", "men."]
    text = " ".join(" ".join(rest).split())
    assert MARKUP in text
    assert "\\x1b[31mMänner⏎." in text
    assert text.endswith("…")


@pytest.mark.parametrize("width", [40, 60, 80, 81, 200])
def test_no_line_is_wider_than_the_terminal_or_80(width: int) -> None:
    terminal = FakeTerminal(width)
    for event in make_events():
        terminal.send(event)
        assert max(map(len, terminal.rendered)) <= min(width, WIDTH)
    assert len(terminal.rendered) <= 11


def test_an_empty_output_is_marked() -> None:
    terminal = FakeTerminal()
    samples = (SampleOutput("Two men.", "", "Zwei Männer."),)
    terminal.send(STARTED, make_step_finished(1), Validated(1, {"loss": 3.0}, True, samples))
    assert terminal.rendered[-2].split() == ["output", "(empty)"]
    terminal.send(Validated(2, {"loss": 3.0}, False, (SampleOutput("Once", " upon", ""),)))
    assert [line.split()[0] for line in terminal.rendered[-2:]] == ["source", "output"]


def test_messages_scroll_above_without_markup() -> None:
    terminal = FakeTerminal(200)
    terminal.send(*make_events())
    assert MARKUP in terminal.printed
    assert "spike at step 201: the loss is not finite; skipped" in terminal.printed
    assert "empty line: 2, first at a.en:7" in terminal.printed
    assert "100  loss 3.200  ppl 24.5" in terminal.printed
    assert "stopped on request, checkpoint saved, at step 200; best: chrf 39.00" in terminal.printed
    assert "\x1b[31m" not in terminal.printed


def test_the_live_display_leaves_nothing_behind() -> None:
    terminal = FakeTerminal()
    with terminal.display as display:
        for event in make_events():
            display(event)
    assert "\x1b[2K" in terminal.printed  # the last frame is erased: only notices stay
    assert terminal.printed.count("\x1b[?25l") == terminal.printed.count("\x1b[?25h") == 1  # the cursor is back


def test_sparklines() -> None:
    assert sparkline([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]) == "▁▂▃▄▅▆▇█"
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert sparkline([float("inf"), 1.0, float("nan"), 2.0]) == " ▁ █"
    assert sparkline([]) == ""


def test_the_loss_history_is_bounded_and_keeps_its_shape() -> None:
    losses = LossHistory()
    count = 5 * MAX_LOSSES
    for number in range(count):
        losses.add(float(number))
    points = losses.downsample(60)
    assert len(points) == 60
    assert points == sorted(points)
    assert points[0] < count / 50
    assert points[-1] > count * 0.97
    assert len(losses._means) < MAX_LOSSES
    few = LossHistory()
    few.add(3.0)
    few.add(2.0)
    assert few.downsample(60) == [3.0, 2.0]


def log_lines() -> list[str]:
    clock, logged = Clock(), list[str]()
    listener = LineLogger(logged.append, seconds=10.0, clock=clock)
    for event in make_events():
        if isinstance(event, StepFinished):
            clock.now += 0.5
        listener(event)
    return [line[10:] for line in logged]  # without the time of day


def test_plain_lines() -> None:
    logged = log_lines()
    assert logged[:4] == [
        "learning the vocabulary",
        "tokenizing the train corpus: 29,000 samples",
        f"Fastest here: 2 threads. {MARKUP}",
        "starting: 2,605,056 parameters, 28,000 training samples, 1,014 validation samples, device cpu",
    ]
    assert logged[4] == (
        "step 1/2,000  epoch 1  loss 9.8416  8,000 tokens/s  lr 0.002  grad norm 1.25  16 min 40 s left"
    )
    steps = [line for line in logged if line.startswith("step")]
    assert [line.split()[1] for line in steps] == [f"{step}/2,000" for step in range(1, 201, 20)]
    index = logged.index(
        "validation at 100: loss 3.2000, perplexity 24.53, bits per byte 1.2100, accuracy 51.2 %, bleu 12.30, "
        "chrf 39.00, best so far (2 s)"
    )
    assert logged[index + 1] == "  source:    Two men."
    assert logged[index + 2] == f"  output:    Zwei {MARKUP} \\x1b[31mMänner⏎."
    assert logged[index + 3] == f"  reference: {LONG_TEXT}"
    assert logged[index + 4 : index + 6] == ["  bleu signature: tok:13a", "saved my-model/checkpoints/step-00000100"]
    assert logged.count("  bleu signature: tok:13a") == 1
    assert logged[-3:] == [
        "warning: spike at step 201: the loss is not finite; skipped",
        "warning: Defects in the train corpus: empty line: 2, first at a.en:7.",
        "stopped on request, checkpoint saved, at step 200; best: chrf 39.00",
    ]
