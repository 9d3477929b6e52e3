"""Start a run as several ranks on this host with torchrun's agent and return a single exit code.

    code = launch(["-m", "regard", "train", "run.toml", "--out", "my-model"], ranks=4, report=print)

Each rank is a separate process, monitored by the agent. If a rank fails or is killed, the agent stops the others and
restarts all ranks, which resume from the last checkpoint. Only failures without a new checkpoint in between are limited
in number: a run of weeks survives any number of failures, and a defect ends soon.
"""

import contextlib
import json
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from torch.distributed.elastic.multiprocessing import LogsDest, LogsSpecs  # noqa: TID251
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError  # noqa: TID251
from torch.distributed.elastic.rendezvous import RendezvousError  # noqa: TID251
from torch.distributed.launcher.api import elastic_launch  # noqa: TID251

from regard.base.errors import RanksFailedError, RegardError
from regard.base.formatting import pluralize
from regard.store.run_folder import parse_step
from regard.training.distributed.rank import (
    ATTEMPT_VARIABLE,
    FOLDER_VARIABLE,
    LAUNCHER_VARIABLE,
    RELAYED_SIGTERM,
    STOP_MARK,
    report_path,
)
from regard.training.distributed.rendezvous import Hosts, explain_missing_hosts, prepare_rendezvous

MAX_RESTARTS = 3  # restarts of all ranks without a new checkpoint
AGENT_RESTARTS = 1_000_000  # of the agent, whose count never resets; `_check_restart` ends the run
STOPPED_SECONDS = 10.0  # a rank that was stopped for longer is killed
Report = Callable[[str], None]


def launch(
    arguments: Sequence[str],
    ranks: int,
    *,
    hosts: Hosts | None = None,
    report: Report,
    checkpoints: Path | None = None,
    max_restarts: int = MAX_RESTARTS,
) -> int:
    """Run `python ARGUMENTS` as several ranks, restart them if one fails, and return the run's exit code.

    Args:
        arguments: The arguments of Python for each rank; the program must run inside `Worker.run`.
        ranks: Number of ranks on this host.
        hosts: The hosts, if there are several.
        report: Called with a message whenever the ranks restart.
        checkpoints: The folder with the run's checkpoints.
        max_restarts: Maximum number of restarts without a new checkpoint.

    Raises:
        RanksFailedError: Ranks failed too often.
        RegardError: A rank raised this error, or the rendezvous failed.
    """
    with tempfile.TemporaryDirectory(prefix="regard-ranks-") as name:
        launcher = _Launcher(Path(name), report, checkpoints, max_restarts)
        with (
            launcher.relay_signals(),
            launcher.read_log(),
            launcher.watch_ranks(),
            prepare_rendezvous(Path(name), ranks, hosts, AGENT_RESTARTS, launcher) as config,
        ):
            try:
                elastic_launch(config, sys.executable)(*arguments)
            except _EndedError as end:
                return end.code
            except ChildFailedError:
                return launcher.explain_end()
            except RendezvousError as error:
                raise explain_missing_hosts(hosts, error) from None
        return launcher.read_exit_code() or 0


class _EndedError(Exception):
    """The run ended with this exit code, and the agent must not restart the ranks."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class _Failure:
    """Why an attempt failed."""

    text: str
    details: str = ""  # a traceback, or the last lines of output
    is_final: bool = False  # a retry would fail in the same way


class _Launcher(LogsSpecs):
    """Prepares each attempt and forwards signals to the ranks.

    The agent calls `reify` before it starts the ranks of an attempt, which is the only hook it offers. `reify`
    redirects their output, and raises an exception to stop the agent if a retry would be useless.
    """

    def __init__(self, folder: Path, report: Report, checkpoints: Path | None, max_restarts: int) -> None:
        super().__init__(str(folder))
        self.folder, self.report = folder, report
        self.checkpoints, self.max_restarts = checkpoints, max_restarts
        self.newest_step, self.failures = self._find_newest_step(), 0  # failures since a new checkpoint
        self.attempt = -1
        self.ranks: list[int] = []  # on this host, in the current attempt
        self.stop_signal: int | None = None
        self._first_end: tuple[int, int] | None = None  # index in `ranks` and exit code of the rank that failed first

    @property
    def root_log_dir(self) -> str:
        """The report folder."""
        return str(self.folder)

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """Begin an attempt: rank 0 prints to the terminal, other ranks to files.

        Args:
            envs: The environment of each rank by local rank; variables may be added.
        """
        if self.attempt < 0:
            self.attempt = 0
        else:
            self._check_restart()
        self.ranks, self._first_end = [int(env["RANK"]) for env in envs.values()], None
        (self.folder / f"attempt-{self.attempt}").mkdir()
        outputs: dict[str, dict[int, str]] = {"out": {}, "err": {}}
        for local_rank, env in envs.items():
            env |= {FOLDER_VARIABLE: str(self.folder), ATTEMPT_VARIABLE: str(self.attempt)}
            env[LAUNCHER_VARIABLE] = str(os.getpid())
            env["TORCHELASTIC_ERROR_FILE"] = ""
            for kind, paths in outputs.items():
                path = report_path(self.folder, self.attempt, int(env["RANK"]), kind)
                paths[local_rank] = "" if env["RANK"] == "0" else str(path)  # "": the terminal
        return LogsDest(outputs["out"], outputs["err"], error_files=dict.fromkeys(envs, os.devnull))

    def _check_restart(self) -> None:
        """Report the failed attempt; stop the agent if there should be no retry."""
        failure = self._find_failure()
        if self.stop_signal is not None or self.read_exit_code() is not None or failure.is_final:
            raise _EndedError(self.explain_end())
        newest_step = self._find_newest_step()
        self.failures = 1 if newest_step > self.newest_step else self.failures + 1
        self.newest_step = max(newest_step, self.newest_step)
        if self.failures > self.max_restarts:
            raise _EndedError(self.explain_end())
        self.attempt += 1
        left = f"{pluralize(self.max_restarts - self.failures, 'restart')} left without a new one"
        self.report(f"{failure.text} Restarting all ranks from the last checkpoint; {left}.")

    def _find_newest_step(self) -> int:
        if self.checkpoints is None or not self.checkpoints.is_dir():
            return 0
        return max((parse_step(path.name) or 0 for path in self.checkpoints.iterdir()), default=0)

    def explain_end(self) -> int:
        """Return the exit code of a run whose last attempt failed.

        Raises:
            RegardError: A rank raised this error.
            RanksFailedError: The run was ended neither by a signal nor by rank 0.
        """
        code = self.read_exit_code()
        if code is not None:  # rank 0 had finished; another rank failed afterwards
            return code
        if self.stop_signal is not None:
            return 128 + self.stop_signal
        failure = self._find_failure()
        if failure.is_final:
            raise RegardError(failure.text)
        message = f"{failure.text} The run ended after {pluralize(self.attempt + 1, 'attempt')}"
        message += f", the last {self.failures:,} without a new checkpoint.{failure.details}"
        raise RanksFailedError(message, hint="Fix the cause, then continue with --resume and the run folder.")

    def read_exit_code(self) -> int | None:
        """Return the exit code reported by rank 0, or by the first rank on this host; None if it failed."""
        end = self._read(min(self.ranks), "end")
        return None if end is None or "error" in end else int(end["code"])

    def _find_failure(self) -> _Failure:
        """Find the rank that caused the failure: one with a clear error, one that was killed, or the first."""
        ends = {rank: self._read(rank, "end") for rank in self.ranks}
        errors = {rank: end for rank, end in ends.items() if end is not None and "error" in end}
        for rank, end in errors.items():
            if end.get("is_final"):
                return _Failure(end["error"] if rank == 0 else f"Rank {rank}: {end['error']}", is_final=True)
        if self._first_end is not None and ends[self.ranks[self._first_end[0]]] is None:  # without a last word
            rank, code = self.ranks[self._first_end[0]], self._first_end[1]
            text = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
            return _Failure(f"Rank {rank} {text}.", self._last_lines(rank))
        if not errors:
            return _Failure("A rank on another host failed.")
        rank = min(errors, key=lambda rank: float(errors[rank]["time"]))
        return _Failure(
            f"Rank {rank} failed: {errors[rank]['error'].removesuffix('.')}.", f"\n{errors[rank]['traceback']}"
        )

    def _last_lines(self, rank: int) -> str:
        """Return the last output of a rank that has no terminal, e.g. a library's error."""
        try:
            path = report_path(self.folder, self.attempt, rank, "err")
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return "".join(f"\n  {line}" for line in lines[-5:])

    def _read(self, rank: int, kind: str) -> Any:
        try:
            return json.loads(report_path(self.folder, self.attempt, rank, kind).read_bytes())
        except FileNotFoundError:
            return None

    @contextmanager
    def watch_ranks(self) -> Iterator[None]:
        """Kill a rank that has been suspended (SIGSTOP) for a while; the others could wait for days."""
        is_over = threading.Event()

        def watch() -> None:
            stopped_since: dict[int, float] = {}
            while not is_over.wait(1.0):
                for process in self._list_processes():
                    if not _is_stopped(process):
                        stopped_since.pop(process, None)
                    elif time.monotonic() - stopped_since.setdefault(process, time.monotonic()) > STOPPED_SECONDS:
                        _kill(process, signal.SIGKILL)

        thread = threading.Thread(target=watch, name="watch the ranks", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _list_processes(self) -> list[int]:
        """Return the process ids of the ranks, including ranks that have not reported yet if the OS lists them."""
        mark, processes = f"{FOLDER_VARIABLE}={self.folder}".encode(), []
        with contextlib.suppress(FileNotFoundError):
            for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
                with contextlib.suppress(OSError):  # it has just ended
                    if mark in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
                        processes.append(int(child))
        return processes

    @contextmanager
    def read_log(self) -> Iterator[None]:
        """Silence the agent's log and read from it which rank failed first, which is not available elsewhere."""

        def read(record: logging.LogRecord) -> bool:
            if record.levelno == logging.ERROR and isinstance(record.args, tuple) and "exitcode" in record.msg:
                code, local_rank, *_ = record.args
                self._first_end = int(str(local_rank)), int(str(code))
            return False

        names = [name for name in logging.root.manager.loggerDict if name.startswith("torch.distributed")]
        for name in names:
            logging.getLogger(name).addFilter(read)
        try:
            yield
        finally:
            for name in names:
                logging.getLogger(name).removeFilter(read)

    @contextmanager
    def relay_signals(self) -> Iterator[None]:
        """Forward SIGTERM and Ctrl-C to the ranks; a second Ctrl-C kills them."""
        previous_handlers = {signum: signal.signal(signum, self._relay) for signum in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for signum, handler in previous_handlers.items():
                signal.signal(signum, handler)

    def _relay(self, signum: int, _frame: FrameType | None) -> None:
        is_second = self.stop_signal is not None
        if is_second and signum != signal.SIGINT:
            return
        self.stop_signal = signum
        (
            self.folder / STOP_MARK
        ).touch()  # for a rank that is still starting: it checks this file after its first report
        relayed = signal.SIGKILL if is_second else RELAYED_SIGTERM if signum == signal.SIGTERM else signal.SIGINT
        for rank in self.ranks:
            process = self._read(rank, "pid")
            if process is not None and self._read(rank, "end") is None:
                _kill(process, relayed)
        if is_second or self.attempt < 0:
            raise _EndedError(128 + signum)


def _kill(process: int, signum: int) -> None:
    """Send a signal to a rank and the processes that it started."""
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.killpg(process, signum)


def _is_stopped(process: int) -> bool:
    """Whether a process was stopped by a signal, if the OS reports it."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
    except (OSError, IndexError):
        return False
