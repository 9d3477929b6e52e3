"""The notebooks of docs/notebooks run from the first cell to the last with few steps."""

import re
from pathlib import Path

import pytest
from nbformat import NotebookNode

from tests.notebooks import run_notebooks

FOLDER = Path(__file__).parents[1] / "docs/notebooks"
NAMES = ("translate", "language-model", "look-inside", "hugging-face")
FEW_STEPS = 'limit = {"steps": 2, "settings": {"train.step_tokens": 512}}\nsource = target = book = parent = None'


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[NotebookNode]]:
    paths = [FOLDER / f"{name}.ipynb" for name in NAMES]
    return run_notebooks(paths, tmp_path_factory.mktemp("notebooks"), {"install": "pass", "parameters": FEW_STEPS})


def read_text(cell: NotebookNode) -> str:
    return "".join(output.get("text", "") + str(output.get("data", "")) for output in cell.outputs)


def test_all_notebooks_are_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_first_cell_installs_regard_and_all_others_run(name: str, notebooks: dict[str, list[NotebookNode]]) -> None:
    install, *others = notebooks[name]
    assert "%pip install" in (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert install.metadata.tags == ["install"]
    assert all(cell.execution_count for cell in others)
    assert any("<iframe" in read_text(cell) for cell in others) == (name != "hugging-face")


def test_a_head_that_is_switched_off_changes_the_answer(notebooks: dict[str, list[NotebookNode]]) -> None:
    by_hand = next(read_text(cell) for cell in notebooks["look-inside"] if "no_grad" in cell.source)
    broken, repaired = by_hand.splitlines()
    assert "it/animal" not in broken
    assert "it/animal" in repaired


def test_the_exported_model_writes_the_same_text(notebooks: dict[str, list[NotebookNode]]) -> None:
    output = read_text(notebooks["hugging-face"][-1])  # progress and warnings may stand before a line
    theirs, ours = (re.findall(rf"{name}:(.*)", output) for name in ("transformers", "regard"))
    assert len(theirs) == 1, output
    assert [text.strip() for text in theirs] == [text.strip() for text in ours], output
