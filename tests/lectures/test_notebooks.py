"""The notebooks of the lectures run from the first cell to the last."""

import os
from itertools import chain
from pathlib import Path

import nbclient
import nbformat
import pytest
from nbformat import NotebookNode

FOLDER = Path(__file__).parents[2] / "docs/lectures/notebooks"
NUMBERS = range(1, 6)


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> dict[int, NotebookNode]:
    """The notebooks after one kernel has run them: importing torch takes longer than most of them."""
    notebooks = {number: nbformat.read(FOLDER / f"lecture-{number}.ipynb", as_version=4) for number in NUMBERS}
    cells = []
    for number, notebook in notebooks.items():
        nbformat.validate(notebook)
        for place, cell in enumerate(notebook.cells):
            assert not cell.get("outputs")
            cell.id = f"lecture-{number}-{place}"  # ids are unique in one notebook only
        cells.append([nbformat.v4.new_code_cell("%reset -f"), *notebook.cells])  # without names of the one before
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        patch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        resources = {"metadata": {"path": str(tmp_path_factory.mktemp("notebooks"))}}
        joined = nbformat.v4.new_notebook(cells=list(chain(*cells)), metadata=notebooks[1].metadata)
        nbclient.NotebookClient(joined, timeout=300, resources=resources).execute()
    return notebooks


@pytest.mark.parametrize("number", NUMBERS)
def test_notebook_runs_and_is_stored_without_output(number: int, notebooks: dict[int, NotebookNode]) -> None:
    code = [cell for cell in notebooks[number].cells if cell.cell_type == "code"]
    assert code
    for cell in code:
        assert cell.outputs, cell.source
        assert "nan" not in cell.outputs[0].text or "torch.inf" in cell.source
