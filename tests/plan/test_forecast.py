"""Forecasts, the device table and the choice among layouts."""

from typing import Any

import pytest

from regard.config.devices import DEVICES
from regard.plan.compare import make_plan
from regard.plan.forecast import count_batches, count_start_bytes, sent_bytes
from regard.plan.layouts import make_candidate
from regard.plan.tracker import Collective
from regard.training.distributed.layout import ParallelLayout
from tests.plan.runs import forecast_run, make_run


@pytest.mark.parametrize(
    ("kind", "sent"), [("all_gather", 300), ("reduce_scatter", 300), ("all_reduce", 600), ("broadcast", 400)]
)
def test_bytes_on_the_wire(kind: str, sent: int) -> None:
    assert sent_bytes(Collective(kind, 400, ranks=4, span=4)) == sent


def test_gloo_sends_reductions_twice() -> None:
    assert sent_bytes(Collective("reduce_scatter", 400, ranks=4, span=4), is_gloo=True) == 600


def test_batches_of_a_step_are_shared() -> None:
    run = make_run(train__step_tokens=5 * 512)
    assert [count_batches(run, ParallelLayout(shards=ranks)) for ranks in (1, 2, 4, 8)] == [5, 3, 2, 1]


def test_forecast_leaves_a_tenth_of_device_memory_free() -> None:
    memories = (1_000_000, 1_100_000, 1_112_000)
    assert [forecast_run(make_run(), ParallelLayout(), memory).fits for memory in memories] == [False, False, True]


def test_checkpoint_bytes_count_the_moving_average() -> None:
    plain, averaged = (forecast_run(make_run(train__ema=ema), ParallelLayout(), 10**7) for ema in (0.0, 0.9))
    assert averaged.checkpoint_bytes - plain.checkpoint_bytes == 4 * plain.parameters


def test_the_peak_of_tuning_is_at_least_that_of_its_start() -> None:
    """A run that trains few parameters of a large model needs most memory when it copies the parent's weights."""
    finetune: dict[str, Any] = {
        "finetune__parent": "parent",
        "finetune__lora": {"rank": 2},
        "tokenizer": {"kind": "parent"},
    }
    large = make_run(model__d_model=512, model__tokens__vocabulary=100_000, data__batch_tokens=64, **finetune)
    plan = make_plan(large, [make_candidate(large, "ddp", 1, 1)], length=64, memory=10**10)
    (forecast,) = plan.forecasts
    assert forecast.simulation.peak < forecast.start_bytes == forecast.peak == 2 * 4 * forecast.parameters
    assert any("Memory peaks at startup" in reason for reason in plan.reasons)
    on_device = make_plan(large, [make_candidate(large, "ddp", 1, 1)], length=64, memory=10**10, device=DEVICES["a100"])
    assert on_device.forecasts[0].peak == on_device.forecasts[0].simulation.peak  # it starts in main memory
    assert count_start_bytes(make_run()) == 0
