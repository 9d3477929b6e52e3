"""Forecasts of `regard plan` against real runs: peak memory, checkpoint bytes, collectives and CPU-seconds.

    python -m bench.plan            # about five minutes on two idle cores
    python -m bench.plan --quick    # under one minute: one run of one process, one of two ranks
    python -m bench.plan --only lm_ddp translate
    python -m bench.plan --large    # write the table of large models in docs/guides/plan.md, without any training

Each case trains for a few steps in processes of their own, with one thread, on synthetic text
whose rows are all of one length. Then `regard plan` forecasts the same run file.

memory        peak resident memory of the largest rank, less that of a run of a minimal model (Python, torch, buffers of
              the loader): what tensors need. Goal: within 15 %.
checkpoint    bytes of the last checkpoint's folder. Goal: within 2 %.
collectives   calls of one step by kind, counted at torch's dispatcher in the real run. Goal: equal.
CPU           CPU-seconds per step and rank, without the first steps, against the probe of the real step. Goal:
              within 25 %.

The last line is JSON.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.config.run import RunConfig
    from regard.plan.forecast import Forecast

PLAN_PAGE = Path(__file__).parents[1] / "docs" / "guides" / "plan.md"
GOALS = {"memory": 0.15, "checkpoint": 0.02, "cpu": 0.25}
WORDS, ROW, BATCH = 16_000, 128, 768  # vocabulary, tokens per row and per batch
COUNTED_STEP = 3  # DDP has sent its order of buckets in the second
TIME_LIMIT = 900.0
MIB = 2**20
MODELS: dict[str, dict[str, Any]] = {
    "translation": {
        "preset": "base",
        "encoder.layers": 3,
        "decoder.layers": 3,
        "source.vocabulary": WORDS,
    },
    "lm": {
        "preset": "llama",
        "d_model": 512,
        "tokens.vocabulary": WORDS,
        "decoder.layers": 6,
        "decoder.attention.heads": 8,
        "decoder.attention.key_value_heads": 4,
        "decoder.feedforward.d_ff": 2048,
    },
    "masked_lm": {
        "preset": "bert",
        "d_model": 512,
        "source.vocabulary": WORDS,
        "encoder.layers": 8,
        "encoder.attention.heads": 8,
        "encoder.feedforward.d_ff": 2048,
        "encoder.dropout": {"sublayer": 0.1, "embedding": 0.1},
    },
}


@dataclass(frozen=True)
class Case:
    """One run and how its ranks share it."""

    name: str
    model: str
    ranks: int = 1
    parallel: str = ""
    changes: dict[str, Any] = field(default_factory=dict)


CASES = (
    Case("translation", "translation"),
    Case("translate_recompute", "translation", changes={"train.checkpoint_activations": True}),
    Case("lm", "lm"),
    Case("lm_accumulate", "lm", changes={"train.step_tokens": 3 * BATCH, "train.checkpoint_activations": True}),
    Case("masked_lm", "masked_lm"),
    Case("lm_ddp", "lm", 2, "ddp"),
    Case("lm_fsdp", "lm", 2, "fsdp", {"train.checkpoint_activations": True}),
    Case("translate_fsdp", "translation", 2, "fsdp", {"train.step_tokens": 4 * BATCH}),
)
SMALL = {"model.decoder.layers": 3}
QUICK_CASES = (
    Case("lm_small", "lm", changes=SMALL),
    Case("lm_small_fsdp", "lm", 2, "fsdp", SMALL),
)


@dataclass(frozen=True)
class LargeCase:
    """A row of the table of large models in docs/guides/plan.md."""

    model: str
    ranks: int
    layout: str


LARGE_DEVICE, LARGE_ROW = "h100", 8192  # and tokens per row
LARGE_MODELS = {  # d_model, layers, heads, d_ff of Llama 3, and whether the head is tied to the embedding
    "1B": (2048, 16, 32, 8192, True),
    "8B": (4096, 32, 32, 14336, False),
    "70B": (8192, 80, 64, 28672, False),
}
LARGE_CASES = (
    LargeCase("1B", 64, "hsdp=8"),
    LargeCase("8B", 64, "hsdp=8"),
    LargeCase("8B", 64, "fsdp"),
    LargeCase("70B", 64, "fsdp+tensor=8"),
    LargeCase("70B", 512, "fsdp+tensor=8"),
)


def make_large_run(model: str, ranks: int) -> "RunConfig":
    """Return the settings of a large language model, one row per rank and step."""
    from regard.config.codec import RUN_FILES

    d_model, layers, heads, d_ff, is_tied = LARGE_MODELS[model]
    settings = {
        "data": {"train": [{"kind": "documents", "path": "text.txt"}], "batch_tokens": LARGE_ROW},
        "tokenizer": {"kind": "byte"},
        "model": {"preset": "llama", "d_model": d_model},
        "train": {
            "steps": 1000,
            "step_tokens": LARGE_ROW * ranks,
            "schedule": {"kind": "constant", "lr": 1e-4},
            "precision": "bfloat16",
            "checkpoint_activations": True,
        },
    }
    changes = {
        "data.max_length": LARGE_ROW,
        "model.decoder.layers": layers,
        "model.decoder.attention.heads": heads,
        "model.decoder.attention.key_value_heads": 8,
        "model.decoder.feedforward.d_ff": d_ff,
        "model.head.tied": is_tied,
    }
    return RUN_FILES.parse(settings, changes)


def forecast_large(case: LargeCase) -> "Forecast":
    """Forecast a row of the table of large models, one row per data rank and step."""
    from regard.config.codec import RUN_FILES
    from regard.config.devices import DEVICES
    from regard.plan.compare import make_plan
    from regard.plan.layouts import make_candidate

    run, device = make_large_run(case.model, case.ranks), DEVICES[LARGE_DEVICE]
    candidate = make_candidate(run, case.layout, case.ranks, device.per_host)
    if candidate.layout is None:
        raise AssertionError("the layouts of the table are valid")
    run = RUN_FILES.change(run, {"train.step_tokens": LARGE_ROW * candidate.layout.data_world_size})
    plan = make_plan(run, [candidate], length=LARGE_ROW, memory=device.memory, device=device)
    return plan.forecasts[0]


def format_large(case: LargeCase, forecast: "Forecast") -> str:
    """Format a row of the table of large models."""
    if forecast.seconds is None or forecast.price is None:
        raise AssertionError("a device of the table has both")
    tokens = LARGE_ROW * forecast.layout.data_world_size
    quick, slow = forecast.seconds
    cheap, dear = forecast.price
    costs = (case.ranks * seconds / 3600 * price * 1e9 / tokens for seconds, price in ((quick, cheap), (slow, dear)))
    speeds = " - ".join(f"{tokens / seconds / case.ranks:,.0f}" for seconds in (slow, quick))
    cells = [case.model, f"{case.ranks}", f"`{case.layout}`", f"{forecast.peak / 2**30:.1f}"]
    cells += ["yes" if forecast.fits else "no", speeds, " - ".join(f"{cost:,.0f}" for cost in costs)]
    return f"| {' | '.join(cells)} |"


def read_large(page: str) -> dict[LargeCase, str]:
    """Return the rows of the table of large models in the text of the page."""
    rows = {}
    for case in LARGE_CASES:
        start = f"| {case.model} | {case.ranks} | `{case.layout}` |"
        (rows[case],) = (line for line in page.splitlines() if line.startswith(start))
    return rows


def write_large() -> None:
    """Forecast every row of the table of large models and write it into the page."""
    page = PLAN_PAGE.read_text(encoding="utf-8")
    for case, old in read_large(page).items():
        start = time.process_time()
        row = format_large(case, forecast_large(case))
        print(f"{row}  {time.process_time() - start:.0f} CPU-s{'' if row == old else f'; was {old}'}", flush=True)
        PLAN_PAGE.write_text(page := page.replace(old, row), encoding="utf-8")


def make_run(case: Case, folder: Path, steps: int) -> Path:
    """Write the corpus and the run file of a case."""
    import random

    from regard.config.codec import RUN_FILES

    randomness = random.Random(1)  # noqa: S311 - synthetic text
    words = [f"w{number}" for number in range(WORDS - 8)]
    rows = [" ".join(words)]
    rows += [" ".join(randomness.choices(words, k=ROW - 2)) for _ in range(512)]
    pairs = case.model == "translation"
    files = {"source": folder / "text.src", "target": folder / "text.tgt"}
    for file in files.values():
        file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    source = {"kind": "lines", **{side: str(file) for side, file in files.items()}}
    if not pairs:
        source = {"kind": "documents", "path": str(files["source"])}
    model = {f"model.{name}": value for name, value in MODELS[case.model].items()}
    settings = {
        "data": {"train": [source], "batch_tokens": BATCH, "max_length": ROW},
        "tokenizer": {"kind": "word", "vocabulary": WORDS},
        "model": {"preset": model.pop("model.preset")},
        "train": {
            "steps": steps,
            "step_tokens": BATCH * case.ranks,
            "schedule": {"kind": "constant", "peak": 1e-4},
            "save_every": steps,
        },
        "device": {"name": "cpu", "threads": 1, "attention": "autocast", "logit_rows": 256},
    }
    path = folder / "run.toml"
    RUN_FILES.save(RUN_FILES.parse(settings, {**model, **case.changes}), path)
    return path


def train_rank(run_file: Path, out: Path) -> None:
    """Train in this process, which may be one of several ranks, and print what it needed as JSON."""
    from torch.utils._python_dispatch import TorchDispatchMode

    from regard.training.api import start
    from regard.training.options import TrainOptions
    from regard.training.step import StepRunner, StepStats

    starts: list[float] = []  # CPU-seconds before each step
    peaks: list[int] = []  # after each step
    counts: dict[str, int] = {}
    compute = StepRunner.compute_gradients
    is_group = int(os.environ.get("WORLD_SIZE", "1")) > 1

    class CollectiveCounter(TorchDispatchMode):
        """Counts the operators of torch.distributed; `CommDebugMode` fails where modules have hooks on outputs."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            """Count and call an operator."""
            if any("DTensor" in kind.__name__ for kind in types):
                return NotImplemented  # it calls operators on its local tensors, which come here again
            if func.namespace in ("c10d", "_c10d_functional"):
                name = func._schema.name.split("::")[1]
                counts[name] = counts.get(name, 0) + 1
            return func(*args, **(kwargs or {}))

    def compute_and_count(self: StepRunner, batches: Any, epoch: int) -> StepStats:
        starts.append(time.process_time())
        with CollectiveCounter() if is_group and len(starts) == COUNTED_STEP else nullcontext():
            stats = compute(self, batches, epoch)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        return stats

    StepRunner.compute_gradients = compute_and_count  # type: ignore[method-assign]
    start(TrainOptions(run=run_file, out=out, force=True))
    first = COUNTED_STEP if is_group else 1  # the first steps allocate memory, and one is counted
    figures = {
        "peak_of_steps": peaks[-1],
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "cpu": (starts[-1] - starts[first]) / max(len(starts) - 1 - first, 1),
        "collectives": counts,
    }
    print(json.dumps(figures), flush=True)


def run_ranks(run_file: Path, out: Path, ranks: int) -> list[dict[str, Any]]:
    """Train with several processes and return the figures of each."""
    processes = []
    for rank in range(ranks):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if ranks > 1:
            environment |= {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "LOCAL_WORLD_SIZE": str(ranks),
                "REGARD_STORE": str(out.with_suffix(".store")),
                "GLOO_SOCKET_IFNAME": "lo",
            }
        command = [sys.executable, "-m", "bench.plan", "--train", str(run_file), "--out", str(out)]
        processes.append(
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603
        )
    figures = []
    try:
        for process in processes:
            output, _ = process.communicate(timeout=TIME_LIMIT)
            if process.returncode:
                raise SystemExit(f"A rank ended with code {process.returncode}.")
            figures.append(json.loads(output.strip().splitlines()[-1]))
    finally:
        for process in processes:
            process.kill()
    return figures


def plan_run(folder: Path, case: Case) -> dict[str, Any]:
    """Return the forecast of the command."""
    command = [sys.executable, "-m", "regard", "plan", str(folder), "--ranks", str(case.ranks), "--json"]
    command += ["--length", str(ROW), *(["--parallel", case.parallel] if case.parallel else [])]
    result = subprocess.run(  # noqa: S603
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    if result.returncode:
        raise SystemExit(result.stderr)
    return dict(json.loads(result.stdout)[0])


def measure(case: Case, steps: int, baseline: float) -> dict[str, Any]:
    """Train a case, forecast it, and return both."""
    from regard.plan.tracker import KINDS

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = folder / "out"
        changes = {"parallel.mode": case.parallel} if case.parallel else {}
        run_file = make_run(
            Case(case.name, case.model, case.ranks, case.parallel, {**case.changes, **changes}), folder, steps
        )
        actual = run_ranks(run_file, out, case.ranks)
        newest = sorted((out / "checkpoints").glob("step-*"))[-1]
        checkpoint = sum(path.stat().st_size for path in newest.rglob("*") if path.is_file())
        forecast = plan_run(out, case)
    collectives: dict[str, int] = {}
    for operator, count in actual[0]["collectives"].items():
        if (kind := KINDS.get(operator)) is None:
            continue  # waiting for a result
        collectives[kind] = collectives.get(kind, 0) + count
    return {
        "case": case.name,
        "ranks": case.ranks,
        "memory": (forecast["peak_bytes"], max(rank["peak"] for rank in actual) - baseline),
        "memory_of_steps": max(rank["peak_of_steps"] for rank in actual) - baseline,
        "checkpoint": (forecast["checkpoint_bytes"], checkpoint),
        "collectives": (forecast["collectives"], collectives),
        "cpu": (forecast["seconds"][0], sum(rank["cpu"] for rank in actual) / case.ranks),
    }


def measure_baseline(ranks: int) -> float:
    """Return the peak memory of a run whose tensors need next to nothing."""
    with tempfile.TemporaryDirectory() as name:
        small = {
            "model.d_model": 8,
            "model.decoder.layers": 1,
            "model.decoder.attention.heads": 1,
            "model.decoder.attention.key_value_heads": 1,
            "model.decoder.feedforward.d_ff": 8,
            "device.logit_rows": 32,
        }
        run_file = make_run(Case("minimal", "lm", ranks, changes=small), Path(name), 4)
        return float(max(rank["peak"] for rank in run_ranks(run_file, Path(name) / "out", ranks)))


def print_results(results: Sequence[dict[str, Any]]) -> bool:
    """Print the table; return whether all goals are met."""
    rows, are_met = [], True
    for result in results:
        row = [result["case"], str(result["ranks"])]
        for name, goal in GOALS.items():
            forecast, actual = result[name]
            error = forecast / actual - 1
            are_met &= abs(error) <= goal
            scale, digits = (1.0, 3) if name == "cpu" else (MIB, 0)
            row.append(f"{forecast / scale:,.{digits}f} / {actual / scale:,.{digits}f} ({100 * error:+.1f} %)")
        forecast, actual = result["collectives"]
        are_met &= forecast == actual
        row.append("equal" if forecast == actual else f"{forecast} / {actual}")
        rows.append(row)
    header = ["case", "ranks", "memory MiB", "checkpoint MiB", "CPU-s per step", "collectives"]
    widths = [max(len(line[column]) for line in (header, *rows)) for column in range(len(header))]
    for line in (header, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    print(f"\nForecast / actual. Goals: memory 15 %, checkpoint 2 %, CPU 25 %, collectives equal: {are_met}.")
    return are_met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*", help="names of cases")
    parser.add_argument("--large", action="store_true", help="write the table of large models")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--train", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train is not None:
        train_rank(options.train, options.out)
        return
    if options.large:
        write_large()
        return
    cases = [
        case for case in (QUICK_CASES if options.quick else CASES) if not options.only or case.name in options.only
    ]
    baselines = {ranks: measure_baseline(ranks) for ranks in sorted({case.ranks for case in cases})}
    print(
        "Memory of a minimal run:", {ranks: f"{size / MIB:,.0f} MiB" for ranks, size in baselines.items()}, flush=True
    )
    results = []
    for case in cases:
        results.append(measure(case, 5 if options.quick else options.steps, baselines[case.ranks]))
        print(json.dumps(results[-1]), flush=True)
    are_met = print_results(results)
    print(json.dumps({"results": results, "are_met": are_met}))


if __name__ == "__main__":
    main()
