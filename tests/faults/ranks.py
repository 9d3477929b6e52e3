"""R4: SIGKILL and SIGSTOP to one of two ranks of `regard train --ranks 2`, some before the process group exists.

The other ranks end in time, no process stays behind, nothing listens beyond 127.0.0.1, and the run that the launcher
starts again ends with the files of an undisturbed one. The command itself gets Ctrl-C once and twice, and SIGTERM.
Ten kills with a new checkpoint before each do not end a run with `--max-restarts 1`; three without progress end it.
"""

import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from regard.config.codec import RUN_FILES
from regard.store.run_folder import parse_step
from regard.training.distributed.launcher import MAX_RESTARTS
from tests.faults.frozen import make_scratch_folder
from tests.faults.verdict import Verdict
from tests.training.runs import compute_fingerprints, make_small_run, write_corpus

RANKS = 2
TIMEOUT = 15.0  # seconds that a rank waits for the others in a collective
AFTER_KILL, AFTER_STOP = 10.0, TIMEOUT + 40.0  # seconds until all ranks of the attempt are gone
LIMIT = 600.0  # seconds for anything else to happen
STEPS, QUICK_STEPS = 60, 20
SAVE_EVERY = 2
SAVED, RANKS_FAILED, AT_ONCE = 75, 77, 130
SIGNALS = {  # the signals to the command, and the allowed exit codes
    "SIGTERM": ((signal.SIGTERM,), {SAVED}),
    "Ctrl-C": ((signal.SIGINT,), {SAVED}),
    "Ctrl-C twice": ((signal.SIGINT, signal.SIGINT), {SAVED, AT_ONCE}),
}
ROOT = Path(__file__).parents[2]


@dataclass
class Command:
    """`regard train --ranks 2` as a user starts it, and its ranks."""

    scratch: Path
    arguments: list[str]
    process: subprocess.Popen[bytes] = field(init=False)
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._temporary = self.scratch / "temporary"
        shutil.rmtree(self._temporary, ignore_errors=True)
        self._temporary.mkdir()
        environment = {
            **os.environ,
            "TMPDIR": str(self._temporary),
            "REGARD_TIMEOUT": str(TIMEOUT),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
        }
        with (self.scratch / "output.txt").open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-m", "regard", "train", *self.arguments, "--ranks", str(RANKS)],
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def find_ranks(self, attempt: int) -> dict[int, int]:
        """Return the process ids of the ranks of an attempt that run."""
        mark, ids = f"REGARD_LAUNCH={self._temporary}/", {}
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                variables = path.read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue  # it has just ended
            values = dict(variable.split("=", 1) for variable in variables if "=" in variable)
            is_rank = any(variable.startswith(mark) for variable in variables) and "RANK" in values
            if (
                is_rank
                and values.get("REGARD_ATTEMPT") == str(attempt)
                and _get_parent(path.parent) == self.process.pid
            ):
                ids[int(values["RANK"])] = int(path.parent.name)
        return ids

    def count_strays(self) -> int:
        """Count the processes of this command that still run, the command itself excluded."""
        mark = f"TMPDIR={self._temporary}".encode()
        count = 0
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                count += mark in path.read_bytes().split(b"\0") and int(path.parent.name) != self.process.pid
            except OSError:
                continue
        return count

    def has_group(self, attempt: int) -> bool:
        """Whether the ranks of an attempt have begun to form the process group."""
        return any(self._temporary.glob(f"regard-ranks-*/store-{attempt}"))

    def wait_until(self, condition: Callable[[], bool], seconds: float = LIMIT) -> bool:
        """Wait for a condition; return whether it came true before the command ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.01)
        return False

    def finish(self) -> int | None:
        """Wait for the end; return the exit code, or None if it did not come and the command was killed."""
        try:
            return self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


def _get_parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def list_listeners(processes: list[int]) -> list[str]:
    """Return the addresses on which these processes listen (TCP); needs `ss` of iproute2."""
    output = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout  # noqa: S607
    lines = [line.split() for line in output.splitlines()]
    return [line[3] for line in lines if any(f"pid={process}," in line[-1] for process in processes)]


@dataclass
class Ranks:
    """Runs of two ranks that are interrupted and must end as an undisturbed one."""

    scratch: Path
    verdict: Verdict
    steps: int = STEPS
    rng: random.Random = field(default_factory=lambda: random.Random(4))
    seconds: dict[str, list[float]] = field(default_factory=dict)  # until all ranks were gone, by fault
    lost: list[float] = field(default_factory=list)  # seconds of a disturbed run beyond the undisturbed one, per fault
    listeners: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        changes = {"train.steps": self.steps, "train.save_every": SAVE_EVERY, "validation.every_steps": 20}
        run = make_small_run("translation", write_corpus(self.scratch / "corpus"), changes)
        self.run_file, self.life = self.scratch / "run.toml", self.scratch / "life"
        RUN_FILES.save(run, self.run_file)
        command = self.start()
        code = command.finish()
        self.undisturbed = time.monotonic() - command.began
        if code != 0:
            raise AssertionError(f"The undisturbed run ended with {code}:\n{(self.scratch / 'output.txt').read_text()}")
        self.expected = compute_fingerprints(self.life)
        shutil.rmtree(self.life)

    def start(self, *options: str) -> Command:
        """Start the run, or resume it if it has begun."""
        has_begun = (self.life / "run.toml").is_file()
        arguments = ["--resume", str(self.life)] if has_begun else [str(self.run_file), "--out", str(self.life)]
        return Command(self.scratch, [*arguments, *options])

    def count_steps(self) -> int:
        """Return the number of lines of metrics.jsonl: about the step that the run has reached."""
        try:
            return (self.life / "metrics.jsonl").read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    def hurt(self, faults: list[tuple[str, bool]]) -> None:
        """Inject faults into one run, one per attempt: the signal, and whether it comes before the process group."""
        command = self.start()
        for attempt, (name, is_early) in enumerate(faults):
            if not self._reach(command, attempt, is_early):
                self.verdict.require(f"attempt {attempt} was not reached", False)
                break
            ranks = command.find_ranks(attempt)
            if len(ranks) < RANKS or (is_early and command.has_group(attempt)):
                self.verdict.require(f"{name} came too late: {ranks}", False)
                continue
            self._strike(command, ranks, name, "before the process group" if is_early else "in training")
        code = command.finish()
        self.lost.append((time.monotonic() - command.began - self.undisturbed) / len(faults))
        self._check_end(f"{len(faults)} faults", command, code, {0})

    def _strike(self, command: Command, ranks: dict[int, int], name: str, moment: str) -> None:
        """Send a signal to a rank, and measure how long the ranks that do not die of it live."""
        rank = self.rng.randrange(RANKS)
        if shutil.which("ss") is not None:
            self.listeners.update(list_listeners([command.process.pid, *ranks.values()]))
        struck = time.monotonic()
        os.kill(ranks[rank], signal.Signals[name])
        others = {other: process for other, process in ranks.items() if other != rank or name == "SIGSTOP"}
        limit = AFTER_KILL if name == "SIGKILL" else AFTER_STOP
        while any(_is_alive(process) for process in others.values()) and time.monotonic() < struck + limit + 5:
            time.sleep(0.01)
        seconds = time.monotonic() - struck
        self.seconds.setdefault(name, []).append(seconds)
        broken = [] if seconds <= limit else [f"ranks were gone after {seconds:.1f} s"]
        self.verdict.add_fault(f"{name} to rank {rank} {moment}", broken)

    def kill_after_progress(self, kills: int) -> None:
        """Kill a rank after each new checkpoint; one restart without a new one is allowed, and none is needed."""
        command = self.start("--max-restarts", "1")
        for attempt in range(kills):
            if not self._wait_for_checkpoint(command, attempt, self.find_newest_step()):
                self.verdict.require(f"attempt {attempt} saved nothing", False)
                break
            self._strike(command, command.find_ranks(attempt), "SIGKILL", "after a new checkpoint")
        code = command.finish()
        self.lost.append((time.monotonic() - command.began - self.undisturbed) / kills)
        self._check_end(f"{kills} kills with progress", command, code, {0})

    def kill_without_progress(self, kills: int) -> None:
        """Kill a rank before each attempt saves: the last kill ends the run, which can then be resumed."""
        command = self.start("--max-restarts", str(kills - 1))
        for attempt in range(kills):
            if not self._wait_for_ranks(command, attempt):
                self.verdict.require(f"attempt {attempt} was not reached", False)
                break
            self._strike(command, command.find_ranks(attempt), "SIGKILL", "before a checkpoint")
        code, saved = command.finish(), self.find_newest_step()
        self.verdict.require(f"{kills} kills without progress: the run ended with {code}", code == RANKS_FAILED)
        self.verdict.require(f"{kills} kills came too late: step {saved} was saved", not saved)
        command = self.start()
        self._check_end("resumed after kills without progress", command, command.finish(), {0})

    def find_newest_step(self) -> int:
        """Return the step of the newest complete checkpoint, 0 without one."""
        return max((parse_step(path.name) or 0 for path in self.life.glob("checkpoints/step-*")), default=0)

    def _wait_for_ranks(self, command: Command, attempt: int) -> bool:
        return command.wait_until(lambda: len(command.find_ranks(attempt)) == RANKS)

    def _wait_for_checkpoint(self, command: Command, attempt: int, step: int) -> bool:
        """Wait until this attempt has saved a checkpoint after a step."""
        return self._wait_for_ranks(command, attempt) and command.wait_until(lambda: self.find_newest_step() > step)

    def _reach(self, command: Command, attempt: int, is_early: bool) -> bool:
        if not self._wait_for_ranks(command, attempt):
            return False
        if is_early:
            time.sleep(self.rng.uniform(0, 0.5))
            return True
        target = self.rng.randint(1, self.steps - 8)
        return command.wait_until(lambda: command.has_group(attempt) and self.count_steps() >= target)

    def signal(self, name: str) -> None:
        """Send signals to the command in training; then resume it to its end."""
        signals, codes = SIGNALS[name]
        command = self.start()
        target = self.rng.randint(1, self.steps - 8)
        self.verdict.require(
            f"{name}: training was not reached", command.wait_until(lambda: self.count_steps() >= target)
        )
        for number in signals:
            os.kill(command.process.pid, number)
            time.sleep(self.rng.uniform(0, 0.05))
        struck = time.monotonic()
        code = command.finish()
        self.seconds.setdefault(name, []).append(time.monotonic() - struck)
        strays = command.count_strays()
        self.verdict.add_fault(
            name,
            [*([] if code in codes else [f"it ended with {code}"]), *([f"{strays} processes stay"] if strays else [])],
        )
        command = self.start()
        self._check_end(name, command, command.finish(), {0})

    def _check_end(self, message: str, command: Command, code: int | None, codes: set[int]) -> None:
        """Check exit code, processes and files, then remove the run."""
        self.verdict.require(f"{message}: the run ended with {code}\n{self._read_output()}", code in codes)
        strays = command.count_strays()
        self.verdict.require(f"{message}: {strays} processes stay", not strays)
        if code in codes:
            now = compute_fingerprints(self.life)
            differing = [
                name for name in sorted(self.expected.keys() | now.keys()) if self.expected.get(name) != now.get(name)
            ]
            self.verdict.require(f"{message}: other files at the end: {', '.join(differing)}", not differing)
        shutil.rmtree(self.life, ignore_errors=True)

    def _read_output(self) -> str:
        return "\n".join((self.scratch / "output.txt").read_text(errors="replace").splitlines()[-30:])


def _is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and is not yet waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def prove(quick: bool = False) -> Verdict:
    """33 faults, 8 of them before the process group exists, and 3 signals; or, quick, one kill with progress."""
    verdict = Verdict("R4", "faults of one rank were not noticed in time, left a process or another end")
    with make_scratch_folder() as folder:
        ranks = Ranks(folder, verdict, QUICK_STEPS if quick else STEPS)
        faults = [] if quick else _plan_faults(ranks.rng)
        for first in range(0, len(faults), MAX_RESTARTS):
            ranks.hurt(faults[first : first + MAX_RESTARTS])
        ranks.kill_after_progress(1 if quick else 10)
        if not quick:
            ranks.kill_without_progress(3)
        for name in () if quick else SIGNALS:
            ranks.signal(name)
        exposed = [address for address in ranks.listeners if not address.startswith(("127.0.0.1:", "[::1]:"))]
        verdict.require(f"they listen on {', '.join(exposed)}", not exposed)
    verdict.notes += [
        *(f"{name}: gone after at most {max(seconds):.1f} s" for name, seconds in ranks.seconds.items()),
        f"a fault cost {statistics.median(ranks.lost):.1f} s of {ranks.undisturbed:.1f} s (median)",
        f"{len(ranks.listeners)} listeners, {len(exposed)} of them beyond 127.0.0.1",
    ]
    return verdict


def _plan_faults(rng: random.Random) -> list[tuple[str, bool]]:
    early = [("SIGKILL", True)] * 3 + [("SIGSTOP", True)] * 2
    later = [("SIGKILL", False)] * 9 + [("SIGSTOP", False)] * 6
    faults = early + later
    rng.shuffle(faults)
    return faults
