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

UPDATES = 100
KINDS: list[ScheduleConfig] = [
    InverseSqrtConfig(peak=2.0, warmup=10),
    NoamConfig(factor=2.0, warmup=10),
    CosineConfig(peak=2.0, warmup=10, end=0.1),
    LinearConfig(peak=2.0, warmup=10, end=0.1),
    ConstantConfig(peak=2.0, warmup=10),
]


def learning_rates(schedule: ScheduleConfig, updates: int = UPDATES) -> list[float]:
    return [learning_rate(schedule, update, updates=updates, width=64) for update in range(1, updates + 1)]


@pytest.mark.parametrize("schedule", KINDS, ids=lambda schedule: schedule.kind)
def test_rises_straight_to_the_peak(schedule: ScheduleConfig) -> None:
    peak = 2 / math.sqrt(64 * 10) if isinstance(schedule, NoamConfig) else 2.0
    values = learning_rates(schedule)
    assert values[:10] == pytest.approx([peak * update / 10 for update in range(1, 11)])
    assert max(values) == pytest.approx(peak)
    assert all(later <= earlier for earlier, later in itertools.pairwise(values[9:]))


def test_what_comes_after_the_peak() -> None:
    updates = [10, 11, 40, 55, 80, 90, 100]
    expected = {
        "inverse_sqrt": [2.0 * math.sqrt(10 / update) for update in updates],
        "noam": [2.0 * 64**-0.5 * update**-0.5 for update in updates],
        "cosine": [0.2 + 0.9 * (1 + math.cos(math.pi * (update - 10) / 90)) for update in updates],
        "linear": [2.0 - 1.8 * (update - 10) / 90 for update in updates],
        "constant": [2.0] * len(updates),
    }
    for schedule in KINDS:
        actual = [learning_rates(schedule)[update - 1] for update in updates]
        assert actual == pytest.approx(expected[schedule.kind]), schedule.kind


def test_noam_is_the_papers_formula_for_the_base_model() -> None:
    value = learning_rate(NoamConfig(), 4000, updates=100_000, width=512)
    assert value == pytest.approx(512**-0.5 * 4000**-0.5)  # 0.0007
    assert learning_rate(NoamConfig(), 1, updates=100_000, width=512) == pytest.approx(value / 4000)


@pytest.mark.parametrize("schedule", KINDS[2:], ids=lambda schedule: schedule.kind)
def test_without_warmup_the_first_update_has_the_peak(schedule: ScheduleConfig) -> None:
    schedule = schedule.model_copy(update={"warmup": 0})
    assert learning_rates(schedule)[0] == 2.0
    assert learning_rates(schedule, updates=1) == [2.0]


def test_the_last_update_has_the_end_and_what_is_beyond_stays_there() -> None:
    for schedule in KINDS[2:4]:
        assert learning_rates(schedule)[-1] == pytest.approx(0.2)
        assert learning_rate(schedule, UPDATES + 7, updates=UPDATES, width=64) == pytest.approx(0.2)
    assert learning_rates(LinearConfig(peak=1.0))[-1] == 0.0


def test_run_shorter_than_warmup_only_rises() -> None:
    for schedule in (CosineConfig(peak=1.0, warmup=50), LinearConfig(peak=1.0, warmup=50)):
        assert learning_rates(schedule, updates=5) == pytest.approx([update / 50 for update in range(1, 6)])


@given(
    schedule=st.sampled_from(KINDS),
    warmup=st.integers(1, 50),
    updates=st.integers(1, 60),
    update=st.integers(1, 60),
)
def test_learning_rates_are_finite_positive_before_the_end_and_below_the_peak(
    schedule: ScheduleConfig, warmup: int, updates: int, update: int
) -> None:
    value = learning_rate(schedule.model_copy(update={"warmup": warmup}), update, updates=updates, width=64)
    assert 0 < value <= 2.0


def test_there_is_no_update_0() -> None:
    with pytest.raises(RegardError, match="no update 0"):
        learning_rate(ConstantConfig(peak=1.0), 0, updates=5, width=8)
