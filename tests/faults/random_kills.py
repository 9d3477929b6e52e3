"""R2: SIGKILL at random phases, ten per run: the run ends with byte-identical files."""

import os
import signal
from collections import Counter
from pathlib import Path

from regard.config.run import Run
from regard.train.fit import fit, resume
from tests.faults.frozen import make_scratch_folder, make_smallest_run
from tests.faults.lives import Lives
from tests.faults.verdict import Verdict


def prove(quick: bool = False) -> Verdict:
    """200 kills, at least 40 of them while a checkpoint is saved; or, quick, 6 and 1."""
    verdict = Verdict("R2", "kills at random changed weights, optimizer or metrics")
    kills, saving = (6, 1) if quick else (200, 40)
    with make_scratch_folder() as folder:
        lives = Lives(make_smallest_run(folder), folder, work)
        lives.weights |= {"save": 4, "between": 1}
        hits: Counter[str] = Counter()

        def kill(child: int) -> tuple[str, list[str]] | None:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                return None
            hits[lives.phases.now] += 1
            return f"a kill in {lives.phases.now}", []

        lives.hurt(verdict, kills, kill)
    verdict.require(f"only {hits['save']} kills hit a save", hits["save"] >= saving)
    verdict.notes.append(", ".join(f"{count} in {phase}" for phase, count in hits.most_common()))
    return verdict


def work(run: Run, folder: Path) -> int:
    """Start or resume the run."""
    resume(folder) if (folder / "run.toml").is_file() else fit(run, folder)
    return 0
