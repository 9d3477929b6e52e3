"""R6: flipped bits, cuts and zeroed blocks in every file of a checkpoint: all are found, and the one before is used.

Most are tried on the loader alone, some on whole runs: these must say it in `log.txt` and end with the files of a run
that nothing happened to.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError

from regard.base.errors import RegardError
from regard.cli.lines import Log
from regard.store.run_folder import RunFolder
from regard.train.checkpoint import Checkpoints
from regard.train.fit import fit, resume
from tests.faults.frozen import room, smallest
from tests.faults.verdict import Verdict
from tests.train.runs import fingerprints

Damage = Callable[[bytes, random.Random], bytes]


def flipped(content: bytes, draw: random.Random) -> bytes:
    """One bit is another."""
    bad = bytearray(content)
    bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
    return bytes(bad)


def cut(content: bytes, draw: random.Random) -> bytes:
    """The end is missing: a byte, or all of it."""
    return content[: draw.randrange(len(content))]


def zeroed(content: bytes, draw: random.Random) -> bytes:
    """A block of the disk reads as zeros (and did not before)."""
    start = draw.choice([index for index in range(0, len(content), 512) if any(content[index : index + 512])])
    end = min(start + 512, len(content))
    return content[:start] + bytes(end - start) + content[end:]


DAMAGES: dict[str, Damage] = {"flipped": flipped, "cut": cut, "zeroed": zeroed}
PARTS = {"flipped": 0.7, "cut": 0.2, "zeroed": 0.1}


def prove(quick: bool = False) -> Verdict:
    """5,000 faults on the loader and 20 on whole runs; or, quick, 100 and 1."""
    verdict = Verdict("R6", "flipped bits, cuts and zeroed blocks were not found, or the good one before was not used")
    with room() as folder:
        run = smallest(folder)
        fit(run, folder / "undisturbed")
        fit(run, folder / "run", pause_at=8)
        strike_loader(verdict, RunFolder(folder / "run").checkpoints, 100 if quick else 5000)
        _runs(verdict, folder, 1 if quick else 20)
    return verdict


def strike_loader(verdict: Verdict, folder: Path, faults: int) -> None:
    """Damage the newest checkpoint of a folder that often, and undo it each time."""
    said: list[str] = []
    known = Checkpoints(folder, said.append)
    *_, before, newest = known.steps()
    files = {path: path.read_bytes() for path in sorted(known.path(newest).iterdir())}
    draw, missed = random.Random(6), 0
    for number in range(faults):
        path = list(files)[number % len(files)]
        (kind,) = draw.choices(list(PARTS), list(PARTS.values()))
        path.write_bytes(DAMAGES[kind](files[path], draw))
        said.clear()
        found = known.newest()
        missed += path.suffix == ".safetensors" and _opens(path)
        broken = [] if found is not None and found[0] == before else [f"{path.name} was read as if it were whole"]
        broken += [] if len(said) == 1 and known.path(newest).name in said[0] else [f"nobody was told: {said}"]
        verdict.injected(f"{kind} {path.name} {number}", broken)
        path.write_bytes(files[path])
    found = known.newest()
    verdict.require("the checkpoint without damage is not used", found is not None and found[0] == newest)
    verdict.notes.append(f"safetensors alone opens {missed} of these files without a word")


def _opens(path: Path) -> bool:
    try:
        safetensors.torch.load_file(path)
    except SafetensorError:
        return False
    return True


def _runs(verdict: Verdict, folder: Path, faults: int) -> None:
    draw, wanted = random.Random(66), fingerprints(folder / "undisturbed")
    for number in range(faults):
        again = folder / "again"
        shutil.copytree(folder / "run", again)
        path = draw.choice(sorted((again / "checkpoints" / "step-00000008").iterdir()))
        path.write_bytes(DAMAGES[draw.choice(list(DAMAGES))](path.read_bytes(), draw))
        broken = []
        try:
            resume(again, listeners=[Log(RunFolder(again).log)])
            broken += [] if fingerprints(again) == wanted else ["the run ended otherwise"]
        except RegardError as error:
            broken.append(f"it cannot be resumed: {error.what}")
        if "step-00000008 is damaged and not used" not in (again / "log.txt").read_text():
            broken.append("log.txt does not say it")
        verdict.injected(f"a run with {path.name} damaged {number}", broken)
        shutil.rmtree(again)
