"""Run notebooks for tests: all in one kernel, because importing torch takes longer than most of them."""

import os
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import nbclient
import nbformat
import pytest
from nbformat import NotebookNode


def run_notebooks(paths: Sequence[Path], folder: Path, replaced: Mapping[str, str]) -> dict[str, list[NotebookNode]]:
    """Return the code cells of notebooks, by name, after they ran; `replaced` has new sources of tagged cells."""
    notebooks = {path.stem: nbformat.read(path, as_version=4) for path in paths}
    cells = []
    for name, notebook in notebooks.items():
        nbformat.validate(notebook)
        for place, cell in enumerate(notebook.cells):
            assert not cell.get("outputs"), f"{name} is stored with output"
            cell.id = f"{name}-{place}"  # ids are unique in one notebook only
            for tag in cell.metadata.get("tags", []):
                cell.source = replaced[tag]
        cells.append([nbformat.v4.new_code_cell("%reset -f"), *notebook.cells])  # without names of the one before
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        patch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        (folder / "work").mkdir()
        resources = {"metadata": {"path": str(folder / "work")}}
        joined = nbformat.v4.new_notebook(cells=list(chain(*cells)), metadata=notebooks[paths[0].stem].metadata)
        nbclient.NotebookClient(joined, timeout=3600, resources=resources).execute()
    return {name: [cell for cell in notebook.cells if cell.cell_type == "code"] for name, notebook in notebooks.items()}
