"""Server processes of the benchmark: started on one core, measured by the CPU time of all their processes."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.peers import ROOT

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
SERVER_CORE, CLIENT_CORE = CORES[0], CORES[-1]
TICKS = os.sysconf("SC_CLK_TCK")
MARK = "REGARD_BENCH"  # an environment variable that all processes of a server inherit


@dataclass(frozen=True)
class Sample:
    """One turn of a contestant."""

    cpu_ms: float  # per request
    requests_per_second: float
    latencies: list[float]  # ms


class Process:
    """A command with all processes that it starts, pinned to the server's core."""

    def __init__(self, command: Sequence[str], *, log: Path, **environment: str) -> None:
        self.mark = f"{MARK}={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        variables = {**os.environ, "OMP_NUM_THREADS": "1", name: value, **environment}
        variables["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as file:
            self.process = subprocess.Popen(  # noqa: S603 - our own commands
                ["taskset", "-c", str(SERVER_CORE), *command],  # noqa: S607
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        for pid in self.find_processes():
            os.kill(pid, 9)

    def find_processes(self) -> list[int]:
        """Return the ids of all processes that inherited the mark."""
        mark, found = self.mark.encode(), []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue  # it has ended, or belongs to somebody else
        return found

    def cpu_seconds(self) -> float:
        """Return the CPU time of all processes so far, user and system."""
        ticks = 0
        for pid in self.find_processes():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS

    def memory_mb(self) -> float:
        """Return the proportional memory of all processes, in MB."""
        total = 0
        for pid in self.find_processes():
            try:
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        return total / 1024


class Bare(Process):
    """The engine without a server (`bench.serving.bare`)."""

    def __init__(self, folder: Path, engine: str, log: Path) -> None:
        super().__init__([sys.executable, "-m", "bench.serving.bare", str(folder), engine], log=log)

    def run(self, texts: list[str], batch_size: int) -> Sample:
        """Translate texts in static batches."""
        assert self.process.stdin is not None  # noqa: S101
        assert self.process.stdout is not None  # noqa: S101
        self.process.stdin.write(json.dumps({"texts": texts, "batch_size": batch_size}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        seconds = sum(answer["times"]) / 1000
        return Sample(1000 * answer["cpu_seconds"] / len(texts), len(texts) / seconds, answer["times"])


class Server(Process):
    """An HTTP server that answers LibreTranslate's `/translate`."""

    def __init__(self, command: Sequence[str], *, log: Path, path: str = "/translate", **environment: str) -> None:
        self.port, self.path = find_port(), path
        arguments = [argument.replace("{port}", str(self.port)) for argument in command]
        super().__init__(arguments, log=log, **environment)

    def wait(self, seconds: float = 180) -> None:
        """Wait until the server answers a request."""
        end = time.monotonic() + seconds
        body = json.dumps(make_body("One dog.")).encode()
        while time.monotonic() < end and self.process.poll() is None:
            request = urllib.request.Request(f"http://127.0.0.1:{self.port}{self.path}", body)
            request.add_header("Content-Type", "application/json")
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                    if "translatedText" in json.load(answer):
                        return
            except OSError:
                time.sleep(0.2)
        raise SystemExit(f"The server did not start: {' '.join(map(str, self.process.args))}")  # type: ignore[arg-type]

    def run(self, texts: list[str], clients: int) -> Sample:
        """Send one request for each text from a number of clients, and wait for all answers."""
        bodies = [json.dumps(make_body(text)) for text in texts]
        job = {"port": self.port, "path": self.path, "bodies": bodies, "clients": clients}
        start = self.cpu_seconds()
        completed = subprocess.run(  # noqa: S603
            ["taskset", "-c", str(CLIENT_CORE), sys.executable, "-m", "bench.serving.load"],  # noqa: S607
            input=json.dumps(job),
            stdout=subprocess.PIPE,
            check=True,
            text=True,
            cwd=ROOT,
        )
        cpu_seconds = self.cpu_seconds() - start
        answer: dict[str, Any] = json.loads(completed.stdout)
        if answer["failures"]:
            raise SystemExit(f"{answer['failures']} of {len(texts)} requests failed.")
        return Sample(1000 * cpu_seconds / len(texts), len(texts) / answer["seconds"], answer["latencies"])


def make_body(text: str) -> dict[str, Any]:
    """Return the body of a request."""
    return {"q": text, "source": "en", "target": "de", "beam_size": 4}


def start_regard(folder: Path, engine: str, *settings: str, log: Path) -> Server:
    """Start `regard serve`."""
    options = [part for setting in settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "regard", "serve", f"m={folder}", "--engine", engine, "--threads", "1"]
    return Server([*command, "--port", "{port}", *options], log=log)


def find_port() -> int:
    """Return a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
