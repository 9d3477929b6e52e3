"""`regard serve` against the bare engine, and against other servers with the same engine.

    python -m bench.serve                  # base, mini and mini in PyTorch against the bare engine: about ten minutes
    python -m bench.serve --only mini      # one of: base, mini, torch, peers, window
    python -m bench.serve --quick          # under a minute: shows that it runs
    python -m bench.peers serve            # installs LitServe and Ray Serve for --only peers

A closed loop: 1, 8, 32 or 128 clients send Multi30k's test sentences, each the next one after its last answer. Server
and bare engine are pinned to one core, the clients to another; they take turns within a round. The models have random
weights and the shapes of the presets; every output has 16 tokens, in all contestants (`bench.serving.models`). Beam 4.

base, mini   CTranslate2, float32. Bare is `translate_batch` with token ids, sorted by length, in static batches of the
             size that was fastest in a trial. The server does more: HTTP, tokenization, detokenization.
torch        preset mini in PyTorch. Bare is `Translator.translate` with static batches.
peers        preset mini, 32 clients: LitServe and Ray Serve call the same `Translator.translate` on CTranslate2 with
             the batch size and waiting time that were fastest in a trial. `per_request` is `regard serve` with batches
             of 1; it also runs with preset base.
window       `regard serve` with and without its wait for the clients of the last batch.

A ratio is the median over all rounds of CPU time per request: bare (or peer) / `regard serve`. CPU time is that of all
processes of a server. `p50/bare_ms` is the difference of the median latencies of single requests, in ms. The last line
is JSON.
"""

import argparse
import json
import random
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bench.peers import find_python
from bench.serving.models import make_export, make_model, read_sentences
from bench.serving.servers import Bare, Sample, Server, start_regard
from bench.timing import quartiles

CASES = ("base", "mini", "torch", "peers", "window")
CLIENTS = (1, 8, 32, 128)
BATCH_SIZES = (16, 32, 64)
LOGS = Path("build/bench-serve/logs")
Turn = Callable[[list[str]], Sample]


class PeerSettings(NamedTuple):
    """Settings of LitServe or Ray Serve."""

    batch_size: int
    seconds: float  # to wait for a batch
    is_fast: bool  # LitServe: `fast_queue`; Ray Serve: RAY_SERVE_THROUGHPUT_OPTIMIZED


PEER_SETTINGS = [PeerSettings(*values) for values in ((32, 0.005, False), (32, 0.005, True), (32, 0.05, True))]


@dataclass
class Table:
    """The samples of a contest: each contestant has one per round."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def add(self, name: str, sample: Sample) -> None:
        """Add a sample of a contestant."""
        self.samples.setdefault(name, []).append(sample)

    def ratio(self, theirs: str, ours: str) -> float:
        """Return the median over all rounds of their CPU time per request / ours."""
        return statistics.median(self._ratios(theirs, ours))

    def added_latency(self, theirs: str, ours: str) -> float:
        """Return the median over all rounds of our median latency - theirs, in ms."""
        pairs = zip(self.samples[ours], self.samples[theirs], strict=True)
        return statistics.median(median_latency(our) - median_latency(their) for our, their in pairs)

    def _ratios(self, theirs: str, ours: str) -> list[float]:
        pairs = zip(self.samples[theirs], self.samples[ours], strict=True)
        return [their.cpu_ms / our.cpu_ms for their, our in pairs]

    def format(self, title: str, reference: str) -> str:
        """Format one line per contestant, with the ratio to a reference and its quartiles."""
        head = f"{'CPU ms/request':>15}{'quartiles':>16}{'ratio':>8}{'quartiles':>14}{'requests/s':>12}{'p50 ms':>9}"
        lines = [f"\n{title}\n{'':<14}{head}{'p99 ms':>9}{'rounds':>8}"]
        for name, samples in self.samples.items():
            low, middle, high = quartiles([sample.cpu_ms for sample in samples])
            low_ratio, ratio, high_ratio = quartiles(self._ratios(reference, name))
            rate = statistics.median(sample.requests_per_second for sample in samples)
            latencies = sorted(latency for sample in samples for latency in sample.latencies)
            p99 = latencies[int(0.99 * (len(latencies) - 1))]
            lines.append(
                f"{name:<14}{middle:>15.2f}{f'{low:.2f}-{high:.2f}':>16}{ratio:>8.3f}"
                f"{f'{low_ratio:.3f}-{high_ratio:.3f}':>14}{rate:>12.1f}"
                f"{statistics.median(map(median_latency, samples)):>9.2f}{p99:>9.1f}{len(samples):>8}"
            )
        return "\n".join(lines)


def median_latency(sample: Sample) -> float:
    """Return the median latency in ms: of a request, or of a static batch."""
    return statistics.median(sample.latencies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CASES, default=["base", "mini", "torch"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, help="requests of 32 clients in a round (default: base 128, else 640)")
    parser.add_argument("--dtype", default="float32", help="type of the exports to CTranslate2")
    parser.add_argument("--quick", action="store_true", help="mini only, two rounds of 96 requests")
    options = parser.parse_args()
    if options.quick:
        options.only, options.rounds, options.requests = ["mini"], 2, 96
    results: dict[str, float] = {}
    for case in options.only:
        if case == "peers":
            results |= run_peers(options.dtype, options.rounds, options.requests or 640)
        elif case == "window":
            results |= run_window(options.dtype, options.rounds, options.requests or 640)
        else:
            results |= run_case(
                case, options.dtype, options.rounds, options.requests or (128 if case == "base" else 640)
            )
    print(json.dumps({name: round(value, 3) for name, value in results.items()}))


def run_case(case: str, dtype: str, rounds: int, requests: int) -> dict[str, float]:
    """Run bare engine and server in turns."""
    engine = "torch" if case == "torch" else "ctranslate2"
    folder = make_model("mini") if case == "torch" else make_export(case, dtype)
    table, few = Table(), max(8, requests // 16)
    with ExitStack() as stack:
        bare = stack.enter_context(Bare(folder, engine, LOGS / f"{case}-bare.log"))
        server = stack.enter_context(start_regard(folder, engine, log=LOGS / f"{case}.log"))
        server.wait()
        texts = draw_texts(-1, requests)
        server.run(texts[: requests // 2], 32)
        bare.run(texts[:few], 32)
        size = min(BATCH_SIZES, key=lambda size: bare.run(texts, size).cpu_ms)

        def make_turn(clients: int) -> Turn:
            count = {1: few, 8: requests // 2}.get(clients, requests)
            return lambda texts: server.run(texts[:count], clients)

        turns: dict[str, Turn] = {
            "bare": lambda texts: bare.run(texts, size),
            "bare 1": lambda texts: bare.run(texts[:few], 1),
            **{f"served c{clients}": make_turn(clients) for clients in CLIENTS},
        }
        take_turns(table, turns, rounds, requests)
        memory = server.memory_mb()
    title = f"{case}: {engine}, bare in static batches of {size}, server has {memory:.0f} MB; ratio: bare / contestant"
    print(table.format(title, "bare"))
    name = {"base": "throughput"}.get(case, case)
    return {
        f"{name}/bare": table.ratio("bare", "served c32"),
        f"{name}_c128/bare": table.ratio("bare", "served c128"),
        f"{name}_c8/bare": table.ratio("bare", "served c8"),
        f"{case}_p50/bare_ms" if case != "mini" else "p50/bare_ms": table.added_latency("bare 1", "served c1"),
    }


def run_peers(dtype: str, rounds: int, requests: int) -> dict[str, float]:
    """Run the server in turns with one request at a time and with the servers of other tools."""
    table, base_table = Table(), Table()
    with ExitStack() as stack:
        servers = start_peers(make_export("mini", dtype), draw_texts(-1, requests), stack)
        turns = {name: make_server_turn(server) for name, server in servers.items()}
        take_turns(table, turns, rounds, requests)
        for name, server in servers.items():
            print(f"{name}: {len(server.find_processes())} processes, {server.memory_mb():.0f} MB")
    print(table.format("peers: mini, ctranslate2, 32 clients; ratio: contestant / regard", "regard"))
    with ExitStack() as stack:
        folder = make_export("base", dtype)
        base_servers = {
            "regard": stack.enter_context(start_regard(folder, "ctranslate2", log=LOGS / "base.log")),
            "per_request": stack.enter_context(
                start_regard(folder, "ctranslate2", "queue.batch_texts=1", log=LOGS / "base-single.log")
            ),
        }
        for server in base_servers.values():
            server.wait()
        take_turns(base_table, {name: make_server_turn(server) for name, server in base_servers.items()}, rounds, 32)
    print(base_table.format("base, ctranslate2, 32 clients; ratio: contestant / regard", "regard"))
    results = {f"c32/{name}": table.ratio(name, "regard") for name in servers if name not in ("regard", "per_request")}
    return results | {
        "c32/per_request": base_table.ratio("per_request", "regard"),
        "c32_mini/per_request": table.ratio("per_request", "regard"),
    }


def start_peers(folder: Path, texts: list[str], stack: ExitStack) -> dict[str, Server]:
    """Start all servers; of each peer the one whose settings were fastest in a trial."""
    start = start_regard(folder, "ctranslate2", log=LOGS / "regard.log")
    servers = {"regard": stack.enter_context(start)}
    start = start_regard(folder, "ctranslate2", "queue.batch_texts=1", log=LOGS / "single.log")
    servers["per_request"] = stack.enter_context(start)
    python = find_python("serve")
    for server in servers.values():
        server.wait()
    if python is None:
        print("LitServe and Ray Serve are not installed; install them with `python -m bench.peers serve`.")
        return servers
    for peer in ("litserve", "ray_serve"):
        trials: dict[PeerSettings, float] = {}
        for settings in PEER_SETTINGS:
            with start_peer(peer, python, folder, settings) as server:
                server.wait()
                server.run(texts[:64], 32)
                trials[settings] = server.run(texts[: len(texts) // 2], 32).cpu_ms
        best = min(trials, key=lambda settings: trials[settings])
        print(f"{peer}: {best} is the fastest of", {tuple(key): round(value, 2) for key, value in trials.items()})
        servers[peer] = stack.enter_context(start_peer(peer, python, folder, best))
        servers[peer].wait()
    return servers


def start_peer(peer: str, python: Path, folder: Path, settings: PeerSettings) -> Server:
    """Start the server of another tool (`bench.serving.litserve_server`, `bench.serving.ray_serve_server`)."""
    arguments = [str(folder), "{port}", str(settings.batch_size), str(settings.seconds), str(int(settings.is_fast))]
    return Server([str(python), "-m", f"bench.serving.{peer}_server", *arguments], log=LOGS / f"{peer}.log")


def run_window(dtype: str, rounds: int, requests: int) -> dict[str, float]:
    """Run the server with and without a wait for the clients of the last batch, for both engines."""
    results: dict[str, float] = {}
    for engine, folder in (("ctranslate2", make_export("mini", dtype)), ("torch", make_model("mini"))):
        table = Table()
        with ExitStack() as stack:
            servers = {
                f"{window} ms": stack.enter_context(
                    start_regard(folder, engine, f"queue.window_ms={window}", log=LOGS / f"window-{window}.log")
                )
                for window in (0, 2, 10)
            }
            for server in servers.values():
                server.wait()
            take_turns(table, {name: make_server_turn(server) for name, server in servers.items()}, rounds, requests)
        print(table.format(f"window: mini, {engine}, 32 clients; ratio: no window / window", "0 ms"))
        results[f"window_{engine}/none"] = table.ratio("0 ms", "10 ms")
    return results


def make_server_turn(server: Server, clients: int = 32) -> Turn:
    """Return a turn of 32 clients."""
    return lambda texts: server.run(texts, clients)


def take_turns(table: Table, turns: dict[str, Turn], rounds: int, requests: int) -> None:
    """Let every contestant translate the same texts in each round, in a random order."""
    order, rng = list(turns), random.Random(0)  # noqa: S311 - an order, not a secret
    for name in turns:
        table.samples[name] = []
    for number in range(rounds):
        texts = draw_texts(number, requests)
        rng.shuffle(order)
        for name in order:
            table.add(name, turns[name](texts))


def draw_texts(number: int, count: int) -> list[str]:
    """Return the sentences of a round, in a random order."""
    _, sentences = read_sentences()
    rng = random.Random(number)  # noqa: S311
    return rng.sample(sentences, min(count, len(sentences)))


if __name__ == "__main__":
    main()
