"""One set of ranks for all tests that need several."""

from pathlib import Path
from typing import Any

import pytest

from regard.training.checkpoint.folder import Checkpoints
from tests.ranks import CHANGES, prepare, prepare_changing_runs
from tests.training.rank_cases import CASES, CHANGING_STEPS, RANKS, SHARDED_CASE, VARIANTS
from tests.training.runs import write_corpus
from tests.training.sharded_cases import make_state
from tests.training.workers import run_workers


@pytest.fixture(scope="session")
def rank_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the ranks work."""
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="session")
def rank_results(rank_folder: Path) -> list[dict[str, Any]]:
    """What each of four ranks has returned from `rank_cases.run_all`."""
    for step in (1, 2):
        Checkpoints(rank_folder / "checkpoints" / "one", print).save(step, make_state("one", step))
    (rank_folder / "training").mkdir()
    prepare(rank_folder / "training", CHANGES, {task for _, task in CASES})
    for name, changes in VARIANTS.items():
        (rank_folder / name).mkdir()
        prepare(rank_folder / name, CHANGES | changes, [SHARDED_CASE[1]])
    write_corpus(rank_folder / "corpus", 400)
    (rank_folder / "changing").mkdir()
    prepare_changing_runs(rank_folder / "changing", "translation", CHANGING_STEPS)
    return run_workers(
        "tests.training.rank_cases:run_all", RANKS, {"folder": str(rank_folder)}, folder=rank_folder, timeout=1200
    )


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{word} {number}" for number in range(40) for word in ("cat", "dog", "tree", "house runs", "old man")]
    Path("a.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    Path("a.de").write_text("".join(f"{line.upper()}\n" for line in lines), encoding="utf-8")
    return tmp_path
