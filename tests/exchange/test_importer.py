"""Imports that fail say why."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.exchange.importer import import_model


def test_import_of_the_cache_repository_names_its_snapshots(tmp_path: Path) -> None:
    (tmp_path / "models--a--b" / "snapshots" / "0123").mkdir(parents=True)
    with pytest.raises(RegardError) as raised:
        import_model(tmp_path / "models--a--b", tmp_path / "model")
    assert raised.value.hint == "Give the folder of a revision in snapshots/."


def test_import_error_of_the_system_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"The model cannot be read: .*File name too long"):
        import_model(tmp_path / ("x" * 300), tmp_path / "model")
