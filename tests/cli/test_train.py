"""`regard train` from the command line: what works, and the error for each likely mistake."""

import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from regard.cli.train import EXIT_CODES, _print_next_steps
from regard.config import codec
from regard.config.run import RunConfig
from regard.config.sources import AnySourceConfig, DocumentsConfig, LinesConfig, TableConfig
from regard.training.events import Finished
from regard.training.run import fit
from tests.cli.factories import CONLL, PAIR_OPTIONS, TABLE, TINY_OPTIONS, run_train, write_lines
from tests.commands import run_command

OUT_OPTIONS = ["--out", "new"]
MAX_HEADER_LINES = 12  # before the first step
MISTAKES: dict[str, tuple[list[str], int, str, str]] = {
    # mistake: (arguments, exit code, part of the message, part of the fix)
    "a missing file": (["--source", "b.en", "--target", "a.de", *OUT_OPTIONS], 1, "no such file", "Check the path"),
    "no target": (["--source", "a.en", *OUT_OPTIONS], 2, "--source a.en has no --target", "use --text"),
    "no source": (["--target", "a.de", *OUT_OPTIONS], 2, "--target a.de has no --source", "Add --source FILE"),
    "no corpus": (OUT_OPTIONS, 2, "No training corpus", "--source a.en --target a.de"),
    "no ranks": ([*PAIR_OPTIONS, *OUT_OPTIONS, "--ranks", "0"], 2, "--ranks must be positive, got 0", "at least 1"),
    "too many ranks": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--ranks", "9999", "--set", "device.name=cpu"],
        1,
        "9999 ranks need 9,999 cores",
        "several hosts: `regard train --hosts`",
    ),
    "hosts that cannot meet": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--hosts", "2"],
        2,
        "--hosts needs --rendezvous",
        "Add --rendezvous HOST:PORT",
    ),
    "an address without hosts": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--ranks", "2", "--rendezvous", "10.0.0.1:29400"],
        2,
        "--rendezvous needs --hosts of at least 2",
        "Add --hosts N",
    ),
    "a dry run of ranks": ([*PAIR_OPTIONS, "--ranks", "2", "--dry-run"], 2, "one process", "Leave out --ranks"),
    "a side twice": (
        ["--source", "a.en", "--source", "five.en", "--target", "a.de", *OUT_OPTIONS],
        2,
        "--source was given 2 times",
        "repeat --data",
    ),
    "one file for both": (
        ["--source", "a.en", "--target", "a.en", *OUT_OPTIONS],
        2,
        "learn to copy",
        "as --target",
    ),
    "sides of different lengths": (
        ["--source", "a.en", "--target", "short.de", *OUT_OPTIONS],
        1,
        "a.en has 200 lines, short.de has 150",
        "Find the line that was lost",
    ),
    "empty files": (
        ["--source", "empty.en", "--target", "empty.de", *OUT_OPTIONS],
        1,
        "The corpus is empty",
        "with text",
    ),
    "an empty file": (
        ["--source", "a.en", "--target", "empty.de", *OUT_OPTIONS],
        1,
        "empty.de has 0",
        "Find the line that was lost",
    ),
    "a folder that is full": ([*PAIR_OPTIONS, "--out", "full"], 1, "not empty", "Choose a new folder"),
    "a folder in a file": ([*PAIR_OPTIONS, "--out", "a.en/model"], 1, "a file, not a folder", "another folder"),
    "a folder that cannot be created": (
        [*PAIR_OPTIONS, "--out", "/proc/new"],
        1,
        "cannot be written",
        "Choose a folder",
    ),
    "a folder of a name that is too long": (
        [*PAIR_OPTIONS, "--out", "n" * 300],
        1,
        "cannot be written: File name too long",
        "Choose a folder",
    ),
    "a file as folder": ([*PAIR_OPTIONS, "--out", "a.en"], 1, "a file, not a folder", "another folder"),
    "a folder before the corpus": (
        ["--source", "b.en", "--target", "a.de", "--out", "a.en"],
        1,
        "a file, not a folder",
        "another folder",
    ),
    "no folder": (PAIR_OPTIONS, 2, "No output folder", "--out FOLDER"),
    "resuming what is no run": (
        ["--resume", "full"],
        1,
        "not a run folder: it has no run.toml",
        "--out folder of a run",
    ),
    "resuming nothing": (["--resume", "nowhere"], 1, "There is no such folder", "--out folder of a run"),
    "resuming with a corpus": (
        ["--resume", "full", *PAIR_OPTIONS],
        2,
        "--source cannot be given",
        "Leave out --source",
    ),
    "resuming elsewhere": (
        ["--resume", "full", *OUT_OPTIONS],
        2,
        "continues a run with its own folder",
        "Leave out --out",
    ),
    "two numbers of steps": (
        ["--resume", "full", "--more", "5", "--steps", "9"],
        2,
        "Both --steps and --more",
        "--more adds to the old total",
    ),
    "more of a new run": ([*PAIR_OPTIONS, *OUT_OPTIONS, "--more", "5"], 2, "--more needs --resume", "--steps N"),
    "an unknown preset": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--preset", "tini"],
        1,
        "no preset 'tini'",
        "Did you mean 'tiny'",
    ),
    "a preset of another family": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--preset", "gpt2"],
        1,
        "continues a text",
        "Use one of",
    ),
    "an unknown key": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--set", "train.max_grad_nom=1"],
        1,
        "train.max_grad_nom: is not a key",
        "Did you mean 'max_grad_norm'",
    ),
    "a preset by --set": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--set", "model.preset=small"],
        2,
        "--set cannot change model.preset",
        "--preset",
    ),
    "a setting without =": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--set", "train.max_grad_norm"],
        2,
        "is not a setting",
        "--set train.max_grad_norm=0.5",
    ),
    "a value of another type": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--set", "train.keep_checkpoints=two"],
        1,
        "train.keep_checkpoints: is 'two'",
        "valid integer",
    ),
    "text with a target": (
        ["--text", "a.en", "--target", "a.de", *OUT_OPTIONS],
        2,
        "--text cannot be combined with --target",
        "--source and --target",
    ),
    "too few lines": (
        ["--source", "five.en", "--target", "five.de", *OUT_OPTIONS],
        1,
        "5 pairs are too few to hold some out",
        "--validation-source and --validation-target",
    ),
    "too short a text": (["--text", "five.en", *OUT_OPTIONS], 1, "characters, too few", "at least 2,000"),
    "a picture": (["--text", "picture.txt", *OUT_OPTIONS], 1, "not a text file", "Pass UTF-8 text"),
    "another encoding": (["--text", "latin.txt", *OUT_OPTIONS], 1, "Not UTF-8", "iconv"),
    "validation of different lengths": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--validation-source", "a.en", "--validation-target", "short.de"],
        1,
        "short.de has 150",
        "Find the line that was lost",
    ),
    "validation of another kind": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--validation", "a.en"],
        1,
        "validation corpus contains text, but the training corpus pairs",
        "of the same kind",
    ),
    "half of a validation": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--validation-source", "a.en"],
        2,
        "has no --validation-target",
        "Add --validation-target",
    ),
    "a run file that is none": (["broken.toml", *OUT_OPTIONS], 1, "is not TOML", "broken.toml"),
    "three files": (
        ["a.en", "a.de", "book.txt", *OUT_OPTIONS],
        2,
        "one file or two aligned files, got 3",
        "repeat --data",
    ),
    "files and options": (
        ["book.txt", *PAIR_OPTIONS, *OUT_OPTIONS],
        2,
        "--source cannot be combined",
        "either as files",
    ),
    "a run file and a file": (
        ["broken.toml", "a.en", *OUT_OPTIONS],
        2,
        "cannot be combined with another",
        "Give only the run file",
    ),
    "a missing run file": (["run.toml", *OUT_OPTIONS], 1, "cannot be read", "run.toml"),
    "a run file and a corpus": (
        ["broken.toml", *PAIR_OPTIONS, *OUT_OPTIONS],
        2,
        "--source cannot be combined",
        "run file",
    ),
    "a run file and validation": (
        ["broken.toml", "--validation-source", "a.en", "--validation-target", "a.de", *OUT_OPTIONS],
        2,
        "--validation-source cannot be combined",
        "run file",
    ),
    "minutes and steps": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--minutes", "5", "--steps", "9"],
        2,
        "Both --minutes and",
        "or --steps",
    ),
    "minutes and steps by --set": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--minutes", "5", "--set", "train.steps=9"],
        2,
        "Both --minutes and",
        "or --steps",
    ),
    "no time": ([*PAIR_OPTIONS, *OUT_OPTIONS, "--minutes", "0"], 2, "--minutes must be positive, got 0", "at least 1"),
    "less than no steps": (
        [*PAIR_OPTIONS, *OUT_OPTIONS, "--steps", "-5"],
        2,
        "--steps must be positive, got -5",
        "at least 1",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.usefixtures("corpus")
def test_likely_mistakes_have_a_clear_error(mistake: str) -> None:
    arguments, code, message, hint = MISTAKES[mistake]
    done = run_train(*arguments, code=code)
    assert message in done.errors
    assert hint in done.errors
    assert "Traceback" not in done.errors
    assert not Path("new").exists()


@pytest.mark.usefixtures("corpus")
def test_a_run_from_files_to_a_model_and_resumed() -> None:
    done = run_train(*PAIR_OPTIONS, *OUT_OPTIONS, "--steps", "4", "--seed", "7", *TINY_OPTIONS)
    assert "200 pairs: preset mini" in done.output
    assert "step 4/4" in done.output
    assert "validation at 4: loss" in done.output
    assert "chrF" in done.output.split("finished, at step 4")[1]  # what is missing, and how to continue
    assert "Continue with: regard train --resume new --more" in done.output
    log = Path("new/log.txt").read_text(encoding="utf-8")
    assert "200 pairs: preset mini" in log
    assert "step 4/4" in log
    run = codec.RUN_FILES.load(Path("new/run.toml"))
    assert (run.seed, run.data.seed, run.train.steps) == (7, 7, 4)
    assert Path("new/best/model.safetensors").is_file()
    for arguments, message, hint in (
        ([], "finished: it completed 4 of 4 steps", "--more N"),
        (["--steps", "3"], "already completed 4 steps, more than the requested 3", "--more N"),
        (["--set", "train.max_grad_norm=0.5", "--more", "2"], "train.max_grad_norm: was 1.0, is 0.5", "--force"),
    ):
        refused = run_train("--resume", "new", *arguments, code=1)
        assert message in refused.errors
        assert hint in refused.errors
    again = run_train(*PAIR_OPTIONS, *OUT_OPTIONS, code=1)
    assert "This folder already contains a run" in again.errors
    assert "--resume new" in again.errors
    more = run_train("--resume", "new", "--more", "2")
    assert "resuming after step 4" in more.output
    assert "step 6/6" in more.output
    assert Path("new/log.txt").read_text(encoding="utf-8").startswith(log)


@pytest.mark.usefixtures("corpus")
def test_output_of_a_run_has_details_only_with_explain() -> None:
    details = (", because ", "Norms:", "Cost:", "Label smoothing:", '" -> "', "signature: nrefs:1")
    outputs = list[str]()
    for folder, explain in (("brief", []), ("explained", ["--explain"])):
        outputs.append(run_train(*PAIR_OPTIONS, "--out", folder, "--steps", "1", *TINY_OPTIONS, *explain).output)
        log = Path(folder, "log.txt").read_text(encoding="utf-8")
        assert [detail for detail in details if detail not in log] == []
    brief, explained = outputs
    assert [detail for detail in details if detail not in explained] == []
    assert [detail for detail in details if detail in brief] == []
    header, _, progress = brief.partition("step 1/1")
    assert header.count("\n") <= MAX_HEADER_LINES
    for text in (
        "a.en and a.de: source and target",
        "200 pairs: preset mini",
        "Steps: 1 of ",
        "log.txt has the reason",
    ):
        assert text in header
    assert progress.count("source: ") == progress.count("validation at ")  # one sample each
    assert "Best model so far: brief/best" in progress


@pytest.mark.usefixtures("corpus")
def test_changed_files_are_named_unless_accepted() -> None:
    run_train(*PAIR_OPTIONS, *OUT_OPTIONS, "--steps", "2", *TINY_OPTIONS)
    with Path("a.en").open("a", encoding="utf-8") as file:
        file.write("one more\n")
    assert "--force" in run_train("--resume", "new", "--more", "1", code=1).errors
    assert "a.en has different content" in run_train("--resume", "new", "--more", "1", "--force").output


@pytest.mark.usefixtures("corpus")
def test_a_run_file_is_used_unchanged() -> None:
    dry = run_train(*PAIR_OPTIONS, "--dry-run", "--steps", "3", *TINY_OPTIONS)
    text = dry.output[dry.output.index("format = 1") :]
    Path("run.toml").write_text(text, encoding="utf-8")
    assert "Time: about 1 s on this machine (0.25 s per step" in dry.output
    assert not Path("new").exists()
    done = run_train("run.toml", *OUT_OPTIONS, "--set", "train.max_grad_norm=0.25")
    assert "Cost:" in done.output
    run = codec.RUN_FILES.load(Path("new/run.toml"))
    assert run.train.max_grad_norm == 0.25
    assert run.train.steps == 3


@pytest.mark.usefixtures("corpus")
@pytest.mark.parametrize(
    ("files", "source"),
    [
        (["a.en", "a.de"], LinesConfig(source="a.en", target="a.de", languages=("en", "de"))),
        (["book.txt"], DocumentsConfig(path="book.txt")),
        (["a.tsv"], TableConfig(path="a.tsv", label=2)),
        (["texts"], DocumentsConfig(path="texts")),
    ],
)
def test_files_need_no_option(files: list[str], source: AnySourceConfig) -> None:
    write_lines("a.tsv", [f"text {n}\t{n % 2}" for n in range(100)])
    Path("texts").mkdir()
    Path("texts/one.txt").write_text(Path("book.txt").read_text(encoding="utf-8"), encoding="utf-8")
    done = run_train(*files, "--dry-run")
    run = codec.RUN_FILES.parse(tomllib.loads(done.output[done.output.index("format = 1") :]))
    assert run.data.train == (source,)


@pytest.mark.usefixtures("corpus")
def test_train_shows_columns_and_examples_and_asks_for_languages() -> None:
    pairs = zip(*(Path(name).read_text(encoding="utf-8").splitlines() for name in ("a.en", "a.de")), strict=True)
    write_lines("pairs.tsv", [f"{n}\t{source}\t{n + 7}\t{target}" for n, (source, target) in enumerate(pairs)])
    arguments = ("pairs.tsv", "--dry-run", "--steps", "1", *TINY_OPTIONS)
    text = run_train(*arguments).output
    source, target = (Path(name).read_text(encoding="utf-8").splitlines()[0] for name in ("a.en", "a.de"))
    assert "pairs.tsv: column 2 is the source, column 4 is the target" in text
    assert f'"{source}" -> "{target}"' in text
    assert "Set them with --languages (e.g. en de), or later with `regard model set-languages`." in text
    assert "Languages: not set" not in run_train(*arguments, "--languages", "en", "de").output


@pytest.mark.usefixtures("corpus")
def test_the_corpus_is_checked_before_the_run_starts() -> None:
    rows = Path("a.en").read_text(encoding="utf-8").split("\n")[:-1]
    write_lines("copy.de", rows)
    arguments = ["a.en", "copy.de", *OUT_OPTIONS, "--steps", "1", *TINY_OPTIONS]
    refused = run_train(*arguments, code=1)
    assert "Do not train on this yet:\n  - Untranslated copy: 100.0% of the checked lines, the first at a.en:1." in (
        refused.errors
    )
    assert "use --force" in refused.errors
    assert not Path("new").exists()
    forced = run_train(*arguments, "--force")
    assert "warning: Untranslated copy" in forced.output
    assert "Warning: Untranslated copy" in Path("new/log.txt").read_text(encoding="utf-8")
    assert "Untranslated copy" not in run_train("--resume", "new", "--more", "1").output  # not asked again
    Path("run.toml").write_bytes(Path("new/run.toml").read_bytes())
    assert "Untranslated copy" in run_train("run.toml", "--out", "second", code=1).errors
    assert not Path("second").exists()
    swapped = run_train("--source", "a.de", "--target", "a.en", "--languages", "en", "de", "--dry-run", code=1)
    assert "The languages are swapped" in swapped.errors


@pytest.mark.usefixtures("corpus")
def test_a_dry_run_creates_no_folder() -> None:
    before = sorted(Path().iterdir())
    done = run_train("--text", "book.txt", "--dry-run", "--set", "model.decoder.layers=1")
    assert "preset lm-small" in done.output
    assert "distinct characters" in done.output
    assert 'task = "causal_lm"' in done.output
    assert sorted(Path().iterdir()) == before


@pytest.mark.usefixtures("corpus")
def test_dry_run_states_one_time() -> None:
    timed = run_train("--text", "book.txt", "--dry-run").output
    assert "Time: about" in timed
    assert "s per step" in timed
    for minutes, expected in (("0.02", "Time: 0.02 minutes, as you"), ("900", "Time: at most 900 minutes, as you")):
        given = run_train("--text", "book.txt", "--dry-run", "--minutes", minutes).output
        assert expected in given
        assert "s per step" not in given


@pytest.mark.usefixtures("corpus")
def test_dry_run_on_a_terminal_prints_no_run_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.cli.train.show_events", lambda **_: nullcontext(lambda _: None))
    assert "[train]" in run_train("--text", "book.txt", "--dry-run").output
    monkeypatch.setattr("regard.cli.train._is_terminal", lambda: True)
    done = run_train("--text", "book.txt", "--dry-run")
    assert "prints them as a run file" in done.output
    assert "[train]" not in done.output


@pytest.mark.usefixtures("corpus")
def test_own_validation_files_and_other_corpora() -> None:
    validation_options = ["--validation-source", "five.en", "--validation-target", "five.de"]
    done = run_train(*PAIR_OPTIONS, "--dry-run", *validation_options, *TINY_OPTIONS)
    assert "Validation data: 5 pairs, as given." in done.output
    assert "held_out = 0.0" in done.output
    write_lines("a.tsv", [f"text {n}\t{n % 2}" for n in range(100)])
    assert 'task = "text_classification"' in run_train("--data", "a.tsv", "--dry-run").output


@pytest.mark.usefixtures("corpus")
def test_a_stopped_run_reports_how_to_continue() -> None:
    from regard.training.events import Finished

    assert EXIT_CODES == {"finished": 0, "no improvement": 0, "stop requested": 75, "spike": 76, "divergence": 76}
    for reason, options, code, message in (
        ("stop requested", [], 75, "--resume new"),
        ("spike", ["--set", "train.spikes.kind=stop"], 76, "spikes.kind=recover --force"),
        ("divergence", [], 76, "--set train.schedule.lr=0.001 --force"),
    ):

        def fake_fit(run: RunConfig, folder: Path, reason: Any = reason, **_: object) -> Finished:
            folder.mkdir()
            codec.RUN_FILES.save(run, folder / "run.toml")
            return Finished(3, reason, folder, rate_change="train.schedule.lr=0.001")

        with mock.patch("regard.training.run.fit", fake_fit):
            done = run_train(*PAIR_OPTIONS, *OUT_OPTIONS, *options, code=code)
        assert message in done.output
        shutil.rmtree("new")


@pytest.mark.usefixtures("corpus")
def test_ctrl_c_saves_and_ends_with_75(until: Callable[[Callable[[], bool]], None]) -> None:
    """The command itself, in a process of its own: the signal, the code."""
    arguments = [
        "train",
        *PAIR_OPTIONS,
        *OUT_OPTIONS,
        "--steps",
        "100000",
        *TINY_OPTIONS,
    ]
    with subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "regard", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        until(lambda: process.poll() is not None or Path("new/metrics.jsonl").is_file())
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 75, output
    assert "stopped on request, checkpoint saved" in output
    assert "regard train --resume new" in output


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    def wait_until(happened: Callable[[], bool]) -> None:
        end = time.monotonic() + 120
        while not happened():
            assert time.monotonic() < end, "it never happened"
            time.sleep(0.05)

    return wait_until


@pytest.mark.usefixtures("corpus")
def test_languages_and_validation_options_are_used() -> None:
    dry = run_train(*PAIR_OPTIONS, "--dry-run", "--languages", "fr", "it", *TINY_OPTIONS).output
    assert '"fr"' in dry
    assert '"it"' in dry
    assert ", as given" in run_train("--text", "book.txt", "--validation", "book.txt", "--dry-run").output


@pytest.mark.usefixtures("corpus")
def test_an_unknown_tracker_is_named() -> None:
    assert "'x'" in run_train(*PAIR_OPTIONS, *OUT_OPTIONS, "--track", "x", *TINY_OPTIONS, code=1).errors


@pytest.mark.usefixtures("corpus")
def test_ranks_get_a_total_of_steps_that_a_second_attempt_can_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("regard.training.run.fit", partial(fit, pause_at=2))
        run_train(*PAIR_OPTIONS, *OUT_OPTIONS, *TINY_OPTIONS, "--steps", "4", code=75)
    launched: list[list[str]] = []

    def launch(arguments: list[str], *_: object, **__: object) -> int:
        launched.append(arguments)
        return 75

    monkeypatch.setattr("regard.training.distributed.launcher.launch", launch)
    monkeypatch.setattr("regard.training.distributed.rendezvous.count_cores", lambda: 2)
    run_train("--resume", "new", "--more", "3", "--ranks", "2", code=75)
    assert launched == [["-m", "regard", "train", "--resume", "new", "--ranks", "2", "--steps", "7"]]


@pytest.mark.usefixtures("corpus")
def test_the_variables_of_another_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may set them for one process; of several ranks, none can plan or launch others."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert "Steps: 3" in run_train(*PAIR_OPTIONS, "--dry-run", "--steps", "3", *TINY_OPTIONS).output
    monkeypatch.setenv("WORLD_SIZE", "2")
    for option in (["--dry-run"], ["--ranks", "2"]):
        done = run_train(*PAIR_OPTIONS, *option, *TINY_OPTIONS, code=2)
        assert "RANK and WORLD_SIZE are set: a launcher started this process as one of 2 ranks." in done.errors


@pytest.mark.parametrize(
    ("task", "data"), [("masked_lm", "the dog\n"), ("text_classification", TABLE), ("tagging", CONLL)]
)
def test_the_commands_printed_after_training_work(
    trained_encoders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], task: str, data: str
) -> None:
    test_file = tmp_path / {"masked_lm": "test.txt", "text_classification": "test.tsv", "tagging": "test.conll"}[task]
    test_file.write_text(data)
    _print_next_steps(Finished(60, "finished", trained_encoders[task]))
    lines = capsys.readouterr().out.splitlines()
    commands = [line.partition(": regard ")[2] for line in lines if line.startswith(("Use it:", "Evaluate it:"))]
    assert len(commands) == 2
    for command in commands:
        done = run_command(*(str(test_file) if part == "TEST" else part for part in shlex.split(command)))
        assert done.code == 0, done.errors
        assert done.output
