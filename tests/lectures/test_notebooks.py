"""The notebooks of the lectures run from the first cell to the last."""

import os
from pathlib import Path

import nbclient
import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "docs/lectures/notebooks"


@pytest.mark.parametrize("number", range(1, 6))
def test_notebook_runs_and_is_stored_without_output(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = nbformat.read(FOLDER / f"lecture-{number}.ipynb", as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs for cell in code)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    for cell in code:
        assert cell.outputs, cell.source
        assert "nan" not in cell.outputs[0].text or "torch.inf" in cell.source
