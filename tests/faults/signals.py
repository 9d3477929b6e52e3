"""R3: SIGTERM, Ctrl-C, Ctrl-C twice in all phases of `regard train`: it exits soon with its code and has saved."""

import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from regard.cli import main
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.training.run import is_finished
from tests.faults.frozen import make_scratch_folder, make_smallest_run
from tests.faults.lives import Lives
from tests.faults.verdict import Verdict

SAVED, AT_ONCE = 75, 130
TOO_LATE = {0, AT_ONCE, -signal.SIGTERM}  # codes of a finished run whose process is exiting
SECONDS = 10.0  # to exit
SIGNALS = {  # the signals, and the allowed exit codes
    "SIGTERM": ((signal.SIGTERM,), {SAVED}),
    "Ctrl-C": ((signal.SIGINT,), {SAVED}),
    "Ctrl-C twice": ((signal.SIGINT, signal.SIGINT), {SAVED, AT_ONCE}),
}


def prove(quick: bool = False) -> Verdict:
    """100 times; or, quick, 3."""
    verdict = Verdict("R3", "signals were not obeyed in 10 s with their code, or left a trace")
    codes: Counter[str] = Counter()
    slowest = 0.0
    with make_scratch_folder() as folder:
        lives = Lives(make_smallest_run(folder), folder, run_command)

        def send(child: int) -> tuple[str, list[str]] | None:
            nonlocal slowest
            name = list(SIGNALS)[verdict.faults % len(SIGNALS)]
            signals, promised = SIGNALS[name]
            began = time.monotonic()
            for number in signals:
                os.kill(child, number)
                time.sleep(lives.rng.uniform(0, 0.02))
            code = _wait_for_exit(child)
            if code in TOO_LATE and is_finished(folder / "life"):
                return None  # that was its last step
            slowest = max(slowest, time.monotonic() - began)
            codes[f"{name} {code}"] += 1
            return name, [] if code in promised else [f"it ended with {code}"]

        lives.hurt(verdict, 3 if quick else 100, send)
    verdict.notes += [
        ", ".join(f"{name} x {count}" for name, count in sorted(codes.items())),
        f"at most {slowest:.1f} s",
    ]
    return verdict


def _wait_for_exit(child: int) -> int | None:
    """Return the exit code, or None if the child did not exit and was killed."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def run_command(run: RunConfig, place: Path) -> int:
    """Run `regard train` as a user starts or resumes it."""
    file = place.with_name("run.toml")
    if not file.is_file():
        RUN_FILES.save(run, file)
    arguments = ["--resume", str(place)] if (place / "run.toml").is_file() else [str(file), "--out", str(place)]
    sys.argv = ["regard", "train", *arguments]
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - this process ends here
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    raise AssertionError("the command did not exit")
