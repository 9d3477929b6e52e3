"""Repeated interruption of a run: child processes start or resume it until it is finished."""

import os
import random
import shutil
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from regard.config.run import RunConfig
from regard.training.run import fit, is_finished, resume
from tests.faults.phases import MARKED, Phases
from tests.faults.verdict import Verdict
from tests.training.runs import compute_fingerprints

MAX_FAULTS_PER_RUN = 10  # faults per run; then it may finish
DELAYS = {"between": 0.5, "gradients": 0.02, "step": 0.003, "validate": 0.03, "rotate": 0.001}  # seconds; others 0.01
Work = Callable[[RunConfig, Path], int]  # starts or resumes the run in that folder and returns the exit code
Hurt = Callable[
    [int], tuple[str, list[str]] | None
]  # the fault and its violations; None if the child had already ended


@dataclass
class Lives:
    """Child processes that are interrupted at random phases."""

    run: RunConfig
    folder: Path
    work: Work
    phases: Phases = field(default_factory=Phases)
    rng: random.Random = field(default_factory=lambda: random.Random(2))
    weights: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MARKED, 1))

    def __post_init__(self) -> None:
        fit(self.run, self.folder / "undisturbed")  # in this process, so that children inherit its imports
        self.expected = compute_fingerprints(self.folder / "undisturbed")

    def hurt(self, verdict: Verdict, faults: int, hurt: Hurt) -> None:
        """Inject `faults` faults into as many runs as needed; each run must end with the undisturbed files."""
        missed = 0
        while faults > verdict.faults and missed <= faults:
            life, first_fault = self.folder / "life", verdict.faults
            for child in self._children(life):
                if (outcome := hurt(child)) is None:
                    missed += 1
                else:
                    verdict.add_fault(*outcome)
                if verdict.faults in (faults, first_fault + MAX_FAULTS_PER_RUN):
                    break
            differing = ", ".join(self._iter_differences(life))
            verdict.require(f"after fault {verdict.faults} other files at the end: {differing}", not differing)
            shutil.rmtree(life)
        verdict.require(f"{missed} faults came too late or had no effect", missed <= faults)

    def _children(self, life: Path) -> Iterator[int]:
        """Yield children that have reached a random phase, until one finishes the run before it."""
        while not is_finished(life):
            (phase,) = self.rng.choices(list(self.weights), list(self.weights.values()))
            child = self._start(life)
            status = self.phases.wait(child, phase, self.rng.randint(1, 3))
            if status is None:
                time.sleep(self.rng.uniform(0, DELAYS.get(phase, 0.01)))
                yield child
            elif status != 0:
                raise AssertionError(f"an undisturbed child ended with {os.waitstatus_to_exitcode(status)}")

    def _start(self, life: Path) -> int:
        self.phases.wipe()
        child = os.fork()
        if child == 0:
            code = 99
            try:
                self.phases.mark()
                code = self.work(self.run, life)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        return child

    def _iter_differences(self, life: Path) -> Iterator[str]:
        if not is_finished(life):
            resume(life) if (life / "run.toml").is_file() else fit(self.run, life)
        now = compute_fingerprints(life)
        names = sorted(self.expected.keys() | now.keys())
        yield from (name for name in names if self.expected.get(name) != now.get(name))
