"""The run files of `examples/` are valid, and the page of Multi30k prints the commands of its script."""

import importlib.util
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from regard.config.codec import RUN_FILES

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*/**/*.toml")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_the_run_file_of_an_example_is_valid(path: Path) -> None:
    assert RUN_FILES.load(path).data.train


def test_the_page_of_multi30k_prints_the_commands_that_its_script_runs() -> None:
    script = load_script(EXAMPLES / "multi30k" / "run_all.py")
    commands = [model.train_command(is_quick=False) for group in script.GROUPS for model in group]
    commands = [[Path(word).name if word.endswith(".toml") else word for word in command] for command in commands]
    page = (EXAMPLES / "multi30k" / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    printed = [shlex.split(line) for line in page.splitlines() if line.startswith("regard train ")]
    assert len(printed) == 4
    assert all(command in commands for command in printed)


def load_script(path: Path) -> ModuleType:
    """Import a script of an example as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
