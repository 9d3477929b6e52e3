"""The commands that install missing extras are right for a checkout, a wheel file and an index."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from regard.base import extras

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = {
    "PIL": "pillow",
    "markdown_it": "markdown-it-py",
    "python_multipart": "python-multipart",
}  # by module, where the names differ


class Installed:
    """The metadata of an installation, as `importlib.metadata.distribution` returns it."""

    def __init__(self, url: str | None) -> None:
        self._url = url
        self.requires = ['polib>=1.2; extra == "formats"', "numpy>=2.0", 'mlflow>=2.20; extra == "mlflow"']

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self._url is None else json.dumps({"url": self._url, "archive_info": {}})


def make_installation(url: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that Regard lies in site-packages and was installed from this URL (None: from an index)."""
    monkeypatch.setattr(extras, "__file__", str(folder / "lib" / "site-packages" / "regard" / "base" / "extras.py"))
    monkeypatch.setattr(extras, "distribution", lambda _: Installed(url))


def test_a_checkout_is_installed_in_place() -> None:
    assert extras.install_command("formats") == f"pip install -e '{ROOT}[formats]'"


def test_a_wheel_file_is_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "a folder" / "regard-0.1.0-py3-none-any.whl"
    make_installation(wheel.as_uri(), tmp_path, monkeypatch)
    assert extras.install_command("formats") == "pip install 'polib>=1.2'"  # the file is gone
    wheel.parent.mkdir()
    wheel.touch()
    assert extras.install_command("formats") == f"pip install '{wheel}[formats]'"


def test_other_origins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_installation(None, tmp_path, monkeypatch)
    assert extras.install_command("wandb") == "pip install 'regard[wandb]'"
    make_installation("https://example.org/regard.whl", tmp_path, monkeypatch)
    assert extras.install_command("wandb") == "pip install 'regard[wandb] @ https://example.org/regard.whl'"


def test_the_table_lists_the_extras_of_the_package() -> None:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = project["optional-dependencies"]
    assert set(extras.EXTRAS) == set(declared) - {"dev", "bench"}
    for extra, (modules, _) in extras.EXTRAS.items():
        assert len(modules) == len(declared[extra])
        names = [DISTRIBUTIONS.get(module, module) for module in modules]
        assert all(any(name in requirement for requirement in declared[extra]) for name in names)
