"""A real server process, `python -m regard serve`, with small models; its memory, descriptors and threads."""

import asyncio
import atexit
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.load.client import ask, get

START_SECONDS = 900.0  # a busy machine may stop a test for minutes
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"


@dataclass(frozen=True)
class Figures:
    """What a process holds."""

    memory: int
    """Resident bytes."""
    descriptors: int
    threads: int


@dataclass
class Server:
    """A server process."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @property
    def figures(self) -> Figures:
        folder = Path("/proc") / str(self.process.pid)
        return Figures(
            read_memory(folder, "VmRSS"), len(list((folder / "fd").iterdir())), len(list((folder / "task").iterdir()))
        )

    def reset_peak(self) -> None:
        """Let the peak of the memory start from what is resident now."""
        (Path("/proc") / str(self.process.pid) / "clear_refs").write_text("5")

    @property
    def peak(self) -> int:
        """Most resident bytes since `reset_peak`."""
        return read_memory(Path("/proc") / str(self.process.pid), "VmHWM")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float) -> int | None:
        """Return the exit code; None if the process still runs."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    async def read_gauge(self, name: str) -> float:
        """Return the sum of a metric over its labels."""
        text = (await ask(self.port, get("/metrics"))).body.decode()
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"regard:{name}"))

    async def count_series(self) -> int:
        """Return the number of series of `/metrics`."""
        text = (await ask(self.port, get("/metrics"))).body.decode()
        return sum(bool(line) and not line.startswith("#") for line in text.splitlines())

    async def is_idle(self, seconds: float) -> bool:
        """Return whether no request runs or waits, within some seconds."""
        end = time.monotonic() + seconds
        while True:
            if not await self.read_gauge("num_requests_running") + await self.read_gauge("num_requests_waiting"):
                return True
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0.02)


def read_memory(process: Path, name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB", (process / "status").read_text(), re.MULTILINE)
    assert match is not None
    return 1024 * int(match.group(1))


def make_folder() -> Path:
    """Return a new folder, which is removed at the end of this process."""
    folder = TemporaryDirectory(prefix="regard-load-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


@cache
def make_models() -> dict[str, Path]:
    """Write small untrained models, in a process of their own: torch would make this one large."""
    folder = make_folder()
    subprocess.run([sys.executable, "-m", "tests.load.models", str(folder)], check=True)  # noqa: S603
    return {name: folder / name for name in ("en-de", "writer", "encoder")}


@contextlib.contextmanager
def run_server(
    *settings: str, options: Sequence[str] = (), models: dict[str, Path] | None = None, port: int = 0
) -> Iterator[Server]:
    """Run a server until the context ends; settings are `a.b=value`."""
    server = start_server(*settings, options=options, models=models, port=port)
    try:
        wait_until_ready(server)
        yield server
    finally:
        stop_server(server)


def start_server(
    *settings: str, options: Sequence[str] = (), models: dict[str, Path] | None = None, port: int = 0
) -> Server:
    """Start a server; `wait_until_ready` tells its port."""
    folders = models or make_models()
    log = make_folder() / "log"
    arguments = [f"{name}={folder}" for name, folder in folders.items()]
    template = folders[next(iter(folders))].with_name("chat.jinja")
    arguments += ["--chat-template", f"writer={template}"] if "writer" in folders else []
    arguments += ["--port", str(port), "--log-format", "json", "--threads", "1", *options]
    for setting in settings:
        arguments += ["--set", setting]
    with log.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", "regard", "serve", *arguments], stderr=file, env=os.environ)  # noqa: S603
    return Server(process, port, log)


def wait_until_ready(server: Server) -> None:
    """Wait until a server listens."""
    end = time.monotonic() + START_SECONDS
    while (match := re.search(r"running on http://[^ ]+:(\d+)", server.log.read_text(), re.IGNORECASE)) is None:
        assert server.is_alive, server.log.read_text()
        assert time.monotonic() < end, server.log.read_text()
        time.sleep(0.05)
    server.port = int(match.group(1))


def stop_server(server: Server) -> int | None:
    """End a server, if need be by force; return its exit code after SIGTERM."""
    if server.is_alive:
        server.send(signal.SIGTERM)
    code = server.wait(40)
    if code is None:
        server.process.kill()
        server.process.wait()
    return code
