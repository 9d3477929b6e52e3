"""A short run of the fuzzer on each parser; `python -m tests.fuzz` runs longer."""

from pathlib import Path

import pytest

from tests.fuzz.mutate import run
from tests.fuzz.seeds import make_seeds
from tests.fuzz.targets import TARGETS

EXECUTIONS = {"config": 400, "tokenizer": 300, "gguf": 200, "safetensors": 400, "sentencepiece": 300}
CORPUS = Path(__file__).parent / "corpus"


@pytest.fixture(scope="module")
def seeds() -> dict[str, list[bytes]]:
    return make_seeds()


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_files(name: str, seeds: dict[str, list[bytes]]) -> None:
    assert run(TARGETS[name], seeds[name], EXECUTIONS[name]) == []


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs(name: str) -> None:
    """Inputs that reached lines which no earlier one had reached."""
    files = sorted((CORPUS / name).glob("*"))
    assert files
    for file in files:
        TARGETS[name](file.read_bytes())
