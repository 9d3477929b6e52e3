"""R1 on two ranks: SIGKILL of either rank at every call of save and rotate that touches the checkpoints.

At every call the newest checkpoint is complete, the other rank ends by itself, and the next start leaves no trace. The
ranks are forked from a process that has imported torch but used neither autograd nor a process group: such children
are safe, and a fault costs a second of CPU time.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from unittest import mock

import torch
import torch._dynamo  # the first DTensor imports it: here once, not in every child
import torch.distributed as dist  # noqa: TID251
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh  # noqa: TID251
from torch.distributed.tensor import DTensor, Shard  # noqa: TID251

from regard.base.errors import RegardError
from regard.store.run_folder import RunFolder
from regard.training.checkpoint import sharded  # noqa: F401 - likewise
from regard.training.checkpoint.folder import Checkpoint, Checkpoints
from tests.faults.frozen import CRASHED, DONE, FAILED, STRAYS, hash_folder, make_scratch_folder
from tests.faults.naive import rename_before_sealing
from tests.faults.syscalls import FILES, PR_SET_PTRACER, STRACE, Call, is_traced, parse_calls
from tests.faults.verdict import Verdict
from tests.training.sharded_cases import hash_tensors, make_group

SECONDS = 60.0  # until a rank that lost the other one must have ended; they take a fraction of one if idle
SIZES = {"a": 7, "b": 12}  # elements of two tensors; the ranks have 4 and 3 of the first


def prove(quick: bool = False) -> Verdict:
    """All calls on both ranks; or, quick, those around a rank's file, the manifest and the rename."""
    command = [sys.executable, "-m", "tests.faults.rank_kills", *(["--quick"] if quick else [])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    if result.returncode:
        raise AssertionError(result.stdout + result.stderr)
    return Verdict(**json.loads(result.stdout.splitlines()[-1]))


def main() -> None:
    """Run the proof in this clean process and print its verdict as JSON."""
    quick = "--quick" in sys.argv
    torch.set_num_threads(1)
    verdict = Verdict("R1x2", "kills of one of two ranks at a file system call left no whole checkpoint")
    strike_calls(verdict, _is_milestone if quick else lambda _: True, should_go_on=not quick)
    if not quick:
        early = Verdict("early", "")
        with mock.patch("regard.training.checkpoint.folder.create_folder", rename_before_sealing):
            strike_calls(early, _is_manifest_rename)
        verdict.require("renaming before sealing was not detected", bool(early.violations))
        verdict.notes.append(f"a saver that renames before it seals fails at {len(early.violations)} of {early.faults}")
    sys.stdout.write(json.dumps(asdict(verdict)) + "\n")


def strike_calls(verdict: Verdict, is_selected: Callable[[Call], bool], *, should_go_on: bool = True) -> None:
    """Kill each rank at every selected call on the folder of checkpoints; both may save again afterwards."""
    with make_scratch_folder() as scratch:
        pair = Pair(scratch, should_go_on=should_go_on)
        for rank in (0, 1):
            codes, calls = pair.save(6, traced_rank=rank, options=["-e", f"trace={FILES}"])
            if codes != [DONE, DONE]:
                raise AssertionError(f"The undisturbed ranks ended with {codes}.")
            calls = [call for call in calls if str(pair.folder) in call.rest]
            for call in filter(is_selected, calls):
                codes, _ = pair.save(6, traced_rank=rank, options=call.injection_options("signal=KILL"))
                was_hit = codes[rank] == -signal.SIGKILL
                broken = [] if was_hit else [f"it was not hit: {codes}"]
                broken += [] if codes[1 - rank] in (DONE, FAILED) else [f"the other rank ended with {codes[1 - rank]}"]
                verdict.add_fault(f"rank {rank}, {call}", broken + pair.find_violations())
            verdict.notes.append(f"rank {rank}: {len(calls)} calls")
        verdict.notes.append(f"{len(pair.verdicts)} different folders")


class Pair:
    """Two ranks with checkpoints of steps 2 and 4 that save step 6 and remove 2."""

    def __init__(self, scratch: Path, *, should_go_on: bool) -> None:
        self.scratch, self.run = scratch, RunFolder(scratch / "run")
        self._should_go_on = should_go_on
        self.folder = self.run.checkpoints
        self.verdicts: dict[str, list[str]] = {}
        self._before, self._groups = scratch / "before", 0
        for step in (2, 4):
            self._start(step, {2})
        shutil.copytree(self.run.path, self._before)
        self._start(6, {2, 4})
        checkpoints = Checkpoints(self.folder, print)
        self._expected = {step: hash_tensors(checkpoints.load(step)) for step in (4, 6)}

    def save(self, step: int, traced_rank: int, options: list[str]) -> tuple[list[int], list[Call]]:
        """Let both ranks save and rotate, one of them under strace; return their exit codes and the calls of one."""
        shutil.rmtree(self.run.path)
        shutil.copytree(self._before, self.run.path)
        return self._start(step, {4}, traced_rank, options)

    def _start(
        self, step: int, keep: set[int], traced_rank: int | None = None, options: list[str] | None = None
    ) -> tuple[list[int], list[Call]]:
        self._groups += 1
        store = self.scratch / f"store-{self._groups}"
        children = [_fork_rank(rank, store, self.folder, step, keep) for rank in (0, 1)]
        for child in children:
            os.waitpid(child, os.WUNTRACED)
        with tempfile.NamedTemporaryFile("r") as log:
            tracer = None
            if traced_rank is not None:
                command = [str(STRACE), "-q", "-y", "-s", "256", "-p", str(children[traced_rank]), "-o", log.name]
                tracer = subprocess.Popen([*command, *(options or [])])  # noqa: S603 - the program that STRACE found
                while not is_traced(children[traced_rank]):
                    time.sleep(0.0005)
            for child in children:
                os.kill(child, signal.SIGCONT)
            codes = [_wait(child) for child in children]
            if tracer is not None:
                tracer.wait()
            return codes, parse_calls(log.read())

    def find_violations(self) -> list[str]:
        """List the guarantees that the folder violates. Equal folders are checked once."""
        state = hash_folder(self.run.path)
        if state not in self.verdicts:
            self.verdicts[state] = list(self._check())
        return self.verdicts[state]

    def _check(self) -> Iterator[str]:
        warnings: list[str] = []
        try:
            newest = Checkpoints(self.folder, warnings.append).load_newest()
        except RegardError as error:
            yield f"no checkpoint is left: {error.message}"
            return
        yield from warnings
        if newest is None or hash_tensors(newest[1]) != self._expected.get(newest[0]):
            yield "the newest checkpoint is another one"
        if not self._should_go_on:
            return
        with self.run.lock():
            codes, _ = self._start(8, {4})
        if codes != [DONE, DONE] or Checkpoints(self.folder, print).steps() != [4, 8]:
            yield f"the next save ended with {codes}"
        yield from (f"{path.name} is left over" for path in self.run.path.rglob("*") if path.suffix in STRAYS)


def _fork_rank(rank: int, store: Path, folder: Path, step: int, keep: set[int]) -> int:
    """Fork a rank, which stops itself just before it saves."""
    child = os.fork()
    if child:
        return child
    code = CRASHED
    try:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        files = dist.FileStore(str(store), 2)  # type: ignore[attr-defined]
        dist.init_process_group("gloo", store=files, rank=rank, world_size=2)
        checkpoint = _make_checkpoint(rank, step)
        group = make_group()
        group.all_gather(None)
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1))  # strace is not an ancestor of this process
        os.kill(os.getpid(), signal.SIGSTOP)
        checkpoints = Checkpoints(folder, print, processes=group, parameters=checkpoint.weights)
        checkpoints.save(step, checkpoint)
        checkpoints.rotate(keep)
        group.all_gather(None)
        code = DONE
    except (RuntimeError, RegardError):  # of gloo: the other rank has gone
        code = FAILED
    finally:
        os._exit(code)


def _make_checkpoint(rank: int, step: int) -> Checkpoint:
    """Make tensors of which each rank has a part, without communication."""
    mesh = init_device_mesh("cpu", (2,))

    def shard(size: int, factor: float) -> Tensor:
        part = (torch.arange(float(size)) * factor).chunk(2)[rank].clone()
        return DTensor.from_local(part, mesh, [Shard(0)], run_check=False, shape=torch.Size([size]), stride=(1,))

    weights, moments = ({name: shard(size, scale * step) for name, size in SIZES.items()} for scale in (1.0, 0.1))
    optimizer = {f"exp_avg/{name}": tensor for name, tensor in moments.items()}
    return Checkpoint(weights, optimizer, {}, {"progress": {"step": step}})


def _wait(child: int) -> int:
    """Return the exit code of a rank; one that does not end is killed with SIGABRT."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGABRT)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _is_milestone(call: Call) -> bool:
    """Whether a save is in another state just before this call."""
    creates_shard = call.name == "openat" and "shard-" in call.rest and "O_CREAT" in call.rest
    creates_state = call.name == "openat" and "state.json" in call.rest and "O_CREAT" in call.rest
    names_folder = call.name == "rename" and '.tmp"' in call.rest and "manifest" not in call.rest
    return creates_shard or creates_state or names_folder or _is_manifest_rename(call)


def _is_manifest_rename(call: Call) -> bool:
    return call.name.startswith("rename") and "manifest.json" in call.rest


if __name__ == "__main__":
    main()
