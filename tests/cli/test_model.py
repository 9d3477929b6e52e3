"""`regard model` from the command line."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.commands import run_command


def run_regard(*arguments: str, code: int = 0) -> str:
    """Return standard output, or standard error if the command fails."""
    done = run_command(*arguments, columns=120)
    assert done.code == code, done.output + done.errors
    return done.output if code == 0 else done.errors


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "regard", "model", "show", "nothing"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("'nothing' is neither a preset nor a file.")


def test_help_and_version() -> None:
    assert run_regard("--version").startswith("regard 0.")
    assert "settings, cost, export targets" in run_regard("--help")


def test_show_prints_toml_that_can_be_read_back(tmp_path: Path) -> None:
    text = run_regard("model", "show", "tiny", "--set", "encoder.layers=2")
    assert tomllib.loads(text)["encoder"]["layers"] == 2
    (tmp_path / "model.toml").write_text(text)
    assert run_regard("model", "show", str(tmp_path)) == text


def test_faults_are_shown_without_a_traceback() -> None:
    text = run_regard("model", "show", "tiny", "--set", "encoder.layer=2", "--set", "wdth=3", code=1)
    assert "encoder.layer: is not a key here. Did you mean 'layers'?" in text
    assert "wdth: is not a key here. Did you mean 'width'?" in text
    assert "Traceback" not in text
    assert "'tinny' is neither a preset nor a file" in run_regard("model", "show", "tinny", code=1)


def test_exports_and_schema() -> None:
    assert "yes  huggingface:MarianMTModel" in run_regard("model", "exports", "tiny")
    masked = run_regard("model", "exports", "vit", "--set", "task=fill", "--set", "head.kind=pixels")
    assert "head.kind is pixels (its heads are of text)" in masked
    assert "encoder.placement is post (it requires pre)" in run_regard("model", "exports", "tiny")
    assert json.loads(run_regard("model", "schema"))["discriminator"]["propertyName"] == "family"


@pytest.mark.parametrize("name", ["tiny", "gpt2", "bert"])
def test_cost_of_each_family(name: str) -> None:
    text = run_regard("model", "cost", name, "--batch-size", "2", "--source", "50", "--target", "50")
    assert "parameters" in text
    assert ("KV cache" in text) == (name != "bert")


def test_presets_are_listed_with_their_sizes() -> None:
    rows = {line.split()[0]: line.split()[-1] for line in run_regard("model", "presets").splitlines()[1:]}
    assert rows["tiny"] == "2,605,056"
    assert rows["llama"] == "8,030,261,248"
