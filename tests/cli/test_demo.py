"""`regard demo` needs no file of the user's, shows the model learning, and says what to type next."""

import gzip
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import check_demo

from regard.base.files import sha256
from regard.config.codec import RUN_FILES
from tests.commands import CommandResult, parse_command_line, run_command, run_command_line

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "src" / "regard" / "assets" / "demo"
MAX_BYTES = 400_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def trained(folder: Path) -> CommandResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return run_command("demo", "--quick")


def test_the_demo_trains_without_any_file(trained: CommandResult, folder: Path) -> None:
    assert trained.code == 0, trained.errors
    assert (folder / "regard-demo" / "model" / "best" / "model.safetensors").is_file()
    assert "CC BY 2.0" in (folder / "regard-demo" / "README.md").read_text(encoding="utf-8")


def test_it_shows_the_same_five_sentences_at_every_stage(trained: CommandResult, folder: Path) -> None:
    sentences = (folder / "regard-demo" / "validation.en").read_text(encoding="utf-8").splitlines()[:5]
    lines = [line.partition("  ")[2] for line in trained.output.splitlines()]  # without the time
    for title in ("before training, from random weights:", "after 10 of 20 steps:", "after 20 of 20 steps:"):
        start = lines.index(title) + 1
        for line, sentence in zip(lines[start : start + 5], sentences, strict=True):
            assert line.startswith(f"    {sentence}  ")
    assert "On 20 test sentences that it never saw: BLEU " in trained.output


@pytest.mark.parametrize("page", ["README.md", "docs/start/first-model.md"])
def test_pages_show_lines_that_the_demo_prints(trained: CommandResult, page: str) -> None:
    printed = {find_form(line) for line in trained.output.splitlines()}
    session = (ROOT / page).read_text(encoding="utf-8").partition("$ regard demo\n")[2]
    lines = re.split(r"^\$ |^```$", session, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
    shown = [line for line in lines if line not in ("", "...") and not line.startswith("    ")]  # not the samples
    assert shown
    assert [line for line in shown if find_form(line) not in printed] == []


def find_form(line: str) -> str:
    """Return a line of the demo without its time and numbers."""
    return re.sub(r"\d[\d.,]*", "N", re.sub(r"^\d\d:\d\d:\d\d  ", "", line))


def test_the_commands_that_it_prints_run(trained: CommandResult, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    commands = [line.strip() for line in trained.output.partition("Next steps:")[2].splitlines() if line.strip()]
    names = [command.split()[1] for command in commands]
    assert names == ["translate", "look", "serve", "evaluate", "train", "check", "train", "train", "look"]
    for command in commands:
        parse_command_line(command)
        is_endless = command.startswith("regard serve")
        if "regard-demo" in command and not is_endless:  # the others name files of the user's
            short = command.partition(" #")[0].replace("--more 500", "--more 1")
            done = run_command_line(f"{short} --save look.html" if command.startswith("regard look") else short)
            assert done.code == 0, (command, done.errors)


def test_a_second_start_says_what_to_do(trained: CommandResult, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trained.code == 0
    monkeypatch.chdir(folder)
    again = run_command("demo")
    assert again.code == 1
    assert "This folder already has a trained demo." in again.errors
    assert "regard translate regard-demo/model" in again.errors


def test_the_first_five_minutes(trained: CommandResult, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of scripts/first_five_minutes.sh, after the installation and with the short demo."""
    assert trained.code == 0
    monkeypatch.chdir(folder)
    script = (ROOT / "scripts" / "first_five_minutes.sh").read_text(encoding="utf-8")
    commands = [line.partition('" ')[2] for line in script.splitlines() if line.startswith('step "regard')]
    assert [command.split()[1] for command in commands] == ["info", "demo", "translate"]
    for command in (commands[0], commands[2]):
        done = run_command_line(command)
        assert done.code == 0, done.errors
        assert done.output.strip()


def test_another_folder(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    refused = run_command("demo", "--out", str(tmp_path / "full"))
    assert refused.code == 1
    assert "not empty" in refused.errors


def test_the_text_is_small_clean_and_held_out() -> None:
    assert sum(file.stat().st_size for file in ASSETS.iterdir()) < MAX_BYTES
    splits = {
        name: gzip.decompress((ASSETS / f"{name}.tsv.gz").read_bytes()).decode().splitlines()
        for name in ("train", "validation", "test")
    }
    assert [len(lines) for lines in splits.values()] == [23100, 200, 200]
    sides = {name: {side for line in lines for side in line.split("\t")} for name, lines in splits.items()}
    assert not sides["train"] & (sides["validation"] | sides["test"])
    assert not sides["validation"] & sides["test"]
    assert all(line.count("\t") == 1 for lines in splits.values() for line in lines)


def test_first_inputs_are_in_the_text_as_people_type_them() -> None:
    train = dict(
        line.split("\t") for line in gzip.decompress((ASSETS / "train.tsv.gz").read_bytes()).decode().splitlines()
    )
    for source in ("Hello", "hello", "HELLO", "Hello!", "Hi", "thanks", "Good morning", "cat", "Cat", "CAT"):
        assert source in train
    for form in (str.lower, str.upper, lambda text: text.rstrip(".!?")):
        assert sum(form(source) == source for source in train) > 1000


def test_outputs_are_judged_without_case_and_punctuation() -> None:
    assert check_demo.find_wrong(["Guten Morgen!", "Hallo Haus."], [["gute nacht", "guten morgen"], ["hallo"]]) == [1]
    rows = [line.split("\t") for line in check_demo.INPUTS.read_text(encoding="utf-8").splitlines()]
    assert [len(row) for row in rows] == [3] * 80
    assert len({source for _, source, _ in rows}) == 80  # no test input is among those that settings are chosen by


def test_samples_are_the_first_of_an_unsorted_validation_set() -> None:
    lines = gzip.decompress((ASSETS / "validation.tsv.gz").read_bytes()).decode().splitlines()
    hashes = [hashlib.sha1(line.encode(), usedforsecurity=False).digest() for line in lines]
    assert hashes == sorted(hashes)


def test_the_run_file_is_valid() -> None:
    run = RUN_FILES.load(ASSETS / "run.toml")
    assert run.validation.samples == 5
    assert run.train.steps % run.validation.every_steps == 0  # the last validation is at the end


@pytest.mark.slow
def test_the_script_makes_the_same_files(tmp_path: Path) -> None:
    """Where the public corpus is at hand."""
    corpus = ROOT / "../shared/data/tatoeba_deen"
    if not corpus.is_dir():
        pytest.skip("needs the shared corpus")
    script = ROOT / "scripts" / "make_demo_data.py"
    files = [str(corpus / "train.en.gz"), str(corpus / "train.de.gz")]
    subprocess.run([sys.executable, str(script), *files, "--out", str(tmp_path)], check=True)  # noqa: S603
    for file in tmp_path.iterdir():
        assert sha256(file) == sha256(ASSETS / file.name), file.name
