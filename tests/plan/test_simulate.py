"""One simulated step against arithmetic, and against a real step in this process."""

from collections import Counter
from functools import cache
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.config.run import RunConfig
from regard.plan.simulate import FULL_LAYERS, SHORT_LAYERS, Simulation, simulate
from regard.store.size_check import count_parameters
from regard.training.distributed.layout import ParallelLayout
from tests.plan.runs import make_run

ROWS, LENGTH = 8, 64


@cache
def simulate_unchanged(layout: ParallelLayout) -> Simulation:
    """Simulate the small run as it is, once: several tests compare with it."""
    return simulate(make_run(), layout, rows=ROWS, length=LENGTH)


def simulate_small(layout: ParallelLayout, batches: int = 1, **changes: object) -> Simulation:
    if batches == 1 and not changes:
        return simulate_unchanged(layout)
    return simulate(make_run(**changes), layout, rows=ROWS, length=LENGTH, batches=batches)


def count_calls(simulation: Simulation) -> Counter[str]:
    calls: Counter[str] = Counter()
    for collective, count in simulation.collectives.items():
        if collective.size > 64:  # sums of token counts and gradient norms are smaller
            calls[collective.kind] += count
    return calls


def test_one_process() -> None:
    simulation = simulate_small(ParallelLayout())
    parameters = count_parameters(make_run().model)
    assert simulation.weights == 4 * parameters
    steps = simulation.tensors // 4  # each tensor has exp_avg, exp_avg_sq and a step
    assert simulation.optimizer_state == 8 * parameters + 4 * steps
    assert not simulation.collectives
    assert simulation.peak > 4 * simulation.weights


def test_recomputed_activations_and_ema_change_memory() -> None:
    plain, recomputed = (
        simulate_small(ParallelLayout()),
        simulate_small(ParallelLayout(), train__checkpoint_activations=True),
    )
    assert recomputed.activations < plain.activations
    averaged = simulate_small(ParallelLayout(), train__ema=0.99)
    assert averaged.peak == plain.peak + plain.weights


def test_a_recurrent_model_is_refused() -> None:
    with pytest.raises(RegardError, match="cannot be simulated"):
        simulate_small(ParallelLayout(), model__decoder={"kind": "recurrent", "layers": 1})


def test_tuning_counts_only_what_is_trained() -> None:
    """Frozen weights have no gradient and no optimizer state, in one process and in several."""
    width, rank = 64, 4
    adapters = 2 * rank * (4 * width + 2 * (width + width // 2))  # of 2 layers: query, output, key and value
    lora: dict[str, Any] = {
        "finetune__parent": "parent",
        "finetune__lora": {"rank": rank},
        "tokenizer": {"kind": "parent"},
    }
    full, tuned = simulate_small(ParallelLayout()), simulate_small(ParallelLayout(), **lora)
    assert tuned.weights == full.weights + 4 * adapters
    assert tuned.optimizer_state == 8 * adapters + 4 * 16  # 2 factors of 4 projections of 2 layers have a step each
    assert tuned.peak < full.peak - full.optimizer_state * 0.9
    ranks = simulate_small(ParallelLayout(replicas=2), **lora)
    assert [call.size for call in ranks.collectives if call.size > 64] == [4 * adapters]


def test_fsdp_shards_states_and_gathers_layers() -> None:
    whole, sharded = simulate_small(ParallelLayout()), simulate_small(ParallelLayout(shards=2))
    assert sharded.weights == pytest.approx(whole.weights / 2, rel=0.01)
    assert sharded.optimizer_state == pytest.approx(whole.optimizer_state / 2, rel=0.01)
    # Two layers are gathered in both passes, the root once; each reduces its gradients once.
    assert count_calls(sharded) == {"all_gather": 5, "reduce_scatter": 3}


def test_matrices_of_layers_are_gathered_in_the_type_of_their_products() -> None:
    gathered, reduced = [], []
    for precision in ("float32", "bfloat16"):
        calls = simulate_small(ParallelLayout(shards=2), train__precision=precision).collectives
        sizes = sorted(call.size for call in calls.elements() if call.kind == "all_gather")
        gathered.append(sum(sizes) - sizes[-1])  # without the root: embedding and head, in float32
        reduced.append(sum(call.size for call in calls.elements() if call.kind == "reduce_scatter"))
    assert gathered[1] == pytest.approx(gathered[0] / 2, rel=0.01)
    assert reduced[0] == reduced[1], "gradients are summed in float32"


def test_accumulated_batches_gather_again_but_reduce_once() -> None:
    sharded = simulate_small(ParallelLayout(shards=2), batches=4)
    assert count_calls(sharded) == {"all_gather": 20, "reduce_scatter": 3}


def test_hsdp_reduces_twice() -> None:
    calls = count_calls(simulate_small(ParallelLayout(replicas=2, shards=2)))
    assert calls == {"all_gather": 5, "reduce_scatter": 3, "all_reduce": 3}


def test_ddp_keeps_whole_weights_and_a_buffer_of_gradients() -> None:
    whole, replica = simulate_small(ParallelLayout()), simulate_small(ParallelLayout(replicas=2))
    assert replica.weights == whole.weights
    assert whole.gradients_peak < replica.gradients_peak <= whole.gradients_peak + whole.weights
    sent = sum(call.size * count for call, count in replica.collectives.items() if call.size > 64)
    assert sent == whole.weights  # every gradient once


def test_tensor_parallelism_splits_layers() -> None:
    whole, split = simulate_small(ParallelLayout()), simulate_small(ParallelLayout(tensor=2))
    assert split.weights < 0.85 * whole.weights  # the embedding and the head, most of this model, stay whole
    # Each of the two layers: two sums forward; backward, the gradients to the input of q, k, v, up and gate.
    assert count_calls(split)["all_reduce"] == 14


def test_layers_are_extrapolated_exactly() -> None:
    run, layout = make_run(model__decoder__layers=8), ParallelLayout(shards=2)
    short, whole = (simulate(run, layout, rows=ROWS, length=LENGTH, max_layers=layers) for layers in (5, 8))
    assert SHORT_LAYERS[-1] < 8
    assert short.peak == pytest.approx(whole.peak, rel=0.01)
    assert short.collectives == whole.collectives
    assert short.weights == whole.weights


@pytest.mark.parametrize(
    ("crossing", "expected"),
    [(4, [3, 4, 5, 6, FULL_LAYERS]), (10, [3, 4, 5, FULL_LAYERS, 80])],
)
def test_layers_are_extrapolated_from_where_the_peak_stays(
    crossing: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few layers the peak is in the logits, with more in the backward pass, where it grows twice as fast."""
    simulated: list[int] = []

    def peak(count: int) -> int:
        return 1000 + 10 * count + 10 * max(0, count - crossing)

    def simulate_peak(run: RunConfig, *_: object) -> Simulation:
        count = run.model.decoder.layers  # type: ignore[union-attr]
        simulated.append(count)
        return Simulation(count, count, 0, peak(count), count, Counter(), count)

    monkeypatch.setattr("regard.plan.simulate._simulate", simulate_peak)
    run = make_run(model__decoder__layers=80)
    assert simulate(run, ParallelLayout(), rows=ROWS, length=LENGTH).gradients_peak == peak(80)
    assert simulated == expected


def test_masked_language_model_counts_only_masked_positions() -> None:
    model = {
        "preset": "bert",
        "d_model": 64,
        "source": {"kind": "tokens", "vocabulary": 20_000},
        "encoder": {"layers": 1, "attention": {"heads": 4}, "feedforward": {"kind": "plain", "d_ff": 128}},
    }
    run = make_run(model=model, device__logit_rows=0)
    simulation = simulate(run, ParallelLayout(), rows=ROWS, length=LENGTH)
    logits = 4 * ROWS * LENGTH * 20_000
    assert simulation.activations < 1.5 * logits  # all positions would need at least three times the logits
