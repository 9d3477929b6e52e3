"""bfloat16 against float32: forward and backward of every preset that `regard train` chooses for small corpora.

    python -m bench.precision
    python -m bench.precision --quick       # the smallest presets

One thread; attention in whichever form is faster for each precision. These figures are the reason why `regard train`
chooses bfloat16 on CPUs with AMX; other CPUs were not measured.
"""

import argparse
import json
from dataclasses import dataclass
from typing import Any

import torch

from bench.timing import Times, quartiles, race, ratio, restart_with_tuned_malloc
from regard.config import codec
from regard.config.run import DataConfig, RunConfig
from regard.config.sources import LinesConfig
from regard.config.training import ConstantConfig, DeviceConfig, TrainingConfig
from regard.tasks.task import find_task
from regard.training.autotune import StepTimer
from regard.training.device import prefers_bfloat16


@dataclass(frozen=True)
class Case:
    """A preset, the number of tokens per batch, and the length of a row."""

    preset: str
    tokens: int
    length: int


CASES = (
    Case("mini", 1024, 20),
    Case("mini", 2048, 20),
    Case("tiny", 1024, 20),
    Case("tiny", 4096, 20),
    Case("small", 4096, 30),
    Case("lm-small", 1024, 256),
    Case("lm-small", 4096, 256),
    Case("lm-medium", 4096, 512),
    Case("encoder-small", 2048, 30),
    Case("encoder-small", 4096, 128),
)
QUICK_CASES = CASES[:3]


def main() -> None:
    """Print the table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    options = parser.parse_args()
    restart_with_tuned_malloc()
    torch.set_num_threads(1)
    support = "has" if prefers_bfloat16("cpu") else "does not have"
    print(f"This CPU {support} fast bfloat16 matrix products. CPU ms per batch: quartiles.\n", flush=True)
    print(f"{'preset':8} {'batch':>10}  {'float32':>22} {'bfloat16':>22}  gain", flush=True)
    gains: dict[str, float] = {}
    for case in QUICK_CASES if options.quick else CASES:
        times = _race_precisions(case, 10 if options.quick else 15)
        gain = ratio(times["float32"], times["bfloat16"])
        rows = f"{case.tokens // case.length} x {case.length}"
        quartile_columns = " ".join(f"{'{:.1f} {:.1f} {:.1f}'.format(*quartiles(times[name])):>22}" for name in times)
        print(f"{case.preset:8} {rows:>10}  {quartile_columns}  {gain:.2f}", flush=True)
        gains[f"{case.preset}_{case.tokens}/float32"] = round(gain, 3)
    print(json.dumps(gains))


def _race_precisions(case: Case, seconds: float) -> Times:
    timers = {precision: _make_timer(case, precision) for precision in ("float32", "bfloat16")}
    for timer in timers.values():
        timer.tune()
    return race({precision: timer.time_batch for precision, timer in timers.items()}, seconds=seconds)


def _make_timer(case: Case, precision: Any) -> StepTimer:
    run = RunConfig(
        data=DataConfig(train=(LinesConfig(source="-"),), batch_tokens=case.tokens, max_length=512),
        model=codec.preset(case.preset),
        train=TrainingConfig(
            steps=1,
            step_tokens=case.tokens,
            schedule=ConstantConfig(lr=1e-3),
            precision=precision,
            label_smoothing=0.1,
        ),
        device=DeviceConfig(name="cpu", threads=1),
    )
    return StepTimer(run, find_task(run.model.task).synthetic_batch(run, case.tokens // case.length, case.length))


if __name__ == "__main__":
    main()
