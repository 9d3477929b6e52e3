"""Regard's training speed against that of its peers: target tokens without padding per CPU-second, in turns.

Every peer trains in a separate process, with its own loop and its own batches (`turns`). All run on one thread with the
same allocator settings, which they inherit as an environment variable, and train on the same token ids of the same
corpus. A turn lasts for a fixed number of target tokens (padding does not count). Regard and the peers take turns.
The figure is the median over all rounds of our speed / their speed. Of a peer with several precisions, the fastest
counts.
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

from bench.loops import RegardLoop
from bench.peers import ROOT, find_marian, find_python
from bench.timing import quartiles
from bench.training_cases import (
    CACHE_FOLDER,
    CLIP,
    DATA_FOLDER,
    LEARNING_RATE,
    OURS,
    TrainingCase,
    make_regard_loop,
    make_shakespeare_case,
    make_tiny_case,
    read_corpus,
)
from regard.base.files import write_atomic
from regard.config.codec import RUN_FILES
from regard.config.model import EncoderDecoderConfig
from regard.config.parts import attention_stack
from regard.config.run import RunConfig
from regard.config.toml_file import to_dict
from regard.data.shards.shard import Shards
from regard.training.autotune import autotune
from regard.training.device import prefers_bfloat16
from regard.training.resolve import resolve_run

AS_NANOGPT: dict[str, Any] = {  # exactly its architecture: no biases, and GELU by the error function
    **{f"model.decoder.attention.bias.{name}": False for name in ("query", "key", "value", "output")},
    "model.decoder.feedforward.bias": False,
    "model.decoder.feedforward.activation": "gelu",
    "model.decoder.norm.bias": False,
}


@dataclass(frozen=True)
class Turn:
    """Tokens and CPU time of one turn."""

    tokens: int
    seconds: float  # CPU time

    @property
    def speed(self) -> float:
        """Tokens per CPU-second."""
        return self.tokens / self.seconds


@dataclass(frozen=True)
class Entry:
    """A peer in one of its precisions."""

    module: str  # in bench.peers
    precision: str
    interpreter: Path

    @property
    def name(self) -> str:
        """Name in the table."""
        return f"{self.module} {self.precision}"


@dataclass(frozen=True)
class TrainingContest:
    """One model against its peers."""

    name: str
    case: TrainingCase
    keys: Mapping[str, tuple[tuple[str, str], ...]]  # result key -> modules and precisions of the peers
    tokens: int  # per turn
    seconds: float  # of the whole contest without start-up


def iter_contests(quick: bool) -> Iterator[TrainingContest]:
    """Yield all contests."""
    precisions = ("float32",) if quick else ("float32", "bfloat16")
    translation = {
        "step/joeynmt": (("joeynmt", "float32"),),
        "step/hf_trainer": tuple(("hf_trainer", precision) for precision in precisions),
        "step/marian": (("marian", "float32"),),
    }
    yield TrainingContest(
        "peers",
        make_tiny_case(0, tokens=1024 if quick else 4096),
        translation,
        1000 if quick else 10_000,
        8 if quick else 240,
    )
    yield _make_nanogpt_contest(
        "nanogpt_small", make_shakespeare_case(0), 768 * (5 if quick else 30), 4 if quick else 90, precisions
    )
    if not quick:
        yield _make_nanogpt_contest(
            "nanogpt_medium", make_shakespeare_case(0, 6, 6, 384, 256), 4096 * 2, 120, precisions
        )


def _make_nanogpt_contest(
    name: str, case: TrainingCase, tokens: int, seconds: float, precisions: Sequence[str]
) -> TrainingContest:
    keys = {f"step/{name}": tuple(("nanogpt", precision) for precision in precisions)}
    if len(precisions) > 1:
        keys[f"step/{name}_as_it_is"] = (("nanogpt", "float32"),)
    return TrainingContest(name, replace(case, changes=case.changes | AS_NANOGPT), keys, tokens, seconds)


def compete(contest: TrainingContest) -> dict[str, float]:
    """Run a contest and return its ratios by key; a peer that is not installed is left out with a message."""
    interpreters = {pair: _find_interpreter(pair[0]) for pairs in contest.keys.values() for pair in pairs}
    entries = {pair: Entry(*pair, result) for pair, result in interpreters.items() if isinstance(result, Path)}
    for module, reason in {
        module: result for (module, _), result in interpreters.items() if isinstance(result, str)
    }.items():
        print(f"\n{contest.name}: {module} is left out: {reason}")
    if not entries:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        work_folder = Path(folder)
        regard_loop, settings = _make_regard_loop(contest.case, work_folder)
        peers = {entry.name: Peer(entry, settings, work_folder) for entry in entries.values()}
        try:
            for peer in peers.values():
                peer.wait()
            print(f"\n{contest.name}: {_describe_device(regard_loop)}")
            turns = _race_in_turns({OURS: _make_turn(regard_loop), **peers}, contest.tokens, contest.seconds)
        finally:
            for peer in peers.values():
                peer.close()
    speeds = {name: [turn.speed for turn in peer_turns] for name, peer_turns in turns.items()}
    print(_format_table(speeds, turns))
    result: dict[str, float] = {}
    for key, pairs in contest.keys.items():
        names = [entries[pair].name for pair in pairs if pair in entries]
        if names:
            fastest = max(names, key=lambda name: quartiles(speeds[name])[1])
            result[key] = round(quartiles(_compute_ratios(speeds, fastest))[1], 3)
    return result


class Peer:
    """The process of a peer, which trains one turn on request."""

    def __init__(self, entry: Entry, settings: Mapping[str, Any], folder: Path) -> None:
        self.entry = entry
        self._log = folder / f"{entry.name}.log"
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
        """Wait for the end of a turn."""
        assert self._process.stdout is not None  # noqa: S101
        line = self._process.stdout.readline()
        if not line:
            log_tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
            raise SystemExit(f"{self.entry.name} exited unexpectedly. The end of its log:\n{log_tail}")
        return Turn(**json.loads(line))

    def __call__(self, tokens: int) -> Turn:
        """Request a turn of this number of tokens."""
        assert self._process.stdin is not None  # noqa: S101
        self._process.stdin.write(f"{tokens}\n")
        self._process.stdin.flush()
        return self.wait()

    def close(self) -> None:
        """Close the pipe; the process then exits."""
        self._process.communicate()


def _find_interpreter(module: str) -> Path | str:
    """Return the Python that can run a peer, or the reason why there is none."""
    if module == "joeynmt":
        return find_python(module) or "make it with `python -m bench.peers joeynmt`, or set JOEYNMT_PYTHON."
    if module == "marian":
        found = Path(sys.executable) if find_marian() else None
        return found or "make it with `python -m bench.peers marian`, or set PYMARIAN."
    if module == "nanogpt":
        folder = os.environ.get("NANOGPT", "")
        has_script = folder and (Path(folder) / "train.py").is_file()
        return Path(sys.executable) if has_script else "set NANOGPT to a checkout of github.com/karpathy/nanoGPT."
    needed = ("transformers", "accelerate")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    return f"{' and '.join(missing)} not installed (extra bench)." if missing else Path(sys.executable)


def _make_regard_loop(case: TrainingCase, folder: Path) -> tuple[RegardLoop, dict[str, Any]]:
    """Create Regard's loop in its default precision with autotuned settings, and equivalent settings for the peers."""
    settings = to_dict(case.run("bfloat16" if prefers_bfloat16("cpu") else "float32"))
    for setting in ("attention", "logit_rows"):
        settings["device"].pop(setting)
    run = RUN_FILES.parse(settings)
    data = read_corpus(run, case.corpus)
    run = autotune(resolve_run(run, data), data, lambda _: None)
    regard_loop = make_regard_loop(case, run, data, folder / OURS)
    return regard_loop, _peer_settings(run, data.train)


def _peer_settings(run: RunConfig, shards: Shards) -> dict[str, Any]:
    decoder = attention_stack(run.model.decoder)  # type: ignore[union-attr]
    shape = {
        "layers": decoder.layers,
        "heads": decoder.attention.heads,
        "d_model": run.model.d_model,
        "hidden": decoder.feedforward.d_ff,
    }
    if not isinstance(run.model, EncoderDecoderConfig):
        rows = run.data.batch_tokens // run.data.max_length
        return shape | {
            "context": run.data.max_length,
            "rows": rows,
            "text": str(DATA_FOLDER / "tinyshakespeare/input.txt.gz"),
        }
    lengths = [shard.lengths[1] + 1 for shard in shards.shards]  # with eos
    mean = sum(int(shard_lengths.sum()) for shard_lengths in lengths) / sum(
        len(shard_lengths) for shard_lengths in lengths
    )
    return shape | {
        "pairs": str(_write_pairs(shards)),
        "vocabulary": run.model.source.vocabulary,  # type: ignore[union-attr]
        "dropout": decoder.dropout.sublayer,
        "smoothing": run.train.label_smoothing,
        "max_length": run.data.max_length,
        "tokens": run.data.batch_tokens,
        "rows": round(0.9 * run.data.batch_tokens / mean),
        "rate": LEARNING_RATE,
        "max_grad_norm": CLIP,
        "marian": str(find_marian()),
    }


def _write_pairs(shards: Shards) -> Path:
    """Write all pairs as token ids, one JSON line each, for the peers."""
    path = CACHE_FOLDER / "pairs.jsonl"
    if not path.is_file():
        write_atomic(path, "".join(json.dumps(pair) + "\n" for pair in shards.iter_pairs()).encode())
    return path


def _make_turn(regard_loop: RegardLoop) -> Callable[[int], Turn]:
    def turn(tokens: int) -> Turn:
        start_time, learned_tokens = time.process_time(), 0
        while learned_tokens < tokens:
            regard_loop()
            learned_tokens += regard_loop.last_event.tokens
        return Turn(learned_tokens, time.process_time() - start_time)

    return turn


def _race_in_turns(
    contestants: Mapping[str, Callable[[int], Turn]], tokens: int, seconds: float
) -> dict[str, list[Turn]]:
    """Run turns until the seconds are over, after one warm-up round."""
    turns: dict[str, list[Turn]] = {name: [] for name in contestants}
    for contestant in contestants.values():
        contestant(tokens // 4)
    deadline, longest_round = time.perf_counter() + seconds, 0.0
    gc.collect()
    while len(turns[OURS]) < 3 or time.perf_counter() + longest_round < deadline:
        round_start = time.perf_counter()
        for name, contestant in contestants.items():
            turns[name].append(contestant(tokens))
        longest_round = max(longest_round, time.perf_counter() - round_start)
    return turns


def _compute_ratios(speeds: Mapping[str, list[float]], name: str) -> list[float]:
    return [our / their for our, their in zip(speeds[OURS], speeds[name], strict=True)]


def _format_table(speeds: Mapping[str, list[float]], turns: Mapping[str, list[Turn]]) -> str:
    lines = [f"{'':<22}{'tokens/CPU-s':>14}{'quartiles':>18}{'regard is':>11}{'quartiles':>15}{'rounds':>8}"]
    for name, values in speeds.items():
        low, middle, high = quartiles(values)
        low_ratio, median_ratio, high_ratio = quartiles(_compute_ratios(speeds, name))
        line = f"{name:<22}{middle:>14,.0f}{f'{low:,.0f} - {high:,.0f}':>18}"
        line += f"{median_ratio:>10.2f}x{f'{low_ratio:.2f} - {high_ratio:.2f}':>15}" if name != OURS else " " * 26
        lines.append(f"{line}{len(turns[name]):>8}")
    return "\n".join(lines)


def _describe_device(regard_loop: RegardLoop) -> str:
    run = regard_loop.trainer.run
    rows = run.device.logit_rows or "all"
    attention = f"attention {run.device.attention}, {rows} rows of logits at a time"
    return f"regard in {run.train.precision}, by its probe: {attention}"
