"""The notebooks of the lectures run from the first cell to the last."""

from pathlib import Path

import pytest
from nbformat import NotebookNode

from tests.notebooks import run_notebooks

FOLDER = Path(__file__).parents[2] / "docs/lectures/notebooks"
NAMES = [f"lecture-{number}" for number in range(1, 6)]


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[NotebookNode]]:
    return run_notebooks([FOLDER / f"{name}.ipynb" for name in NAMES], tmp_path_factory.mktemp("notebooks"), {})


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_runs_and_prints(name: str, notebooks: dict[str, list[NotebookNode]]) -> None:
    code = notebooks[name]
    assert code
    for cell in code:
        assert cell.outputs, cell.source
        assert "nan" not in cell.outputs[0].text or "torch.inf" in cell.source
