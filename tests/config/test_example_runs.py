"""The run files of `examples/` are valid; the students of Multi30k differ from their teachers as their page says."""

import importlib.util
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from regard.config.codec import RUN_FILES
from regard.config.toml_file import to_dict
from regard.train.changed_settings import differences

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "path", sorted(EXAMPLES.glob("*/**/*.toml")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_the_run_file_of_an_example_is_valid(path: Path) -> None:
    assert RUN_FILES.load(path).data.train


def test_students_differ_from_teachers_in_the_documented_settings() -> None:
    runs = [to_dict(RUN_FILES.load(EXAMPLES / "multi30k" / f"{name}.toml")) for name in ("recipe", "student")]
    changed = {path.removeprefix("model.") for path, _, _ in differences(*runs)}
    parts = {f"{side}.{part}" for side in ("encoder", "decoder") for part in ("position", "dropout")}
    assert {".".join(path.split(".")[:2]) for path in changed} == {*parts, "train.updates"}
    for side in ("encoder", "decoder"):
        settings = runs[1]["model"][side]
        assert settings["position"]["kind"] == "rotary"
        assert [settings["dropout"][site] for site in ("token", "embedding", "sublayer")] == [0.1, 0.1, 0.1]


def test_the_page_of_multi30k_prints_the_commands_that_its_script_runs() -> None:
    script = load_script(EXAMPLES / "multi30k" / "run_all.py")
    commands = [model.train_command(is_quick=False) for model in (*script.FIRST, *script.SECOND)]
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
