"""nginx before two replicas: one is killed under load, and no request fails."""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.verdict import Verdict
from tests.load.client import Connection, post
from tests.load.server import START_SECONDS, Server, run_server, start_server, stop_server, wait_until_ready

CONFIG = Path(__file__).parents[2] / "deploy" / "nginx.conf"
CLIENTS = 32
SECONDS, QUICK_SECONDS = 30.0, 6.0
PROGRAM = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def find_ports(count: int) -> list[int]:
    """Return free ports."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for number in sockets:
            number.bind(("127.0.0.1", 0))
        return [number.getsockname()[1] for number in sockets]


@contextlib.contextmanager
def run_nginx(ports: list[int], port: int) -> Iterator[None]:
    """Run nginx with the configuration of `deploy/`, with other ports, and files in a temporary folder."""
    assert PROGRAM is not None, "install nginx"
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # as root, nginx's workers are another user, which writes large bodies to this folder
        text = CONFIG.read_text()
        for old, new in zip(
            ("server 127.0.0.1:8001", "server 127.0.0.1:8002", "listen 127.0.0.1:8080"),
            (f"server 127.0.0.1:{ports[0]}", f"server 127.0.0.1:{ports[1]}", f"listen 127.0.0.1:{port}"),
            strict=True,
        ):
            assert old in text
            text = text.replace(old, new)
        paths = [f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
        text = text.replace("http {", "http {\n" + "\n".join([*paths, f"access_log {folder}/access.log;"]), 1)
        (folder / "nginx.conf").write_text(f"pid {folder}/pid;\nerror_log {folder}/error.log;\ndaemon off;\n" + text)
        process = subprocess.Popen([PROGRAM, "-p", name, "-c", str(folder / "nginx.conf")], stderr=subprocess.DEVNULL)  # noqa: S603
        try:
            _wait_until_listening(process, port)
            yield
        finally:
            process.send_signal(signal.SIGQUIT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, "nginx refuses its configuration"
        assert time.monotonic() < end, "nginx does not listen"
        time.sleep(0.01)


async def prove(quick: bool) -> Verdict:
    """Kill one of two replicas while clients wait, start it again, and count failed requests."""
    verdict = Verdict("nginx", "requests failed when a replica was killed")
    first, second, port = find_ports(3)
    with run_server(port=first), run_nginx([first, second], port), contextlib.ExitStack() as stack:
        killed = stack.enter_context(run_server(port=second))
        await _strike(verdict, killed, port, quick, stack)
    return verdict


async def _strike(verdict: Verdict, killed: Server, port: int, quick: bool, stack: contextlib.ExitStack) -> None:
    start, seconds = time.monotonic(), QUICK_SECONDS if quick else SECONDS
    latencies: list[tuple[float, float]] = []  # time of the answer, seconds
    has_recovered = asyncio.Event()

    async def client(number: int) -> None:
        connection, source = Connection(port), random.Random(number)
        while not has_recovered.is_set():
            text = f"Two dogs {source.randrange(1000)}."
            answer = await connection.ask(post("/translate", {"q": text, "target": "de"}))
            is_good = answer.status == 200 and "translatedText" in answer.json()
            verdict.add_fault(text, [] if is_good else [f"status {answer.status}"])
            latencies.append((time.monotonic() - start, answer.seconds))
        await connection.close()

    clients = [asyncio.ensure_future(client(number)) for number in range(CLIENTS)]
    await asyncio.sleep(seconds / 3)
    served = len(latencies)
    kill_time = time.monotonic() - start
    os.kill(killed.process.pid, signal.SIGKILL)
    await asyncio.sleep(seconds / 3)
    restart = time.monotonic()
    replacement = start_server(port=killed.port)
    stack.callback(stop_server, replacement)
    await asyncio.to_thread(wait_until_ready, replacement)
    while not await replacement.read_gauge('request_success_total{route="/translate"'):
        await asyncio.sleep(0.05)
        if time.monotonic() - restart > 60:
            verdict.violations.append("the new replica got no request")
            break
    recovery = time.monotonic() - restart
    await asyncio.sleep(seconds / 3)
    has_recovered.set()
    await asyncio.gather(*clients)
    verdict.require("no load before the kill", served > CLIENTS)
    longest = max((duration for end, duration in latencies if kill_time <= end <= kill_time + 10), default=0.0)
    before = sorted(duration for end, duration in latencies if end < kill_time)
    verdict.notes.append(
        f"p50 before {1000 * before[len(before) // 2]:.0f} ms; longest answer after the kill {longest:.2f} s"
    )
    verdict.notes.append(f"a new replica answered {recovery:.1f} s after its start")
