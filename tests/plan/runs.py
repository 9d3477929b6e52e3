"""Run settings for the tests of plans: small models, no corpus."""

from collections import Counter
from typing import Any

from regard.config.codec import RUN_FILES
from regard.config.devices import DEVICES
from regard.config.run import RunConfig
from regard.plan.forecast import Forecast, make_forecast
from regard.plan.simulate import Simulation
from regard.training.distributed.layout import ParallelLayout

SMALL: dict[str, Any] = {
    "data": {"train": [{"kind": "documents", "path": "text.txt"}], "batch_tokens": 512, "max_length": 64},
    "tokenizer": {"kind": "byte"},
    "model": {
        "preset": "llama",
        "d_model": 64,
        "tokens": {"kind": "tokens", "vocabulary": 1000},
        "decoder": {
            "layers": 2,
            "attention": {"heads": 4, "key_value_heads": 2},
            "feedforward": {"kind": "gated", "d_ff": 128, "activation": "silu"},
        },
    },
    "train": {"steps": 100, "step_tokens": 512, "schedule": {"kind": "constant", "lr": 0.001}},
    "device": {"name": "cpu", "threads": 1, "attention": "autocast", "logit_rows": 64},
}


def make_run(**changes: Any) -> RunConfig:
    """Return the settings of a small language model; `__` in names stands for a dot."""
    return RUN_FILES.parse(SMALL, {name.replace("__", "."): value for name, value in changes.items()})


def forecast_run(run: RunConfig, layout: ParallelLayout, memory: int) -> Forecast:
    """Return the forecast of a step that needs a million bytes, on a device of the table."""
    simulation = Simulation(400_000, 800_000, 0, 150_000, 1_000_000, Counter(), 20)
    device = DEVICES["h100"]
    return make_forecast(run, layout, simulation, name="", settings={}, length=64, device=device, memory=memory)
