"""The path of one text through `regard translate` is short, and docs/why/architecture.md describes all of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.tasks.factories import TEXTS, make_encoder_decoder, make_tokenizers, make_translator_settings

ROOT = Path(__file__).parents[2]
MAX_FILES = 21
PACKAGES = ("cli", "tasks", "text", "models", "decode")


@pytest.fixture(scope="module")
def traced_files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("path") / "model"
    settings = make_translator_settings()
    write_model(folder, settings, make_tokenizers(), get_weights(make_encoder_decoder(settings)), "card")
    command = [sys.executable, "-m", "tests.tasks.trace_translate", "translate", str(folder), TEXTS[0]]
    done = subprocess.run([*command, "--max-new-tokens", "9"], capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603
    return done.stderr.split("\n")


def test_one_text_passes_through_few_files(traced_files: list[str]) -> None:
    files = [file for file in traced_files if file.startswith(PACKAGES)]
    assert {file.split("/")[0] for file in files} == set(PACKAGES)
    assert len(files) <= MAX_FILES, files


def test_the_documentation_names_every_file_of_the_path(traced_files: list[str]) -> None:
    page = (ROOT / "docs" / "why" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## The path of a sentence\n")[2].partition("\n## ")[0]
    documented = set(re.findall(r"^\| `(\w+(?:/\w+)+\.py)`", section, re.MULTILINE))
    assert {file for file in traced_files if file.startswith(PACKAGES)} <= documented
    assert all((ROOT / "src" / "regard" / file).is_file() for file in documented)


def test_the_documentation_names_files_of_training_that_exist() -> None:
    page = (ROOT / "docs" / "why" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## The path of a batch\n")[2].partition("\n## ")[0]
    documented = re.findall(r"`(\w+(?:/\w+)+\.py)`", section)
    assert len(documented) > 8
    assert all((ROOT / "src" / "regard" / file).is_file() for file in documented)
