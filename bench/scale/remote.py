"""Read a prepared corpus from a slow and failing HTTP server with several ranks, and kill the rank that downloads.

    python -m bench.scale.remote             # 300 shards, 2 ranks, 30 ms per request: about a minute
    python -m bench.scale.remote --quick     # 60 shards

The server is on the loopback interface; it counts requests, waits before each response, and answers every tenth
request with status 503. It needs the packages aiohttp and requests, with which fsspec opens http://. The ranks are
processes with one cache folder. Goals: each file is sent once; opening takes less than 2 seconds; if the rank that
downloads is killed, the others read the same samples. The last line is JSON.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path

from bench.scale.shards import write_shards
from regard.config.tokenizers import ByteBpeConfig
from regard.data.batches.loader import Loader
from regard.data.batches.order import OrderSettings
from regard.data.shards.remote import RemoteShards
from regard.tasks.causal_lm.rows import CausalLMRows
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair

DELAY, FAILING, MAX_OPEN_SECONDS = 0.03, 10, 2.0


class SlowServer(ThreadingHTTPServer):
    """Sends the files of a folder, and counts the files that it has sent."""

    request_queue_size = 256

    def __init__(self, folder: Path) -> None:
        self.folder, self.sent, self.failed = folder, Counter[str](), 0
        self._requests, self._lock = 0, threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, *_: object) -> None:
        """Ignore that a killed rank has closed its connections."""

    def is_failing(self) -> bool:
        """Whether the next request fails."""
        with self._lock:
            self._requests += 1
            self.failed += self._requests % FAILING == 0
            return self._requests % FAILING == 0

    def count(self, name: str) -> None:
        """Count a file that was sent."""
        with self._lock:
            self.sent[name] += 1


class _Handler(BaseHTTPRequestHandler):
    server: SlowServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        time.sleep(DELAY)
        path = self.server.folder / self.path.lstrip("/")
        if self.server.is_failing():
            return self._send(503, b"slow down")
        if not path.is_file():
            return self._send(404, b"")
        self.server.count(path.name)
        return self._send(200, path.read_bytes())

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def read_epoch(url: str, folder: Path) -> None:
    """Open the corpus and read an epoch, as a rank does; print the seconds and the sha256 of the samples."""
    import_module("fsspec.implementations.http")  # aiohttp takes a second; it is not part of opening
    start = time.perf_counter()
    shards = RemoteShards(url, folder / "cache", refresh=False)
    seconds = time.perf_counter() - start
    settings = OrderSettings(max_tokens=4096, max_length=512, packs_sequences=True)
    rows = CausalLMRows(TokenizerPair.load(folder / "corpus").source.specials)
    digest = hashlib.sha256()
    for batch in Loader(shards, rows, settings).iter_epoch():
        digest.update(batch.samples.numpy().tobytes())
    print(json.dumps({"open": seconds, "all": time.perf_counter() - start, "samples": digest.hexdigest()}))


def start_rank(url: str, folder: Path) -> subprocess.Popen[str]:
    """Start a rank."""
    command = [sys.executable, "-m", "bench.scale.remote", "--read", url, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603


def finish(rank: subprocess.Popen[str]) -> dict[str, float | str]:
    """Return what a rank printed."""
    output, _ = rank.communicate(timeout=300)
    result: dict[str, float | str] = json.loads(output.splitlines()[-1])
    return result


def measure(count: int, ranks: int, folder: Path) -> dict[str, object]:
    """Read with all ranks, then again with an empty cache and a kill of the first rank."""
    corpus = folder / "corpus"
    corpus.mkdir()
    tokenizers = TokenizerPair.joint(learn(["a few words"], ByteBpeConfig(vocabulary=264)))
    tokenizers.save(corpus)
    write_shards(corpus / "train", count, tokenizers.source.size)
    server = SlowServer(corpus)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/train"
    results = [finish(rank) for rank in [start_rank(url, folder) for _ in range(ranks)]]
    figures: dict[str, object] = {
        "shards": count,
        "files": len(server.sent),
        "most_fetches_of_a_file": max(server.sent.values()),
        "failed_requests": server.failed,
        "open_seconds": round(max(float(result["open"]) for result in results), 2),
        "epoch_seconds": round(max(float(result["all"]) for result in results), 1),
    }
    (folder / "cache").rename(folder / "first")
    server.sent.clear()
    leader = start_rank(url, folder)
    while sum(server.sent.values()) < count:  # halfway
        time.sleep(0.01)
    others = [start_rank(url, folder) for _ in range(ranks)]
    time.sleep(0.5)
    os.kill(leader.pid, signal.SIGKILL)
    leader.wait()
    survivors = [finish(rank) for rank in others]
    server.shutdown()
    same = {result["samples"] for result in (*results, *survivors)}
    in_flight = sum(fetches - 1 for fetches in server.sent.values())
    return {**figures, "fetched_again_after_the_kill": in_flight, "same_samples": len(same) == 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="60 shards")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--read", nargs=2, metavar=("URL", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read_epoch(options.read[0], Path(options.read[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(60 if options.quick else 300, options.ranks, Path(folder))
    print(json.dumps(figures))
    is_missed = figures["most_fetches_of_a_file"] != 1 or not figures["same_samples"]
    if is_missed or float(str(figures["open_seconds"])) > MAX_OPEN_SECONDS:
        raise SystemExit("A goal is missed.")


if __name__ == "__main__":
    main()
