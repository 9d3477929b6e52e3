"""Long commands say how far they are: a line on standard error now and then, a bar on a terminal."""

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from rich.console import Console  # noqa: TID251
from rich.progress import Progress  # noqa: TID251

import regard
from regard.base.progress import Advance, begin, listen
from regard.cli import evaluate, progress, translate
from regard.exchange import parity
from regard.exchange.export import export_model
from regard.exchange.importer import import_model
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.cli.notebooks import open_notebook
from tests.commands import run_command
from tests.tasks.factories import make_encoder_decoder, make_tokenizers, make_translator_settings


def save_translator(folder: Path) -> None:
    settings = make_translator_settings()
    write_model(folder, settings, make_tokenizers(), get_weights(make_encoder_decoder(settings, 1)), "card")


def test_line_states_share_and_time_left() -> None:
    now = [0.0]
    bar = Progress(console=Console(file=io.StringIO()), get_time=lambda: now[0], disable=True)
    assert progress.format_line(bar) == ""
    task = bar.add_task("translating", total=2000)
    now[0] = 30.0
    assert progress.format_line(bar) == "translating: 30 s so far"
    bar.advance(task, 500)
    assert progress.format_line(bar) == "translating: 500 of 2,000 (25%), about 1 min 30 s left"
    unknown = bar.add_task("scoring", total=None)
    bar.advance(unknown, 1200)
    now[0] = 40.0
    assert progress.format_line(bar) == "scoring: 1,200 in 10 s so far"


def test_lines_without_terminal_show_the_current_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.001)
    monkeypatch.setattr(progress, "SECONDS", 0.001)
    errors = io.StringIO()
    with redirect_stderr(errors), progress.show_stages():
        begin("reading", 4)(4)
        begin("writing", 4)(1)
        while "writing: 1 of 4 (25%)" not in errors.getvalue():
            time.sleep(0.001)
    assert "\x1b" not in errors.getvalue()
    assert begin("nothing listens", 1)(1) is None


def test_notebook_shows_one_line_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "NOTEBOOK_SECONDS", 0.001)
    texts, errors = open_notebook(monkeypatch), io.StringIO()
    with redirect_stderr(errors), progress.show_stages():
        for stage in ("reading", "writing"):
            begin(stage, 4)(1)
            while not any(text.startswith(f"{stage}: 1 of 4 (25%)") for text in texts):
                time.sleep(0.001)
    assert errors.getvalue() == ""


def test_short_command_prints_no_progress() -> None:
    errors = io.StringIO()
    with redirect_stderr(errors), progress.show_progress("reading", 2) as advance:
        advance(2)
    assert errors.getvalue() == ""


class Stages:
    """A listener that keeps the total and the count of every stage."""

    def __init__(self) -> None:
        self.totals: dict[str, int | None] = {}
        self.counts: dict[str, int] = {}

    def begin(self, stage: str, total: int | None) -> Advance:
        self.totals[stage], self.counts[stage] = total, 0

        def advance(count: int) -> None:
            self.counts[stage] += count

        return advance


def test_evaluate_and_translate_advance_to_the_number_of_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_translator(Path("model"))
    Path("source").write_text("one\ntwo\n", encoding="utf-8")
    stages = Stages()

    @contextmanager
    def show_progress(stage: str, total: int | None) -> Iterator[Advance]:
        yield stages.begin(stage, total)

    @contextmanager
    def show_stages() -> Iterator[None]:
        with listen(stages.begin):
            yield

    monkeypatch.setattr(evaluate, "show_stages", show_stages)
    monkeypatch.setattr(translate, "show_progress", show_progress)
    assert run_command("evaluate", "model", "--source", "source", "--reference", "source", "--beam", "1").code == 0
    assert stages.totals == stages.counts == {"translating": 2, "scoring the references": 2}
    assert run_command("translate", "model", "--input", "source", "--output", "target").code == 0
    assert stages.totals["translating"] == stages.counts["translating"] == 2


def test_output_to_a_pipe_does_not_reach_the_terminal_of_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich then treats standard error as a terminal
    output, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(output), redirect_stderr(errors), progress.show_progress("reading", 2):
        sys.stdout.write("a line\n")
    assert output.getvalue() == "a line\n"
    assert "a line" not in errors.getvalue()


def test_export_import_and_look_report_their_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity, "TEXTS", 2)
    save_translator(tmp_path / "model")
    stages = Stages()
    with listen(stages.begin):
        exported, _ = export_model(tmp_path / "model", "huggingface", tmp_path / "exported")
        imported = import_model(exported, tmp_path / "imported")
        regard.look_into(tmp_path / "model", "one", ablation=True)
    assert {"exporting to huggingface", "reading the weights", "writing the model", "recording the model"} <= {
        *stages.totals
    }
    assert stages.counts["writing the model"] == stages.totals["writing the model"] == len(imported.weights)
    assert stages.counts["switching off heads"] == stages.totals["switching off heads"] != 0


def test_line_is_printed_above_the_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich then takes standard error for a terminal
    monkeypatch.setenv("TERM", "xterm")
    with progress.show_stages() as begin_stage:
        begin_stage("exporting", 3)
        progress.print_line("Exported.")
    assert "\x1b[2KExported.\n" in capsys.readouterr().err


def test_stage_inside_another_replaces_it() -> None:
    with progress.show_stages() as start:
        outer = start("outer", 2)
        inner = start("inner", 1)
        outer(1)
        inner(1)
