"""The house keeps its own rules: short files, a light import, a package that holds all it needs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(ROOT.glob("src/**/*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_no_source_file_is_over_400_lines(path: Path) -> None:
    assert path.read_text(encoding="utf-8").count("\n") <= 400


def test_importing_regard_does_not_import_torch() -> None:
    script = "import sys, regard, regard.cli, regard.config.exportable; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "False\n"


def test_public_names_arrive_on_first_use() -> None:
    import regard

    for name in regard.__all__:
        assert getattr(regard, name).__name__ == name
    assert set(regard.__all__) <= set(dir(regard))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = regard.nothing
