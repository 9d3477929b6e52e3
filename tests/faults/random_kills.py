"""R2: SIGKILL at random phases, ten per run: the run ends with byte-identical files, also if it stops early."""

import os
import signal
from collections import Counter
from pathlib import Path

from regard.config.run import Run
from regard.train.fit import fit, resume
from tests.faults.frozen import make_scratch_folder, make_smallest_run
from tests.faults.lives import Lives
from tests.faults.phases import Phases
from tests.faults.verdict import Verdict
from tests.train.runs import PATIENCE, read_metrics

EARLY_STOPPING = PATIENCE | {"validation.every": 2, "validation.patience": 3}  # stops at update 8 of 12


def prove(quick: bool = False) -> Verdict:
    """200 kills, 50 of them of a run that stops early, at least 40 during a save; or, quick, 6, 2 and 1."""
    verdict = Verdict("R2", "kills at random changed weights, optimizer or metrics")
    kills, early_kills, saving = (4, 2, 1) if quick else (150, 50, 40)
    hits: Counter[str] = Counter()
    for total, changes in ((kills, {}), (kills + early_kills, EARLY_STOPPING)):
        with make_scratch_folder() as folder:
            lives = Lives(make_smallest_run(folder, **changes), folder, work)
            lives.weights |= {"save": 4, "between": 1}

            def kill(child: int, phases: Phases = lives.phases) -> tuple[str, list[str]] | None:
                os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
                if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                    return None
                hits[phases.now] += 1
                return f"a kill in {phases.now}", []

            lives.hurt(verdict, total, kill)
            last_update = max(line["update"] for line in read_metrics(folder / "undisturbed"))
            verdict.require("no run stopped early", (last_update < lives.run.train.updates) == bool(changes))
    verdict.require(f"only {hits['save']} kills hit a save", hits["save"] >= saving)
    verdict.notes.append(", ".join(f"{count} in {phase}" for phase, count in hits.most_common()))
    return verdict


def work(run: Run, folder: Path) -> int:
    """Start or resume the run."""
    resume(folder) if (folder / "run.toml").is_file() else fit(run, folder)
    return 0
