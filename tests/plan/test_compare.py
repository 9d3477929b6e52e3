"""The choice of a layout."""

from dataclasses import replace

import pytest

from regard.config.devices import DEVICES
from regard.plan.compare import _choose, make_plan
from regard.plan.layouts import make_candidate
from regard.training.distributed.layout import ParallelLayout
from tests.plan.runs import forecast_run, make_run


def test_plan_chooses_what_fits_and_says_why() -> None:
    run = make_run(train__precision="bfloat16", train__step_tokens=16 * 512)
    device = DEVICES["h100"]
    candidates = [make_candidate(run, name, 16, 8) for name in ("ddp", "fsdp")]
    plan = make_plan(run, candidates, length=64, memory=device.memory, device=device)
    assert plan.choice is not None
    assert plan.choice.fits
    assert plan.choice.hours is not None
    assert plan.choice.cost is not None
    assert plan.choice.hours[0] < plan.choice.hours[1]
    assert plan.choice.cost[1] == pytest.approx(plan.choice.hours[1] * 16 * 5.0)
    assert any("is the cheapest that fits" in reason for reason in plan.reasons)
    smallest = min(forecast.peak for forecast in plan.forecasts)
    nothing = make_plan(run, candidates, length=64, memory=smallest // 4, device=device)
    assert nothing.choice is None
    assert nothing.reasons[0].startswith("No layout fits")
    assert [forecast.has_checkpointed_activations for forecast in nothing.forecasts] == [False, True, False, True]


def test_plan_chooses_the_fastest_layout_that_fits() -> None:
    simple, sharded = (
        forecast_run(make_run(), layout, 10**7) for layout in (ParallelLayout(2), ParallelLayout(shards=2))
    )
    slow, fast = replace(simple, seconds=(1.0, 2.0)), replace(sharded, seconds=(0.5, 1.0))
    assert _choose([slow, fast]) is fast
    assert _choose([slow, replace(fast, memory=0)]) is slow
    similar = replace(slow, seconds=(0.501, 1.001))
    assert _choose([fast, similar]) is similar, "of equally fast layouts the simpler one"
