"""The help of every command has examples that can be parsed, readable options, and headings."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main  # noqa: TID251

from regard.cli.app import app
from regard.cli.help import OTHER_OPTIONS
from tests.commands import parse_command_line, run_command

REPOSITORY = Path(__file__).parents[2]
COMMAND_COUNT = 20
REMOVED_COMMANDS = ("label", "masked_lm", "caption", "transcribe", "neighbors", "score", "settings")
REMOVED_OPTIONS = ("deploy", "pause-at", "image-size", "accept", "length-normalization", "stop-after")
MAX_HELP_LINES = 60  # at 80 columns
MAX_UNGROUPED = 6  # options without a heading in the help of one command


def iter_commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    if hasattr(command, "list_commands"):  # a group
        context = typer.Context(command)
        for name in command.list_commands(context):
            yield from iter_commands(command.get_command(context, name), (*path, name))


COMMANDS = dict(iter_commands(typer.main.get_command(app)))


def test_command_count_stays_small() -> None:
    names = {path[0] for path in COMMANDS if path}
    assert len(names) == COMMAND_COUNT
    assert names.isdisjoint(REMOVED_COMMANDS)
    options = {name for command in COMMANDS.values() for parameter in command.params for name in parameter.opts}
    assert options.isdisjoint(f"--{name}" for name in REMOVED_OPTIONS)


def test_removed_command_or_option_is_named_nowhere() -> None:
    commands, options = "|".join(REMOVED_COMMANDS), "|".join(REMOVED_OPTIONS)
    pattern = re.compile(rf"\bregard ({commands})\b|(?<![\w-])--({options})\b(?!-)")
    folders = (REPOSITORY / name for name in ("docs", "src", "examples", "scripts", "deploy", "web"))
    files = [file for folder in folders for file in folder.rglob("*") if "node_modules" not in file.parts]
    for file in (REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *files):
        if file.suffix in (".md", ".py", ".toml", ".sh", ".html", ".js", ".ts", ".svelte", ".tsx"):
            assert (found := pattern.search(file.read_text(encoding="utf-8"))) is None, (file, found)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help(path: tuple[str, ...]) -> None:
    done = run_command(*path, "--help", columns=80)
    assert done.code == 0
    assert "<" not in done.output.replace("<2de>", "").replace("<url>", "")  # no types such as <bool>
    assert max(map(len, done.output.splitlines())) <= 100
    assert run_command(*path, "-h", columns=80).output == done.output
    command = COMMANDS[path]
    options = [option for option in command.params if option.param_type_name == "option" and not option.hidden]
    for option in options:
        assert option.help, option.name
        assert option.is_flag or option.metavar, option.name
    ungrouped = done.output.partition(f"{OTHER_OPTIONS}:")[2].count("\n  -")
    assert ungrouped <= MAX_UNGROUPED


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_page_is_short_and_help_all_lists_every_option(path: tuple[str, ...]) -> None:
    page = run_command(*path, "--help", columns=80).output
    assert len(page.splitlines()) <= MAX_HELP_LINES
    command = COMMANDS[path]
    if hasattr(command, "list_commands"):  # a group
        return
    assert {*command.advanced} <= {parameter.name for parameter in command.params}
    assert ("--help-all" in page) == bool(command.advanced)
    done = run_command(*path, "--help-all", columns=80)
    assert done.code == 0
    for parameter in command.params:
        is_shown = parameter.param_type_name == "argument" or f"{max(parameter.opts, key=len)}" in done.output
        assert is_shown, parameter.name


@pytest.mark.parametrize("path", [path for path in COMMANDS if path != ("info",)], ids=" ".join)
def test_examples_can_be_parsed(path: tuple[str, ...]) -> None:
    examples = [line.strip() for line in COMMANDS[path].epilog.strip().splitlines()]
    assert examples
    for example in examples:
        command = example.partition("| ")[2] or example
        parse_command_line(command.partition(" > ")[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tokenizr",), "Did you mean `regard tokenizer`?"),
        (("tokenizer", "lern"), "Did you mean `regard tokenizer learn`?"),
        (("translate", "m", "--n-bst", "3"), "Did you mean --n-best?"),
        (("look", "m", "text", "--out", "page.html"), "Did you mean --save?"),
        (("look", "m", "text", "--beam-size", "2"), "Did you mean --beam?"),
        (("evaluate", "m", "--source", "a.en", "--target", "a.de"), "Did you mean --reference?"),
        (("train", "--lr", "0.1"), "--set train.schedule.lr=VALUE"),
        (("tune", "m", "--learning-rate", "0.1"), "--set train.schedule.lr=VALUE"),
        (("train", "--epochs", "3"), "--minutes N"),
        (("train", "--num-train-epochs", "3"), "--set train.steps=VALUE"),
        (("train", "--batch-size", "64"), "--set train.step_tokens=VALUE"),
        (("translate", "m", "--num-beams", "4"), "Did you mean --beam?"),
        (("translate", "m", "--batch-size", "4"), "Did you mean --batch-tokens?"),
        (("translate", "m", "--num-return-sequences", "4"), "Did you mean --n-best?"),
        (("translate", "m", "--beam", "five"), "got 'five'"),
    ],
)
def test_a_similar_name_is_suggested(arguments: tuple[str, ...], message: str) -> None:
    done = run_command(*arguments)
    assert done.code == 2
    assert message in done.errors


def test_a_name_that_is_not_similar_is_not_suggested() -> None:
    assert "Did you mean" not in run_command("evaluate", "m", "--limit", "100").errors


def test_no_arguments_show_the_help() -> None:
    assert "regard demo" in run_command().output
    assert "regard tokenizer learn" in run_command("tokenizer").output
