"""Check docs/lectures/coverage.md against the code, and write its totals.

    python scripts/check_lectures.py            # print what is wrong; exit code 1 if anything is
    python scripts/check_lectures.py --write    # also compute the totals at the top of the page
    python scripts/check_lectures.py --run      # run every command at a small size (scripts/run_lectures.py)
    python scripts/check_lectures.py --sample 40    # run 40 rows, and compare the numbers that they state

Checks that items are numbered from 1 without gaps, that every state is allowed, that every module, function, file and
test of a row exists, and that every command parses: options, settings of --set, presets and files. Without --run and
--sample it runs no command.
"""

import argparse
import ast
import importlib
import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "lectures" / "coverage.md"
ITEMS = 389
HEADER = "| # | item | state | code | test | command |"
STATES = ("done", "partly", "planned", "not yet", "named")
SUBJECTS = (
    "before the Transformer",
    "distributed",
    "exchange",
    "fine-tuning",
    "images and audio",
    "lecture pages",
    "serving",
)
START, END = "<!-- totals: python scripts/check_lectures.py --write -->", "<!-- end of totals -->"


@dataclass(frozen=True)
class Item:
    """One row of the page."""

    lecture: str
    number: str
    text: str
    state: str
    """One of STATES."""
    detail: str
    """What is missing (partly) or the subject that will bring it (planned); else empty."""
    code: tuple[str, ...]
    tests: tuple[str, ...]
    command: str

    @property
    def subject(self) -> str:
        """The subject that will bring what is missing; empty if none is named."""
        if self.state == "planned":
            return self.detail
        match = re.search(r"\(([^()]+)\)$", self.detail)
        return match[1] if match and match[1] in SUBJECTS else ""


def read_items(page: str) -> list[Item]:
    """Read the rows of the page.

    Raises:
        ValueError: A row has not six cells.
    """
    items, lecture, is_table = [], "", False
    for line in page.splitlines():
        if line.startswith("## "):
            lecture = line[3:].strip()
        is_table = line.startswith("|") and (is_table or line == HEADER)
        if not is_table or line == HEADER or line.startswith("|---"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) != 6:
            raise ValueError(f"a row has {len(cells)} cells, not 6: {line}")
        number, text, state, code, tests, command = ("" if cell == "-" else cell for cell in cells)
        name, _, detail = state.partition(": ")
        items.append(
            Item(
                lecture, number, text, name, detail, _split(code), _split(tests), command.strip("`") if command else ""
            )
        )
    return items


def _split(cell: str) -> tuple[str, ...]:
    return tuple(part.strip("`") for part in cell.split(", ")) if cell else ()


def read_models(page: str) -> dict[str, str]:
    """Return the models that the page names, each with the command that makes it."""
    return dict(re.findall(r"^\| `([\w-]+)` \| `(regard train [^`]+)` \|$", page, re.MULTILINE))


def read_reasons(page: str) -> dict[str, str]:
    """Return the commands that need more than a checkout, each with what they need and what they cost."""
    return dict(re.findall(r"^\| `(python [^`]+)` \| ([^`|]+) \|$", page, re.MULTILINE))


def format_totals(items: Sequence[Item]) -> str:
    """Return the tables at the top of the page."""
    lectures = list(dict.fromkeys(item.lecture for item in items))
    lines = [f"| lecture | items | {' | '.join(STATES)} |", "|---|---:" + "|---:" * len(STATES) + "|"]
    for lecture in [*lectures, None]:
        selected = [item for item in items if lecture in (None, item.lecture)]
        counts = Counter(item.state for item in selected)
        cells = [str(len(selected)), *(str(counts[state]) for state in STATES)]
        name = "all" if lecture is None else lecture.partition(":")[0]
        lines.append(f"| {' | '.join([name, *cells])} |")
    lines += ["", "| subject to come | planned | partly |", "|---|---:|---:|"]
    by_subject = Counter((item.subject, item.state) for item in items)
    for subject in SUBJECTS:
        if by_subject[subject, "planned"] + by_subject[subject, "partly"]:
            lines.append(f"| {subject} | {by_subject[subject, 'planned']} | {by_subject[subject, 'partly']} |")
    return "\n".join(lines)


def replace_totals(page: str) -> str:
    """Return the page with its totals computed."""
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    return f"{before}{start}\n\n{format_totals(read_items(page))}\n\n{end}{after}"


def find_faults(page: str) -> Iterator[str]:
    """Yield what is wrong with the page."""
    items = read_items(page)
    if (numbers := [item.number for item in items]) != [str(number + 1) for number in range(ITEMS)]:
        wrong = next((n for n, number in enumerate(numbers, start=1) if number != str(n)), len(numbers) + 1)
        yield f"items are not numbered 1 to {ITEMS}: look at {wrong}"
    if START not in page or END not in page:
        yield "the page has no place for the totals"
    elif replace_totals(page) != page:
        yield "the totals are not those of the rows: run python scripts/check_lectures.py --write"
    commands = {item.command for item in items}
    for name, command in read_models(page).items():
        if not command.endswith(f" --out {name}"):
            yield f"the command of the model {name} makes another: `{command}`"
        yield from (f"the model {name}: {fault}" for fault in _check_command(command))
    for command in read_reasons(page):
        if command not in commands:
            yield f"no row has the command `{command}`"
    for item in items:
        for fault in (*_check_state(item), *_check_code(item), *_check_tests(item), *_check_command(item.command)):
            yield f"item {item.number} ({item.text}): {fault}"


def _check_state(item: Item) -> Iterator[str]:
    if item.state not in STATES:
        yield f"state '{item.state}' is not one of {', '.join(STATES)}"
    elif item.state == "done":
        if item.detail:
            yield "a finished item has no remark"
        for name, value in (("code", item.code), ("test", item.tests), ("command", item.command)):
            if not value:
                yield f"a finished item needs its {name}"
    elif item.state == "partly":
        if not item.detail:
            yield "say what is missing: 'partly: ...'"
        if not item.code:
            yield "an item that is there in part needs its code"
        named = re.search(r"\(([^()]+)\)$", item.detail)
        if named and not item.subject:
            yield f"'{named[1]}' is not a subject: {', '.join(SUBJECTS)}"
    elif item.command:
        yield f"an item that is '{item.state}' has no command"
    if item.state == "planned" and item.detail not in SUBJECTS:
        yield f"'{item.detail}' is not a subject: {', '.join(SUBJECTS)}"


def _check_code(item: Item) -> Iterator[str]:
    for name in item.code:
        if not ((ROOT / name).is_file() if "/" in name else _has_attribute(name)):
            yield f"there is no {name}"


@cache
def _has_attribute(name: str) -> bool:
    """Whether regard has this module, class, function, method or field."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            target: object = importlib.import_module(".".join(["regard", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(target, part) and part not in getattr(target, "__annotations__", {}):
                return False
            target = getattr(target, part, None)
        return True
    return False


def _check_tests(item: Item) -> Iterator[str]:
    for name in item.tests:
        path, _, function = name.partition("::")
        if function not in _list_tests(ROOT / "tests" / path):
            yield f"there is no test {name}"


@cache
def _list_tests(path: Path) -> frozenset[str]:
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@cache
def _check_command(command: str) -> tuple[str, ...]:
    match shlex.split(command):
        case []:
            return ()
        case ["regard", *arguments]:
            return tuple(_check_arguments(arguments))
        case ["python", "-m", "pytest", path] | ["python", path, *_] if (ROOT / path).is_file():
            return ()
        case ["python", "-m", module, *_] if (ROOT / module.replace(".", "/")).with_suffix(".py").is_file():
            return ()
        case _:
            return (f"cannot run `{command}`",)


def _check_arguments(arguments: list[str]) -> Iterator[str]:
    """Parse arguments as `regard` would, without running the command."""
    import typer  # noqa: TID251 - reads the commands

    from regard.base.errors import RegardError
    from regard.cli.app import app

    command, rest = typer.main.get_command(app), list(arguments)
    names = []
    while isinstance(command, typer.core.TyperGroup):
        if names and command.invoke_without_command and (not rest or rest[0].startswith("-")):
            break
        names.append(rest.pop(0) if rest else "")
        subcommand = command.get_command(typer.Context(command), names[-1])
        if subcommand is None:
            yield f"there is no command `regard {' '.join(names)}`"
            return
        command = subcommand
    for parameter in command.params:
        parameter.callback = None  # the files and models of a lecture need not exist here
    try:
        context = command.make_context(names[-1], rest)
        _check_settings(names[0], context.params)
    except RegardError as error:
        yield f"`regard {shlex.join(arguments)}`: {error}"
    except Exception as error:
        if not hasattr(error, "format_message"):  # a usage error of Typer, whose class depends on its version
            raise
        yield f"`regard {shlex.join(arguments)}`: {error.format_message()}"


def _check_settings(command: str, params: dict[str, object]) -> None:
    """Raise an error for presets and for settings of --set that do not exist."""
    from regard.base.errors import RegardError
    from regard.cli.train_options import TrainCommandOptions
    from regard.config import codec
    from regard.config.reference import iter_tables
    from regard.config.toml_file import parse_settings

    settings = params.get("settings")
    changes = parse_settings([str(setting) for setting in settings] if isinstance(settings, (list, tuple)) else [])
    if command == "model" and "model" in params:
        codec.preset(str(params["model"]), changes)
    if command == "train":
        values: dict[str, Any] = {name: value for name, value in params.items() if value not in (None, (), [])}
        options = TrainCommandOptions(**values).place_files()
        replace(options, out=None, dry_run=True).check()  # whatever folders exist here
        model_changes = {path[6:]: value for path, value in changes.items() if path.startswith("model.")}
        codec.preset(str(params.get("preset") or "tiny"), model_changes)
        known_paths = {setting.path for table in iter_tables() for setting in table.settings}
        for path in changes:
            is_kind = path.endswith(".kind") and any(known.startswith(path[:-4]) for known in known_paths)
            if not path.startswith("model.") and path not in known_paths and not is_kind:
                raise RegardError(f"There is no setting '{path}'.")


def main() -> int:
    """Check the page; with --write, compute its totals first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="compute the totals of the page")
    parser.add_argument(
        "--run", nargs="*", metavar="ITEM", help="run every command at a small size, or those of these items"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="run N rows and compare the numbers that they state")
    arguments = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    if arguments.write:
        page = replace_totals(page)
        PAGE.write_text(page, encoding="utf-8")
    faults = list(find_faults(page))
    for fault in faults:
        sys.stdout.write(f"{fault}\n")
    if arguments.run is not None or arguments.sample:
        import run_lectures

        return run_lectures.report(arguments.sample, arguments.run or ()) or bool(faults)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
