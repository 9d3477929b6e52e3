"""Peak memory of fine-tuning: all parameters, the last two layers, LoRA; beside the forecast of `regard plan`.

    regard import SmolLM2-135M-Instruct.Q4_1.gguf --out smollm
    python -m bench.tune_memory --model smollm    # some minutes
    python -m bench.tune_memory --quick           # under one minute: a small model with random weights

Each way of tuning makes a few steps of one batch on synthetic text, in a process of its own with one thread. Its peak
resident memory, less that of a run of a minimal model, is what tensors need. The peak includes the start of the run,
which holds the weights of the parent and of the new model at once. `regard plan` then forecasts the same run folder.
The last line is JSON.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.plan import MIB, Case, make_run, measure_baseline, plan_run, run_ranks

ROW, BATCH, STEPS, WORDS = 128, 512, 3, 4000
METHODS: dict[str, list[str]] = {"full": [], "last 2 layers": ["--layers", "2"], "LoRA 8": ["--lora", "8"]}
QUICK = {"model.decoder.layers": 3}
SETTINGS = {
    "data.batch_tokens": BATCH,
    "data.max_length": ROW,
    "data.held_out": 0.05,
    "train.step_tokens": BATCH,
    "train.save_every": STEPS,
    "train.precision": "float32",
    "validation.every_steps": 1000,
    "validation.samples": 0,
    "device.threads": 1,
    "device.attention": "autocast",
    "device.logit_rows": 256,
}


def make_parent(folder: Path) -> Path:
    """Train a small language model for two steps, and return its run folder."""
    folder.mkdir()
    out = folder / "out"
    run_ranks(make_run(Case("parent", "lm", changes=QUICK), folder, 2), out, 1)
    return out


def write_text(path: Path) -> None:
    """Write lines of random words, each longer than a row."""
    randomness = random.Random(1)  # noqa: S311 - synthetic text
    words = [f"w{number}" for number in range(WORDS)]
    path.write_text("".join(" ".join(randomness.choices(words, k=ROW)) + "\n" for _ in range(400)), encoding="utf-8")


def measure(model: Path, text: Path, out: Path, options: list[str], baseline: float) -> dict[str, Any]:
    """Tune once and return the peak, the forecast and the share of trained parameters."""
    settings = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "regard", "tune", str(model), "--text", str(text), "--out", str(out), "--force"]
    command += ["--steps", str(STEPS), *settings, *options]
    log = out.with_suffix(".log")
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    if process.returncode:
        raise SystemExit("\n".join(lines[-20:]))
    start = next(line for line in lines if "The run starts from" in line)
    optimizer = sum(path.stat().st_size for path in sorted((out / "checkpoints").glob("step-*"))[-1].glob("optimizer*"))
    forecast = plan_run(out, Case("tuned", "lm"))
    return {
        "trained": start.split(" and trains ")[1].split(" parameters")[0],
        "share": start.split("(")[1].split(")")[0],
        "peak_mib": round((usage.ru_maxrss * 1024 - baseline) / MIB),
        "plan_mib": round(forecast["peak_bytes"] / MIB),
        "optimizer_mib": round(optimizer / MIB, 1),
    }


def main() -> None:
    """Measure all ways of tuning and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a language model; default: a small one with random weights")
    parser.add_argument("--quick", action="store_true", help="the small model; two ways of tuning")
    options = parser.parse_args()
    baseline = measure_baseline(1)
    print(f"Memory of a minimal run: {baseline / MIB:,.0f} MiB", flush=True)
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = folder / "text.txt"
        write_text(text)
        model = make_parent(folder / "parent") if options.quick or options.model is None else options.model
        for number, (method, arguments) in enumerate(METHODS.items()):
            if options.quick and method not in ("full", "LoRA 8"):
                continue
            results[method] = measure(model, text, folder / f"run{number}", arguments, baseline)
            print(method, results[method], flush=True)
    print("\ntuning         trained                          share     peak MiB  plan MiB  optimizer MiB")
    for method, row in results.items():
        cells = f"{row['trained']:<32} {row['share']:>8}  {row['peak_mib']:>8,}  {row['plan_mib']:>8,}"
        print(f"{method:<14} {cells}  {row['optimizer_mib']:>13,}")
    print(json.dumps({"model": str(options.model or "small"), "baseline_mib": round(baseline / MIB), **results}))


if __name__ == "__main__":
    main()
