"""One set of ranks for all tests that need several."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from regard.base.locks import lock_folder
from regard.training.checkpoint.folder import Checkpoints
from tests.ranks import CHANGES, prepare, prepare_changing_runs
from tests.training.rank_cases import BFLOAT16_CASE, CASES, CHANGING_STEPS, RANKS
from tests.training.runs import write_corpus
from tests.training.sharded_cases import make_state
from tests.training.workers import run_workers


@pytest.fixture(scope="session")
def rank_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the ranks work, shared by the workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "ranks"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def rank_results(rank_folder: Path) -> list[dict[str, Any]]:
    """What each of four ranks has returned from `rank_cases.run_all`; they train once, as that takes minutes."""
    path = rank_folder / "results.json"
    with lock_folder(rank_folder, wait=True):
        if not path.exists():
            path.write_text(json.dumps(_train_ranks(rank_folder)))
    results: list[dict[str, Any]] = json.loads(path.read_text())
    return results


def _train_ranks(folder: Path) -> list[dict[str, Any]]:
    for step in (1, 2):
        Checkpoints(folder / "checkpoints" / "one", print).save(step, make_state("one", step))
    (folder / "training").mkdir()
    prepare(folder / "training", CHANGES, {task for _, task in CASES})
    (folder / "bfloat16").mkdir()
    prepare(folder / "bfloat16", CHANGES | {"train.precision": "bfloat16"}, [BFLOAT16_CASE[1]])
    write_corpus(folder / "corpus", 400)
    (folder / "changing").mkdir()
    prepare_changing_runs(folder / "changing", "translation", CHANGING_STEPS)
    return run_workers("tests.training.rank_cases:run_all", RANKS, {"folder": str(folder)}, folder=folder, timeout=1200)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{word} {number}" for number in range(40) for word in ("cat", "dog", "tree", "house runs", "old man")]
    Path("a.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    Path("a.de").write_text("".join(f"{line.upper()}\n" for line in lines), encoding="utf-8")
    return tmp_path
