"""R2: SIGKILL at random phases, ten per run: the run ends with byte-identical files.

Some of the runs stop early; some tune another model, all of its parameters or adapters.
"""

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from regard.config.run import RunConfig
from regard.training.run import fit, resume
from tests.faults.frozen import make_scratch_folder, make_smallest_run
from tests.faults.lives import Lives
from tests.faults.phases import Phases
from tests.faults.verdict import Verdict
from tests.training.runs import PATIENCE, read_metrics

EARLY_STOPPING = PATIENCE | {"validation.every_steps": 2, "validation.patience": 3}  # stops at step 8 of 12


TUNING: dict[str, Any] = {"finetune": {"parent": ""}, "tokenizer": {"kind": "parent"}}
LORA: dict[str, Any] = TUNING | {"finetune": {"parent": "", "lora": {"rank": 2, "dropout": 0.1}}}
KILLS: tuple[tuple[dict[str, Any], int, int], ...] = (
    ({}, 150, 4),
    (EARLY_STOPPING, 50, 2),
    (TUNING, 40, 1),
    (LORA, 40, 1),
)


def prove(quick: bool = False) -> Verdict:
    """280 kills, at least 40 of them during a save; or, quick, 8 and 1."""
    verdict = Verdict("R2", "kills at random changed weights, optimizer or metrics")
    hits: Counter[str] = Counter()
    total, saving = 0, 1 if quick else 40
    for changes, all_kills, few_kills in KILLS:
        total += few_kills if quick else all_kills
        with make_scratch_folder() as folder:
            lives = Lives(_make_run(folder, changes), folder, work)
            lives.weights |= {"save": 4, "between": 1}

            def kill(child: int, phases: Phases = lives.phases) -> tuple[str, list[str]] | None:
                os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
                if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                    return None
                hits[phases.now] += 1
                return f"a kill in {phases.now}", []

            lives.hurt(verdict, total, kill)
            last_step = max(line["step"] for line in read_metrics(folder / "undisturbed"))
            verdict.require("no run stopped early", (last_step < lives.run.train.steps) == (changes is EARLY_STOPPING))
    verdict.require(f"only {hits['save']} kills hit a save", hits["save"] >= saving)
    verdict.notes.append(", ".join(f"{count} in {phase}" for phase, count in hits.most_common()))
    return verdict


def _make_run(folder: Path, changes: dict[str, Any]) -> RunConfig:
    """Return a run with these changes; one that tunes a model gets a parent."""
    if "finetune" in changes:
        fit(make_smallest_run(folder), folder / "parent")
        changes = {**changes, "finetune": changes["finetune"] | {"parent": str(folder / "parent")}}
    return make_smallest_run(folder, **changes)


def work(run: RunConfig, folder: Path) -> int:
    """Start or resume the run."""
    resume(folder) if (folder / "run.toml").is_file() else fit(run, folder)
    return 0
