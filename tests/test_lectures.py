"""docs/lectures/coverage.md names code, tests and commands that exist; commands that need no trained model run."""

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.commands import run_command

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_lectures.py"
TEXT = "low low low low low lower lower newest newest newest newest newest newest widest widest widest\n"


@pytest.fixture(scope="module")
def check_lectures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_lectures", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_lectures"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(check_lectures: ModuleType) -> str:
    text: str = check_lectures.PAGE.read_text(encoding="utf-8")
    return text


def test_the_page_is_true(check_lectures: ModuleType, page: str) -> None:
    assert list(check_lectures.find_faults(page)) == []


# The state of the row to change, the column, the new cell, and the fault that must be found.
NUMBER, STATE, CODE, TEST, COMMAND = 0, 2, 3, 4, 5
MUTATIONS = {
    "number": ("done", NUMBER, "1000", "not numbered 1 to 389"),
    "unknown state": ("named", STATE, "almost", "'almost' is not one of"),
    "unknown subject": ("planned", STATE, "planned: magic", "'magic' is not a subject"),
    "unknown subject of a part": ("partly", STATE, "partly: the rest (magic)", "'magic' is not a subject"),
    "nothing missing": ("partly", STATE, "partly", "say what is missing"),
    "wrong totals": ("not yet", STATE, "named", "the totals are not those of the rows"),
    "finished without code": ("done", CODE, "-", "needs its code"),
    "finished without a test": ("done", TEST, "-", "needs its test"),
    "finished without a command": ("done", COMMAND, "-", "needs its command"),
    "command of a plan": ("planned", COMMAND, "`regard model presets`", "has no command"),
    "missing class": ("done", CODE, "`nn.layer.Sandwich`", "there is no nn.layer.Sandwich"),
    "missing module": ("done", CODE, "`nn.mask.causal`", "there is no nn.mask.causal"),
    "missing file": ("done", CODE, "`examples/walk.py`", "there is no examples/walk.py"),
    "missing test": (
        "done",
        TEST,
        "`test_lectures.py::test_nothing`",
        "there is no test test_lectures.py::test_nothing",
    ),
    "missing command": ("done", COMMAND, "`regard model list`", "there is no command `regard model list`"),
    "missing option": ("done", COMMAND, "`regard translate run text --aligned`", "No such option"),
    "wrong value": ("done", COMMAND, "`regard translate run text --beam none`", "none"),
    "missing argument": ("done", COMMAND, "`regard model show`", "Missing argument"),
    "missing preset": ("done", COMMAND, "`regard model show slides`", "slides"),
    "missing setting": ("done", COMMAND, "`regard model show base --set encoder.depth=12`", "encoder.depth"),
    "missing setting of a run": (
        "done",
        COMMAND,
        "`regard train --text a --out b --set model.decoder.depth=1`",
        "decoder.depth",
    ),
    "missing table of a run": ("done", COMMAND, "`regard train --text a --out b --set trains.clip=1`", "trains.clip"),
    "options that exclude each other": ("done", COMMAND, "`regard train --text a --data b --out c`", "combined"),
    "missing script": ("done", COMMAND, "`python examples/walk.py`", "cannot run"),
    "another program": ("done", COMMAND, "`rm corpus.txt`", "cannot run"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_is_found(check_lectures: ModuleType, page: str, name: str) -> None:
    state, column, cell, fault = MUTATIONS[name]
    number = next(item.number for item in check_lectures.read_items(page) if item.state == state)
    (row,) = re.findall(rf"^\| {number} \| .* \| .* \| .* \| .* \|$", page, re.MULTILINE)
    cells = row.strip("| ").split(" | ")
    cells[column] = cell
    faults = list(check_lectures.find_faults(page.replace(row, f"| {' | '.join(cells)} |")))
    assert any(fault in message for message in faults), faults


def test_totals_are_computed(check_lectures: ModuleType) -> None:
    row = "| {} | item | {} | `nn` | `test_lectures.py::test_totals_are_computed` | `regard model presets` |"
    rows = [
        row.format(1, "done"),
        row.format(2, "partly: half (serving)"),
        "| 3 | item | planned: serving | - | - | - |",
    ]
    items = check_lectures.read_items("\n".join(["## Lecture 1: A", "", check_lectures.HEADER, "|---|", *rows]))
    totals = check_lectures.format_totals(items).splitlines()
    assert totals[2] == "| Lecture 1 | 3 | 1 | 1 | 1 | 0 | 0 |"
    assert totals[3] == "| all | 3 | 1 | 1 | 1 | 0 | 0 |"
    assert totals[-1] == "| serving | 1 | 1 |"


def test_a_row_of_five_cells_is_refused(check_lectures: ModuleType) -> None:
    with pytest.raises(ValueError, match="5 cells"):
        check_lectures.read_items(f"{check_lectures.HEADER}\n| 1 | item | done | - | - |")


# Subjects that train or measure times; their tests are in tests/lectures, and scripts/run_lectures.py runs them.
SLOW = {"features", "matrix", "hard", "parallel", "scores", "cache", "word2vec", "residual", "tuning"}


def test_fast_commands_run_and_print_the_numbers_of_their_rows(
    check_lectures: ModuleType, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from run_lectures import find_missing_numbers  # type: ignore[import-not-found]

    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text(TEXT)
    Path("docs").symlink_to(SCRIPT.parents[1] / "docs")
    outputs: dict[str, str] = {}
    for item in sorted(check_lectures.read_items(page), key=lambda item: item.command):  # tokenizer learn before show
        match shlex.split(item.command):
            case ["regard", "model" | "tokenizer", *_] | ["regard", "lectures", "summary", *_]:
                pass
            case ["regard", "lectures", "show", subject] if subject not in SLOW:
                pass
            case _:
                continue
        if item.command not in outputs:
            result = run_command(*shlex.split(item.command)[1:])
            assert (result.code, result.errors) == (0, ""), (item.command, result.errors)
            outputs[item.command] = result.output
        assert find_missing_numbers(item, outputs[item.command]) == [], (item.number, item.text, item.command)
    assert len(outputs) >= 35


def test_kept_results_print_the_numbers_of_their_rows(
    check_lectures: ModuleType, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from examples.before.report import read_section
    from run_lectures import find_missing_numbers

    folder = SCRIPT.parents[1] / "examples" / "before"
    items = [item for item in check_lectures.read_items(page) if item.command.endswith(" --stored")]
    assert len(items) >= 15
    for item in items:
        assert find_missing_numbers(item, read_section(shlex.split(item.command)[2], folder)) == [], item.text


def test_a_number_that_is_not_printed_is_found(check_lectures: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from run_lectures import find_missing_numbers

    def find(text: str, output: str) -> list[str]:
        item = check_lectures.Item("", "1", text, "done", "", (), (), "")
        missing: list[str] = find_missing_numbers(item, output)
        return missing

    assert find("112, 96; 14, 12; 0.88, 0.12", "112 96\n14 12\n0.8808 0.1192") == []
    assert find("112, 96; 14, 12; 0.88, 0.12", "112 96\n14 13\n0.87 0.12") == ["12", "0.88"]
    assert find("eps 1e-5, 16,777,216 colors", "eps 1e-05, 16,777,216") == []
    assert find("Algorithm 1 (2014), Poll 2, 12 x 12, x_1, 2^24, GPT-2", "") == []


def test_commands_are_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from run_lectures import shrink

    assert shrink("regard demo") == ["regard", "demo", "--quick"]
    assert shrink('regard look run "A text"')[-2:] == ["--save", "page.html"]
    assert shrink("python examples/before/run.py length")[-3:] == ["--small", "--out", "."]
    assert shrink("python examples/before/run.py scores --stored")[-1] == "--stored"
    assert "--set=model.decoder.layers=1" in shrink("regard train --text book.txt --out lm")
    assert shrink("regard model presets") == ["regard", "model", "presets"]


def test_scripts_of_the_lectures_have_the_subjects(check_lectures: ModuleType, page: str) -> None:
    from regard.lectures.subjects import SUBJECTS

    prefix = "regard lectures show "
    commands = {item.command for item in check_lectures.read_items(page)}
    assert {command.removeprefix(prefix) for command in commands if command.startswith(prefix)} <= set(SUBJECTS)
