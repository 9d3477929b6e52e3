"""Kill uploads of a run to S3 at 20 points, and check that the bucket always holds one whole state of the run.

    python -m bench.scale.upload             # moto's S3 server on the loopback interface: about two minutes
    python -m bench.scale.upload --quick     # 4 points and small files

It needs the packages moto[server] and s3fs. A run with a checkpoint and a model is uploaded, then it writes newer ones.
Each time, a process starts to upload them and gets SIGKILL at another moment of the upload; then the run is downloaded
and must equal the old state or the new one, and a second upload must complete the new one. The last line is JSON.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from regard.base.files import create_folder
from regard.base.remote import RemoteFolder, Result
from regard.store.run_folder import RunFolder
from regard.training.upload import download_run, upload_run

URL, FILES = "s3://runs/my-run", 4
FORK = multiprocessing.get_context("fork")  # the children start with all modules imported


def write_state(folder: RunFolder, step: int, size: int) -> None:
    """Write what a run has at a step: a checkpoint, the best model and a journal."""
    shutil.rmtree(folder.checkpoints, ignore_errors=True)
    for path in (folder.checkpoints / f"step-{step:08}", folder.best):
        with create_folder(path, replace=True) as made:
            for number in range(FILES):
                (made / f"{number}.safetensors").write_bytes(os.urandom(size))
    folder.run.write_text("seed = 1\n")
    folder.metrics.write_text("".join(f"{number}\n" for number in range(step)))


def read_state(folder: Path) -> str:
    """Return the sha256 of all files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder)} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def start(function: Callable[..., None], *arguments: Any) -> Any:
    """Run a function in a process of its own; s3fs does not survive a fork."""
    process = FORK.Process(target=function, args=arguments)
    process.start()
    return process


class FatalFolder(RemoteFolder):
    """Kills the process during a request: the one with the number `last`."""

    def __init__(self, url: str, last: int | None) -> None:
        super().__init__(url)
        self.requests, self._last, self._lock = 0, last, threading.Lock()

    def _retry(self, name: str, request: Callable[[str], Result]) -> Result:
        with self._lock:
            self.requests += 1
            if self.requests == self._last:
                kill = (os.getpid(), signal.SIGKILL)
                threading.Timer(0.001 * (self._last % 10), os.kill, kill).start()
        return super()._retry(name, request)


def upload(path: Path, url: str, last: int | None = None) -> None:
    """Upload a run; exit with the number of requests."""
    remote = FatalFolder(url, last)
    upload_run(RunFolder(path), remote)
    sys.exit(remote.requests)


def run(function: Callable[..., None], *arguments: Any) -> int:
    """Run a function in a process of its own to its end; return the exit code."""
    process = start(function, *arguments)
    process.join()
    return int(process.exitcode)


def fetch(url: str, path: Path, states: list[str]) -> str:
    """Download a run and compare it with the states."""
    if run(download_run, url, path) != 0:
        return "damaged"
    state = read_state(path)
    return ("old", "new")[states.index(state)] if state in states else "mixed"


def measure(points: int, size: int, folder: Path) -> dict[str, Any]:
    """Upload an old and a new state; then kill uploads of the new one at each point."""
    path = folder / "run"
    write_state(RunFolder(path), 10, size)
    urls = [f"{URL}-{number}" for number in range(points + 1)]
    for url in urls:
        run(upload, path, url)
    states = [read_state(path)]
    write_state(RunFolder(path), 20, size)
    states.append(read_state(path))
    requests = run(upload, path, urls.pop())
    found, completed, killed = list[str](), list[str](), 0
    for number, url in enumerate(urls):
        killed += run(upload, path, url, 1 + number * (requests - 1) // (points - 1)) == -signal.SIGKILL
        found.append(fetch(url, folder / f"{number}", states))
        run(upload, path, url)
        completed.append(fetch(url, folder / f"{number}-complete", states))
    return {
        "points": points,
        "killed": killed,
        "requests": requests,
        "megabytes": round(2 * FILES * size / 1e6),
        **{state: found.count(state) for state in ("old", "new", "mixed", "damaged")},
        "complete_after_the_next_upload": completed.count("new"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4 points and small files")
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    import_module("s3fs")  # once, for all processes
    settings = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_ENDPOINT_URL": address}
    os.environ.update(settings | {"AWS_DEFAULT_REGION": "us-east-1"})
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        while True:
            try:
                urlopen(Request(f"{address}/runs", method="PUT")).close()  # noqa: S310 - creates the bucket
                break
            except OSError:
                if server.poll() is not None:
                    raise SystemExit("The server did not start: pip install 'moto[server]' s3fs") from None
                time.sleep(0.2)
        with tempfile.TemporaryDirectory() as folder:
            figures = measure(*((4, 100_000) if options.quick else (20, 4_000_000)), Path(folder))
    finally:
        server.terminate()
        server.wait()
    print(json.dumps(figures))
    if figures["mixed"] or figures["damaged"] or figures["complete_after_the_next_upload"] != figures["points"]:
        raise SystemExit("A goal is missed.")


if __name__ == "__main__":
    main()
