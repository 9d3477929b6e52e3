"""Regard's training against that of its peers: real target tokens per CPU-second, in turns.

Every peer trains in a process of its own, with its own loop and its own batches (`turns`); all run on one thread under
the same allocator, which is set by an environment variable that they inherit. They learn from the very same pieces of
the same corpus. A turn lasts until so many real target tokens (padding never counts) were learned from; ours and theirs
take turns one after the other, and the figure is the median over all rounds of our rate / their rate. Where a peer runs
in several precisions, the fastest one is the peer.
"""

import gc
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.loops import Ours
from bench.peers import ROOT, python
from bench.shapes import CLIP, KEPT, OURS, RATE, SHARED, Shape, ours, read, shakespeare, tiny
from bench.timing import quartiles
from regard.base.files import write_atomic
from regard.config.codec import RUN_FILES
from regard.config.model import EncoderDecoder
from regard.config.run import Run
from regard.config.tables import to_dict
from regard.data.shards import Shards
from regard.train.fit import _resolved
from regard.train.probe import probed

AS_NANOGPT: dict[str, Any] = {  # its shape to the letter: no biases, and GELU by the error function
    **{f"model.decoder.attention.bias.{name}": False for name in ("query", "key", "value", "output")},
    "model.decoder.feedforward.bias": False,
    "model.decoder.feedforward.activation": "gelu",
    "model.decoder.norm.bias": False,
}


@dataclass(frozen=True)
class Turn:
    """What was learned from, and what it cost."""

    tokens: int
    seconds: float  # of CPU time

    @property
    def rate(self) -> float:
        """Tokens a CPU-second."""
        return self.tokens / self.seconds


@dataclass(frozen=True)
class Entry:
    """A peer in one of its precisions."""

    module: str  # of bench.peers
    precision: str
    interpreter: Path

    @property
    def name(self) -> str:
        """In the table."""
        return f"{self.module} {self.precision}"


@dataclass(frozen=True)
class Contest:
    """One shape against some peers."""

    name: str
    shape: Shape
    keys: Mapping[str, tuple[tuple[str, str], ...]]  # of the results, with the peers' modules and precisions
    tokens: int  # of a turn
    seconds: float  # of the whole contest, beginnings aside


def contests(quick: bool) -> Iterator[Contest]:
    """All of them."""
    tried = ("float32",) if quick else ("float32", "bfloat16")
    translation = {
        "step/joeynmt": (("joeynmt", "float32"),),
        "step/hf_trainer": tuple(("hf_trainer", precision) for precision in tried),
    }
    yield Contest(
        "peers", tiny(0, tokens=1024 if quick else 4096), translation, 1000 if quick else 10_000, 8 if quick else 240
    )
    yield _nanogpt("nanogpt_small", shakespeare(0), 768 * (5 if quick else 30), 4 if quick else 90, tried)
    if not quick:
        yield _nanogpt("nanogpt_medium", shakespeare(0, 6, 6, 384, 256), 4096 * 2, 120, tried)


def _nanogpt(name: str, shape: Shape, tokens: int, seconds: float, tried: Sequence[str]) -> Contest:
    keys = {f"step/{name}": tuple(("nanogpt", precision) for precision in tried)}
    if len(tried) > 1:
        keys[f"step/{name}_as_it_is"] = (("nanogpt", "float32"),)
    return Contest(name, replace(shape, changes=shape.changes | AS_NANOGPT), keys, tokens, seconds)


def compete(contest: Contest) -> dict[str, float]:
    """The ratios of a contest by their keys; a peer that is not there is named and left out."""
    asked = {pair: _interpreter(pair[0]) for pairs in contest.keys.values() for pair in pairs}
    entries = {pair: Entry(*pair, found) for pair, found in asked.items() if isinstance(found, Path)}
    for module, why in {module: found for (module, _), found in asked.items() if isinstance(found, str)}.items():
        print(f"\n{contest.name}: {module} is left out: {why}")
    if not entries:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        mine, settings = _ours(contest.shape, place)
        peers = {entry.name: Peer(entry, settings, place) for entry in entries.values()}
        try:
            for peer in peers.values():
                peer.wait()
            print(f"\n{contest.name}: {_told(mine)}")
            turns = _race({OURS: _turns_of(mine), **peers}, contest.tokens, contest.seconds)
        finally:
            for peer in peers.values():
                peer.close()
    rates = {name: [turn.rate for turn in some] for name, some in turns.items()}
    print(_table(rates, turns))
    found: dict[str, float] = {}
    for key, pairs in contest.keys.items():
        names = [entries[pair].name for pair in pairs if pair in entries]
        if names:
            best = max(names, key=lambda name: quartiles(rates[name])[1])
            found[key] = round(quartiles(_ratios(rates, best))[1], 3)
    return found


class Peer:
    """A process that trains when it is asked to."""

    def __init__(self, entry: Entry, settings: Mapping[str, Any], place: Path) -> None:
        self.entry = entry
        self._log = place / f"{entry.name}.log"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        command = [str(entry.interpreter), "-m", f"bench.peers.{entry.module}"]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [*command, json.dumps({**settings, "precision": entry.precision})],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def wait(self) -> Turn:
        """Until its turn is over."""
        assert self._process.stdout is not None  # noqa: S101
        line = self._process.stdout.readline()
        if not line:
            told = "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
            raise SystemExit(f"{self.entry.name} has ended by itself. The end of its log:\n{told}")
        return Turn(**json.loads(line))

    def __call__(self, tokens: int) -> Turn:
        """Train on so many tokens."""
        assert self._process.stdin is not None  # noqa: S101
        self._process.stdin.write(f"{tokens}\n")
        self._process.stdin.flush()
        return self.wait()

    def close(self) -> None:
        """It leaves when nobody can ask any more."""
        self._process.communicate()


def _interpreter(module: str) -> Path | str:
    """The Python that can run a peer, or why there is none."""
    if module == "joeynmt":
        return python(module) or "make it with `python -m bench.peers joeynmt`, or set JOEYNMT_PYTHON."
    if module == "nanogpt":
        folder = os.environ.get("NANOGPT", "")
        has = folder and (Path(folder) / "train.py").is_file()
        return Path(sys.executable) if has else "set NANOGPT to a checkout of github.com/karpathy/nanoGPT."
    needed = ("transformers", "accelerate")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    return f"{' and '.join(missing)} not installed (extra bench)." if missing else Path(sys.executable)


def _ours(shape: Shape, place: Path) -> tuple[Ours, dict[str, Any]]:
    """Regard's loop in bfloat16 with what its probe chooses, and the settings that say the same to the others."""
    table = to_dict(shape.run("bfloat16"))
    for chosen in ("attention", "loss_rows"):
        table["device"].pop(chosen)
    run = RUN_FILES().parse(table)
    known = read(run, shape.corpus)
    run = probed(_resolved(run, known), known, lambda _: None)
    mine = ours(shape, run, known, place / OURS)
    return mine, _settings(run, known.train)


def _settings(run: Run, shards: Shards) -> dict[str, Any]:
    part = run.model.decoder  # type: ignore[union-attr]
    shape = {
        "layers": part.layers,
        "heads": part.attention.heads,
        "width": run.model.width,
        "hidden": part.feedforward.hidden,
    }
    if not isinstance(run.model, EncoderDecoder):
        rows = run.data.batch_tokens // run.data.max_length
        return shape | {
            "context": run.data.max_length,
            "rows": rows,
            "text": str(SHARED / "tinyshakespeare/input.txt.gz"),
        }
    lengths = [shard.lengths[1] + 1 for shard in shards.shards]  # with the end mark
    mean = sum(int(some.sum()) for some in lengths) / sum(len(some) for some in lengths)
    return shape | {
        "pairs": str(_pairs(shards)),
        "vocabulary": run.model.source.vocabulary,  # type: ignore[union-attr]
        "dropout": part.dropout.sublayer,
        "smoothing": run.train.label_smoothing,
        "longest": run.data.max_length,
        "tokens": run.data.batch_tokens,
        "rows": round(0.9 * run.data.batch_tokens / mean),
        "rate": RATE,
        "clip": CLIP,
    }


def _pairs(shards: Shards) -> Path:
    """All pairs as ids, one JSON line each: what the others learn from."""
    path = KEPT / "pairs.jsonl"
    if not path.is_file():
        write_atomic(path, "".join(json.dumps(pair) + "\n" for pair in shards.pairs()).encode())
    return path


def _turns_of(mine: Ours) -> Callable[[int], Turn]:
    def turn(tokens: int) -> Turn:
        began, learned = time.process_time(), 0
        while learned < tokens:
            mine()
            learned += mine.last.tokens
        return Turn(learned, time.process_time() - began)

    return turn


def _race(contestants: Mapping[str, Callable[[int], Turn]], tokens: int, seconds: float) -> dict[str, list[Turn]]:
    """In turns until the seconds are over, after one that does not count."""
    turns: dict[str, list[Turn]] = {name: [] for name in contestants}
    for contestant in contestants.values():
        contestant(tokens // 4)
    end, longest = time.perf_counter() + seconds, 0.0
    gc.collect()
    while len(turns[OURS]) < 3 or time.perf_counter() + longest < end:
        began = time.perf_counter()
        for name, contestant in contestants.items():
            turns[name].append(contestant(tokens))
        longest = max(longest, time.perf_counter() - began)
    return turns


def _ratios(rates: Mapping[str, list[float]], name: str) -> list[float]:
    return [our / their for our, their in zip(rates[OURS], rates[name], strict=True)]


def _table(rates: Mapping[str, list[float]], turns: Mapping[str, list[Turn]]) -> str:
    lines = [f"{'':<22}{'tokens/CPU-s':>14}{'quartiles':>18}{'regard is':>11}{'quartiles':>15}{'rounds':>8}"]
    for name, values in rates.items():
        low, middle, high = quartiles(values)
        below, fraction, above = quartiles(_ratios(rates, name))
        line = f"{name:<22}{middle:>14,.0f}{f'{low:,.0f} - {high:,.0f}':>18}"
        line += f"{fraction:>10.2f}x{f'{below:.2f} - {above:.2f}':>15}" if name != OURS else " " * 26
        lines.append(f"{line}{len(turns[name]):>8}")
    return "\n".join(lines)


def _told(mine: Ours) -> str:
    device = mine.trainer.run.device
    rows = device.logit_rows or "all"
    return f"regard in bfloat16, by its probe: attention {device.attention}, {rows} rows of logits at a time"
