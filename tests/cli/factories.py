"""Files and commands that several tests of commands use."""

import json
from pathlib import Path
from typing import Any

from tests.commands import CommandResult, run_command

TABLE = "good dog\tyes\nbad cat\tyes\ngood dog 3\tyes\nbad cat 4\tno\n"
CONLL = "the\tD\ndog\tV\nsees\tV\n\na\tD\ntree\tN\n"
WORDS = ["man", "woman", "dog", "cat", "house", "tree", "runs", "sits", "reads", "near", "under", "with", "old"]
# A model of a few thousand weights, and nothing left to autotune
TINY_OPTIONS = [
    *(f"--set=device.{setting}" for setting in ("threads=1", "logit_rows=0", "attention=autocast")),
    *(f"--set=model.{stack}.layers=1" for stack in ("encoder", "decoder")),
    *(
        "--set=model.d_model=16",
        "--set=tokenizer.vocabulary=300",
        "--set=train.average=1",
        "--set=validation.sentences=4",
    ),
]
PAIR_OPTIONS = ["--source", "a.en", "--target", "a.de"]


def evaluate_json(*arguments: str | Path) -> dict[str, Any]:
    done = run_command("evaluate", *map(str, arguments), "--json")
    assert done.code == 0, done.errors
    evaluation = json.loads(done.output)
    assert isinstance(evaluation, dict)
    return evaluation


def run_train(*arguments: str, code: int = 0) -> CommandResult:
    done = run_command("train", *arguments, columns=200)
    assert done.code == code, f"{done.code}\n{done.output}{done.errors}"
    return done


def write_lines(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def run_regard(*arguments: str, code: int = 0) -> str:
    """Return standard output, or standard error if the command fails."""
    done = run_command(*arguments, columns=120)
    assert done.code == code, done.output + done.errors
    return done.output if code == 0 else done.errors
