"""Two hosts in two network namespaces: bytes on the wire, listeners, and a link that is down for 30 seconds.

    python -m tests.network              # needs root and iproute2 on Linux; about four minutes
    python -m tests.network --down 5     # seconds without a link

Each namespace runs `regard train --hosts 2 --rendezvous 10.77.0.1:29400` with one rank, over a pair of virtual Ethernet
devices. The run completes although the link is down under a longer time-out, it ends with the weights of a run without
that, and no process listens beyond the given addresses. Exits with code 1 if one of these does not hold.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import regard
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from tests.training.runs import compute_fingerprints, make_small_run, write_corpus

HOSTS = {"regard-a": "10.77.0.1", "regard-b": "10.77.0.2"}
PORT = 29400
TIMEOUT = 60.0  # seconds that a rank waits for the others; longer than the link is down
LIMIT = 900.0  # seconds for a run
STEPS, FIRST, LAST = 40, 10, 35  # the bytes are counted between these two steps
MODES = ("ddp", "fsdp")
TOLERANCE = 0.10  # of the forecast
ROOT = Path(__file__).parents[1]
CHANGES = {  # about a million weights: 4 MB per step, far more than the messages between the ranks
    "model.d_model": 128,
    "model.encoder.feedforward.d_ff": 1024,
    "model.decoder.feedforward.d_ff": 1024,
    "train.steps": STEPS,
    "train.save_every": 1000,
    "train.average": 1,
    "validation.every_steps": 1000,
}


def write(line: str) -> None:
    """Write a line of the report at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run_ip(*arguments: str) -> str:
    """Run `ip`."""
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout  # noqa: S603, S607


@contextmanager
def make_hosts() -> Iterator[None]:
    """Create two namespaces with one link."""
    first, second = HOSTS
    try:
        for name in HOSTS:
            run_ip("netns", "add", name)
        run_ip("link", "add", "veth0", "netns", first, "type", "veth", "peer", "name", "veth0", "netns", second)
        for name, address in HOSTS.items():
            run_ip("-n", name, "address", "add", f"{address}/30", "dev", "veth0")
            run_ip("-n", name, "link", "set", "veth0", "up")
            run_ip("-n", name, "link", "set", "lo", "up")
        yield
    finally:
        for name in HOSTS:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)  # noqa: S603, S607


def count_sent(name: str) -> int:
    """Return the bytes that a host has sent."""
    return int(json.loads(run_ip("-n", name, "-s", "-j", "link", "show", "veth0"))[0]["stats64"]["tx"]["bytes"])


def list_listeners(name: str) -> set[str]:
    """Return the addresses on which processes of a host listen, without the port."""
    command = ["ip", "netns", "exec", name, "ss", "-Hltn"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    return {line.split()[3].rpartition(":")[0] for line in output.splitlines()}


class TwoHosts:
    """One run on both hosts."""

    def __init__(self, folder: Path, run_file: Path, mode: str) -> None:
        self.life = folder / f"life-{len(list(folder.glob('life-*')))}"
        environment = {
            **os.environ,
            "REGARD_TIMEOUT": str(TIMEOUT),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join((str(Path(regard.__file__).parents[1]), str(ROOT))),
        }
        command = [sys.executable, "-m", "regard", "train", str(run_file), "--out", str(self.life)]
        command += ["--set", f"parallel.mode={mode}"]
        command += ["--ranks", "1", "--hosts", "2", "--rendezvous", f"{HOSTS['regard-a']}:{PORT}"]
        self.output = self.life.with_suffix(".txt")
        self.processes = []
        for name in HOSTS:
            with self.output.open("ab") as output:
                host_command = ["ip", "netns", "exec", name, *command]
                self.processes.append(
                    subprocess.Popen(host_command, env=environment, stdout=output, stderr=output)  # noqa: S603
                )

    def count_steps(self) -> int:
        """Return how many updates the run has made."""
        try:
            return (self.life / "metrics.jsonl").read_bytes().count(b'"loss"')
        except FileNotFoundError:
            return 0

    def wait_for_step(self, step: int) -> None:
        """Wait until the run has made this many steps."""
        end = time.monotonic() + LIMIT
        while self.count_steps() < step:
            if time.monotonic() > end or any(process.poll() for process in self.processes):
                raise AssertionError(f"step {step} was not reached:\n{self.output.read_text()}")
            time.sleep(0.02)

    def finish(self) -> list[int | None]:
        """Wait for both hosts; return their exit codes."""
        end = time.monotonic() + LIMIT
        for process in self.processes:
            try:
                process.wait(max(1.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
        return [process.returncode for process in self.processes]


def forecast_bytes(run_file: Path) -> dict[str, int]:
    """Return the bytes that one rank sends per step in each mode, as `regard plan` says."""
    command = [sys.executable, "-m", "regard", "plan", str(run_file), "--ranks", "2", "--json"]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)  # noqa: S603
    forecasts = json.loads(result.stdout[result.stdout.index("[") :])
    return {forecast["layout"]: int(forecast["wire_bytes"]) for forecast in forecasts}


def prove(down: float) -> list[str]:
    """Print the figures and return the violations."""
    violations: list[str] = []
    with tempfile.TemporaryDirectory() as name, make_hosts():
        folder = Path(name)
        run: RunConfig = make_small_run("translation", write_corpus(folder / "corpus"), CHANGES)
        run_file = folder / "run.toml"
        RUN_FILES.save(run, run_file)
        forecasts, expected = forecast_bytes(run_file), dict[str, str]()
        for mode in MODES:
            hosts = TwoHosts(folder, run_file, mode)
            hosts.wait_for_step(FIRST)
            first, before = hosts.count_steps(), {host: count_sent(host) for host in HOSTS}
            listeners = {host: list_listeners(host) for host in HOSTS}
            hosts.wait_for_step(LAST)
            sent = {host: count_sent(host) - before[host] for host in HOSTS}
            steps = hosts.count_steps() - first
            codes = hosts.finish()
            if codes != [0, 0]:
                violations.append(f"{mode}: the hosts ended with {codes}\n{hosts.output.read_text()}")
                continue
            expected = expected or compute_fingerprints(hosts.life)
            wire, forecast = max(sent.values()) / steps, forecasts[mode]
            figures = f"{wire / 1e6:.3f} MB per step and rank, forecast {forecast / 1e6:.3f}"
            write(f"{mode}: {figures} ({wire / forecast:.3f})")
            if abs(wire / forecast - 1) > TOLERANCE:
                violations.append(f"{mode}: {wire:,.0f} bytes per step, {forecast:,} in the forecast")
            for host, addresses in listeners.items():
                if addresses - {HOSTS[host]}:
                    violations.append(f"{mode}: {host} listens on {', '.join(sorted(addresses))}")
            write(f"{mode}: listeners on {', '.join(sorted(set().union(*listeners.values())))}")
        violations += _cut_link(folder, run_file, down, expected)
    return violations


def _cut_link(folder: Path, run_file: Path, down: float, expected: dict[str, str]) -> list[str]:
    hosts = TwoHosts(folder, run_file, MODES[0])
    hosts.wait_for_step(FIRST)
    run_ip("-n", "regard-a", "link", "set", "veth0", "down")
    cut = time.monotonic()
    time.sleep(down)
    reached = hosts.count_steps()
    run_ip("-n", "regard-a", "link", "set", "veth0", "up")
    hosts.wait_for_step(reached + 1)
    waited = time.monotonic() - cut
    codes, now = hosts.finish(), compute_fingerprints(hosts.life)
    write(f"link down {down:g} s under a time-out of {TIMEOUT:g} s: next step after {waited:.1f} s, exit codes {codes}")
    differing = [name for name in expected if expected[name] != now.get(name)]
    restarts = hosts.output.read_text().count("Restarting all ranks")
    return [
        *([] if codes == [0, 0] else [f"the hosts ended with {codes}\n{hosts.output.read_text()}"]),
        *([] if not restarts else [f"the ranks were started again:\n{hosts.output.read_text()}"]),
        *([] if not differing else [f"other files at the end: {', '.join(differing)}"]),
    ]


def main() -> None:
    """Run the proof."""
    parser = argparse.ArgumentParser(prog="python -m tests.network", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--down", type=float, default=30.0, help="seconds without a link")
    violations = prove(parser.parse_args().down)
    for violation in violations:
        write(f"violated: {violation}")
    sys.exit(bool(violations))


if __name__ == "__main__":
    main()
