"""docs/lectures.md names code, tests and commands that exist; commands that need no trained model run."""

import importlib.util
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


# A change to the page, and the fault that must be found.
MUTATIONS = {
    "number": ("\n| 8 | Seq", "\n| 9 | Seq", "not numbered 1 to 363: look at 8"),
    "unknown state": ("(figure) | named |", "(figure) | almost |", "'almost' is not one of"),
    "planned by nobody": ("| planned: glass box |", "| planned: magic |", "'magic' is not a subject"),
    "state without its total": ("| not yet | - |", "| named | - |", "the totals are not those of the rows"),
    "finished without a test": ("`cli/test_first_run.py::test_from_two_files_to_a_translation`", "-", "needs its test"),
    "missing class": ("`models.encoder_decoder.EncoderDecoder`", "`models.encoder_decoder.Transformer`", "there is no"),
    "missing module": ("`nn.masks.causal`", "`nn.mask.causal`", "there is no nn.mask.causal"),
    "missing file": ("`examples/causal_mask/run.py`", "`examples/causal_mask/walk.py`", "there is no examples/"),
    "missing test": ("::test_unique`", "::test_uniqueness`", "there is no test lectures/test_positions.py"),
    "missing command": ("`regard model presets`", "`regard model list`", "there is no command `regard model list`"),
    "missing option": ("--json --align", "--json --alignment", "No such option"),
    "wrong value": ("--beam 1`", "--beam none`", "none"),
    "missing preset": ("`regard model show lecture`", "`regard model show slides`", "slides"),
    "missing setting": ("--set encoder.layers=12", "--set encoder.depth=12", "encoder.depth"),
    "missing setting of a run": ("model.encoder.placement=post", "model.encoder.place=post", "place"),
    "missing script": ("`python examples/lectures/run.py mask`", "`python examples/run.py mask`", "cannot run"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_is_found(check_lectures: ModuleType, page: str, name: str) -> None:
    before, after, fault = MUTATIONS[name]
    assert before in page
    faults = list(check_lectures.find_faults(page.replace(before, after, 1)))
    assert any(fault in found for found in faults), faults


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


def test_commands_without_a_model_run(
    check_lectures: ModuleType, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text(TEXT)
    commands = sorted({item.command for item in check_lectures.read_items(page)})  # tokenizer learn before show
    ran = 0
    for command in commands:
        match shlex.split(command):
            case ["regard", "model" | "settings" | "tokenizer", *_] as arguments:
                result = run_command(*arguments[1:])
                assert (result.code, result.errors) == (0, ""), (command, result.errors)
                assert result.output, command
                ran += 1
            case _:
                pass
    assert ran >= 20


def test_scripts_of_the_lectures_have_the_subjects(check_lectures: ModuleType, page: str) -> None:
    from examples.lectures.run import SUBJECTS

    prefix = "python examples/lectures/run.py "
    commands = {item.command for item in check_lectures.read_items(page)}
    assert {command.removeprefix(prefix) for command in commands if command.startswith(prefix)} == set(SUBJECTS)
