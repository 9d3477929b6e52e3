"""R6: flipped bits, truncation and zeroed blocks in every file of a checkpoint are detected; the previous one is used.

Most faults test the loader alone, some whole runs: these must report it in `log.txt` and end with the files of an
undisturbed run.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError

from regard.base.errors import RegardError
from regard.store.run_folder import RunFolder
from regard.training.checkpoint.folder import Checkpoints
from regard.training.event_lines import FileLog
from regard.training.run import fit, resume
from tests.faults.frozen import make_scratch_folder, make_smallest_run
from tests.faults.verdict import Verdict
from tests.training.runs import compute_fingerprints

Damage = Callable[[bytes, random.Random], bytes]


def flip_bit(content: bytes, rng: random.Random) -> bytes:
    """Flip one bit."""
    damaged = bytearray(content)
    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def truncate(content: bytes, rng: random.Random) -> bytes:
    """Remove the end: at least one byte, at most all."""
    return content[: rng.randrange(len(content))]


def zero_block(content: bytes, rng: random.Random) -> bytes:
    """Zero one disk block that is not zero."""
    start = rng.choice([index for index in range(0, len(content), 512) if any(content[index : index + 512])])
    end = min(start + 512, len(content))
    return content[:start] + bytes(end - start) + content[end:]


DAMAGES: dict[str, Damage] = {"flipped": flip_bit, "cut": truncate, "zeroed": zero_block}
SHARES = {"flipped": 0.7, "cut": 0.2, "zeroed": 0.1}


def prove(quick: bool = False) -> Verdict:
    """5,000 faults on the loader and 20 on whole runs; or, quick, 100 and 1."""
    verdict = Verdict("R6", "flipped bits, cuts and zeroed blocks were not found, or the good one before was not used")
    with make_scratch_folder() as folder:
        run = make_smallest_run(folder)
        fit(run, folder / "undisturbed")
        fit(run, folder / "run", pause_at=8)
        strike_loader(verdict, RunFolder(folder / "run").checkpoints, 100 if quick else 5000)
        _strike_runs(verdict, folder, 1 if quick else 20)
    return verdict


def strike_loader(verdict: Verdict, folder: Path, faults: int) -> None:
    """Damage the newest checkpoint of a folder repeatedly and restore it each time."""
    messages: list[str] = []
    checkpoints = Checkpoints(folder, messages.append)
    *_, before, newest = checkpoints.steps()
    files = {path: path.read_bytes() for path in sorted(checkpoints.path(newest).iterdir())}
    rng, missed = random.Random(6), 0
    for number in range(faults):
        path = list(files)[number % len(files)]
        (kind,) = rng.choices(list(SHARES), list(SHARES.values()))
        path.write_bytes(DAMAGES[kind](files[path], rng))
        messages.clear()
        newest_intact = checkpoints.load_newest()
        missed += path.suffix == ".safetensors" and _can_open(path)
        broken = (
            []
            if newest_intact is not None and newest_intact[0] == before
            else [f"{path.name} was read as if it were intact"]
        )
        broken += (
            [] if len(messages) == 1 and checkpoints.path(newest).name in messages[0] else [f"not reported: {messages}"]
        )
        verdict.add_fault(f"{kind} {path.name} {number}", broken)
        path.write_bytes(files[path])
    newest_intact = checkpoints.load_newest()
    verdict.require(
        "the checkpoint without damage is not used", newest_intact is not None and newest_intact[0] == newest
    )
    verdict.notes.append(f"safetensors alone opens {missed} of these files without a word")


def _can_open(path: Path) -> bool:
    try:
        safetensors.torch.load_file(path)
    except SafetensorError:
        return False
    return True


def _strike_runs(verdict: Verdict, folder: Path, faults: int) -> None:
    rng, expected = random.Random(66), compute_fingerprints(folder / "undisturbed")
    for number in range(faults):
        copy = folder / "again"
        shutil.copytree(folder / "run", copy)
        path = rng.choice(sorted((copy / "checkpoints" / "step-00000008").iterdir()))
        path.write_bytes(DAMAGES[rng.choice(list(DAMAGES))](path.read_bytes(), rng))
        broken = []
        try:
            resume(copy, listeners=[FileLog(RunFolder(copy).log)])
            broken += [] if compute_fingerprints(copy) == expected else ["the run ended with other files"]
        except RegardError as error:
            broken.append(f"it cannot be resumed: {error.message}")
        if "step-00000008 is damaged and was skipped" not in (copy / "log.txt").read_text():
            broken.append("log.txt does not report it")
        verdict.add_fault(f"a run with {path.name} damaged {number}", broken)
        shutil.rmtree(copy)
