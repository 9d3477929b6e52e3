"""Learning rates: values computed by hand, edge cases, and no dependence on where a run is resumed."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.config.training import (
    ConstantConfig,
    CosineConfig,
    InverseSqrtConfig,
    LinearConfig,
    NoamConfig,
    ScheduleConfig,
)
from regard.training.schedule import learning_rate

STEPS = 100
KINDS: list[ScheduleConfig] = [
    InverseSqrtConfig(lr=2.0, warmup=10),
    NoamConfig(factor=2.0, warmup=10),
    CosineConfig(lr=2.0, warmup=10, end=0.1),
    LinearConfig(lr=2.0, warmup=10, end=0.1),
    ConstantConfig(lr=2.0, warmup=10),
]


def learning_rates(schedule: ScheduleConfig, steps: int = STEPS) -> list[float]:
    return [learning_rate(schedule, step, steps=steps, d_model=64) for step in range(1, steps + 1)]


@pytest.mark.parametrize("schedule", KINDS, ids=lambda schedule: schedule.kind)
def test_rises_straight_to_the_peak(schedule: ScheduleConfig) -> None:
    peak = 2 / math.sqrt(64 * 10) if isinstance(schedule, NoamConfig) else 2.0
    values = learning_rates(schedule)
    assert values[:10] == pytest.approx([peak * step / 10 for step in range(1, 11)])
    assert max(values) == pytest.approx(peak)
    assert all(later <= earlier for earlier, later in itertools.pairwise(values[9:]))


def test_what_comes_after_the_peak() -> None:
    steps = [10, 11, 40, 55, 80, 90, 100]
    expected = {
        "inverse_sqrt": [2.0 * math.sqrt(10 / step) for step in steps],
        "noam": [2.0 * 64**-0.5 * step**-0.5 for step in steps],
        "cosine": [0.2 + 0.9 * (1 + math.cos(math.pi * (step - 10) / 90)) for step in steps],
        "linear": [2.0 - 1.8 * (step - 10) / 90 for step in steps],
        "constant": [2.0] * len(steps),
    }
    for schedule in KINDS:
        actual = [learning_rates(schedule)[step - 1] for step in steps]
        assert actual == pytest.approx(expected[schedule.kind]), schedule.kind


def test_noam_is_the_papers_formula_for_the_base_model() -> None:
    value = learning_rate(NoamConfig(), 4000, steps=100_000, d_model=512)
    assert value == pytest.approx(512**-0.5 * 4000**-0.5)  # 0.0007
    assert learning_rate(NoamConfig(), 1, steps=100_000, d_model=512) == pytest.approx(value / 4000)


@pytest.mark.parametrize("schedule", KINDS[2:], ids=lambda schedule: schedule.kind)
def test_without_warmup_the_first_step_has_the_peak(schedule: ScheduleConfig) -> None:
    schedule = schedule.model_copy(update={"warmup": 0})
    assert learning_rates(schedule)[0] == 2.0
    assert learning_rates(schedule, steps=1) == [2.0]


def test_the_last_step_has_the_end_and_what_is_beyond_stays_there() -> None:
    for schedule in KINDS[2:4]:
        assert learning_rates(schedule)[-1] == pytest.approx(0.2)
        assert learning_rate(schedule, STEPS + 7, steps=STEPS, d_model=64) == pytest.approx(0.2)
    assert learning_rates(LinearConfig(lr=1.0))[-1] == 0.0


def test_run_shorter_than_warmup_only_rises() -> None:
    for schedule in (CosineConfig(lr=1.0, warmup=50), LinearConfig(lr=1.0, warmup=50)):
        assert learning_rates(schedule, steps=5) == pytest.approx([step / 50 for step in range(1, 6)])


@given(
    schedule=st.sampled_from(KINDS),
    warmup=st.integers(1, 50),
    steps=st.integers(1, 60),
    step=st.integers(1, 60),
)
def test_learning_rates_are_finite_positive_before_the_end_and_below_the_peak(
    schedule: ScheduleConfig, warmup: int, steps: int, step: int
) -> None:
    value = learning_rate(schedule.model_copy(update={"warmup": warmup}), step, steps=steps, d_model=64)
    assert 0 < value <= 2.0


def test_there_is_no_step_0() -> None:
    with pytest.raises(RegardError, match="no step 0"):
        learning_rate(ConstantConfig(lr=1.0), 0, steps=5, d_model=8)
