"""CONTRIBUTING.md and CHANGELOG.md state what the repository has."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
MAX_CHANGELOG_WORDS = 400  # per version


def read_commands(script: str) -> str:
    lines = (ROOT / script).read_text(encoding="utf-8").splitlines()
    return "\n".join(line.split(" #")[0] for line in lines if not line.startswith("#"))


def test_contributing_names_every_check() -> None:
    (names,) = re.findall(r"`scripts/check` runs (.*?)\.", PAGE)
    tools = re.findall(r"^(?:python -m )?([\w-]+)", read_commands("scripts/check"), re.MULTILINE)
    assert set(re.findall(r"`(.*?)`", names)) == set(tools) - {"set", "cd"}


def test_contributing_names_what_ci_runs() -> None:
    (names,) = re.findall(r"then\s+runs (.*?)\.", PAGE, re.DOTALL)
    ran = read_commands(".ci/run")
    commands = re.findall(r"`(.*?)`", names)
    assert all(command in ran for command in commands)
    assert len(commands) == len(re.findall(r"^(?:\(?scripts/|\(cd |OMP)", ran, re.MULTILINE))


def test_contributing_layers_are_those_of_import_linter() -> None:
    (order,) = re.findall(r"enforces it:\n\n(.*?)\n\n", PAGE, re.DOTALL)
    layers = [layer.strip() for layer in order.split(">")]
    (contract,) = [contract for contract in LINTER["contracts"] if contract["type"] == "layers"]
    assert layers == ["_api", *contract["layers"][1:]]  # `_api` is on top, next to `__main__`


def test_contributing_names_the_packages_without_torch() -> None:
    (names,) = re.findall(r"^- (.*) never import torch", PAGE, re.MULTILINE)
    (contract,) = [contract for contract in LINTER["contracts"] if contract.get("forbidden_modules") == ["torch"]]
    assert {f"regard.{name}" for name in re.findall(r"`(\w+)`", names)} == set(contract["source_modules"])


def test_changelog_of_a_version_is_short() -> None:
    _, *versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert versions
    assert max(len(version.split()) for version in versions) <= MAX_CHANGELOG_WORDS
