"""Forecasts, the device table and the choice among layouts."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.config.run import RunConfig
from regard.plan.compare import _choose, make_plan
from regard.plan.devices import DEVICES, find_device
from regard.plan.forecast import Forecast, count_batches, count_start_bytes, make_forecast, sent_bytes
from regard.plan.layouts import list_candidates, make_candidate
from regard.plan.probe import probe
from regard.plan.simulate import Simulation
from regard.plan.tracker import Collective
from regard.training.distributed.layout import Layout
from tests.plan.runs import make_run


def test_every_figure_of_a_device_has_a_source() -> None:
    for device in DEVICES.values():
        assert {"memory, bandwidth, FLOPs, NVLink", "network", "MFU", "price"} == set(device.sources)
        assert all(
            "http" in source or "data sheet" in source or "same page" in source for source in device.sources.values()
        )
        assert device.peak_flops.keys() == {"float32", "bfloat16", "float16"}


def test_unknown_device_is_refused_with_a_suggestion() -> None:
    with pytest.raises(RegardError, match="h100"):
        find_device("h10")


@pytest.mark.parametrize(
    ("kind", "sent"), [("all_gather", 300), ("reduce_scatter", 300), ("all_reduce", 600), ("broadcast", 400)]
)
def test_bytes_on_the_wire(kind: str, sent: int) -> None:
    assert sent_bytes(Collective(kind, 400, ranks=4, span=4)) == sent


def test_gloo_sends_reductions_twice() -> None:
    assert sent_bytes(Collective("reduce_scatter", 400, ranks=4, span=4), is_gloo=True) == 600


def test_batches_of_an_update_are_shared() -> None:
    run = make_run(train__update_tokens=5 * 512)
    assert [count_batches(run, Layout(shards=ranks)) for ranks in (1, 2, 4, 8)] == [5, 3, 2, 1]


def test_layouts_have_their_settings_and_refusals_their_reason() -> None:
    run = make_run(train__update_tokens=16 * 512)
    candidates = {candidate.name: candidate for candidate in list_candidates(run, 16, 8)}
    assert candidates["hsdp=8"].layout == Layout(replicas=2, shards=8)
    assert candidates["fsdp+tensor=2"].layout == Layout(shards=8, tensor=2)
    assert candidates["fsdp+tensor=8"].layout is None
    assert "4 query heads" in candidates["fsdp+tensor=8"].refusal
    chosen = make_run(train__update_tokens=16 * 512, parallel__mode="fsdp", parallel__replicas=2)
    assert [(each.name, each.layout) for each in list_candidates(chosen, 16, 8)] == [("hsdp=8", Layout(2, 8))]
    with pytest.raises(RegardError, match="no parallelism"):
        make_candidate(run, "magic", 16, 8)
    with pytest.raises(RegardError, match="16 ranks do not divide into replicas of 3 shards"):
        make_candidate(run, "hsdp=3", 16, 8)
    few = make_candidate(make_run(train__update_tokens=8 * 512), "ddp", 16, 8)
    assert few.layout is None
    assert "An update has 8 batches" in few.refusal
    tensor = make_run(train__update_tokens=run.train.update_tokens, parallel__tensor=2)
    assert [each.name for each in list_candidates(tensor, 16, 8)] == ["fsdp+tensor=2"]


def test_plan_chooses_what_fits_and_says_why() -> None:
    run = make_run(train__precision="bfloat16", train__update_tokens=16 * 512)
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
    assert nothing.reasons[0].startswith("Nothing fits")
    assert [forecast.has_checkpointed_activations for forecast in nothing.forecasts] == [False, True, False, True]


def forecast_run(run: RunConfig, layout: Layout, memory: int) -> Forecast:
    """Return the forecast of an update that needs a million bytes, on a device of the table."""
    simulation = Simulation(400_000, 800_000, 0, 150_000, 1_000_000, Counter(), 20)
    device = DEVICES["h100"]
    return make_forecast(run, layout, simulation, name="", settings={}, length=64, device=device, memory=memory)


def test_forecast_leaves_a_tenth_of_device_memory_free() -> None:
    memories = (1_000_000, 1_100_000, 1_112_000)
    assert [forecast_run(make_run(), Layout(), memory).fits for memory in memories] == [False, False, True]


def test_plan_chooses_the_fastest_layout_that_fits() -> None:
    simple, sharded = (forecast_run(make_run(), layout, 10**7) for layout in (Layout(2), Layout(shards=2)))
    slow, fast = replace(simple, seconds=(1.0, 2.0)), replace(sharded, seconds=(0.5, 1.0))
    assert _choose([slow, fast]) is fast
    assert _choose([slow, replace(fast, memory=0)]) is slow
    similar = replace(slow, seconds=(0.501, 1.001))
    assert _choose([fast, similar]) is similar, "of equally fast layouts the simpler one"


def test_checkpoint_bytes_count_the_moving_average() -> None:
    plain, averaged = (forecast_run(make_run(train__ema=ema), Layout(), 10**7) for ema in (0.0, 0.9))
    assert averaged.checkpoint_bytes - plain.checkpoint_bytes == 4 * plain.parameters


def test_probe_measures_this_machine() -> None:
    measured = probe(make_run(), rows=2, length=16)
    assert measured.step > 0
    assert 0 < measured.batch < 60


def test_the_peak_of_tuning_is_at_least_that_of_its_start() -> None:
    """A run that trains few parameters of a large model needs most memory when it copies the parent's weights."""
    tuning: dict[str, Any] = {"tuning__parent": "parent", "tuning__lora": {"rank": 2}, "tokenizer": {"kind": "parent"}}
    large = make_run(model__width=512, model__tokens__vocabulary=100_000, data__batch_tokens=64, **tuning)
    plan = make_plan(large, [make_candidate(large, "ddp", 1, 1)], length=64, memory=10**10)
    (forecast,) = plan.forecasts
    assert forecast.simulation.peak < forecast.start_bytes == forecast.peak == 2 * 4 * forecast.parameters
    assert any("The peak is that of the start" in reason for reason in plan.reasons)
    on_device = make_plan(large, [make_candidate(large, "ddp", 1, 1)], length=64, memory=10**10, device=DEVICES["a100"])
    assert on_device.forecasts[0].peak == on_device.forecasts[0].simulation.peak  # it starts in main memory
    assert count_start_bytes(make_run()) == 0
