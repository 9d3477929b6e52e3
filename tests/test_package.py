"""Importing `regard` does not import torch, and its public names are loaded on first use."""

import subprocess
import sys

import pytest


def test_importing_regard_does_not_import_torch() -> None:
    script = "import sys, regard, regard.cli, regard.config.exportable; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "False\n"


def test_public_names_are_loaded_on_first_use() -> None:
    import regard

    for name in regard.__all__:
        assert getattr(regard, name).__name__.rpartition(".")[2] == name
    assert set(regard.__all__) <= set(dir(regard))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = regard.nothing
