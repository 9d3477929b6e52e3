"""Recipes for a limited time."""

import time
from collections.abc import Callable

import pytest

from regard.base.errors import RegardError
from regard.config.sources import LinesConfig
from regard.config.training import LinearConfig
from regard.training.recipes.configure import configure
from regard.training.recipes.minutes import MIN_TOKENS_PER_PARAMETER
from tests.training.recipes.factories import count_parameters, find_reason, make_timer, translation_model


def test_minutes_and_steps_contradict_each_other(pairs: Callable[[int], LinesConfig]) -> None:
    with pytest.raises(RegardError, match="Both minutes and"):
        configure(pairs(600), minutes=1, steps=100, timer=make_timer(0.5))


def test_minutes_shorten_a_run(pairs: Callable[[int], LinesConfig]) -> None:
    corpus = pairs(560)
    full_run = configure(corpus, minutes=1000, timer=make_timer(0.1))
    full_train = configure(corpus).run.train
    assert full_run.run.train == full_train.model_copy(update={"minutes": 1000.0, "max_steps": full_train.steps})
    assert "they fit into 1000 minutes" in find_reason(full_run, "Steps:")
    short_run = configure(corpus, minutes=1, timer=make_timer(0.5))
    assert short_run.run.train.steps == 118  # 59 of 60 seconds, half a second each
    assert short_run.run.train.minutes == 1
    assert short_run.run.train.max_steps == full_train.steps * full_train.step_tokens // 2048
    assert short_run.run.validation.sentences == 48  # two seconds per validation, half of them
    assert isinstance(short_run.run.train.schedule, LinearConfig)
    assert short_run.run.train.schedule.warmup == 11
    assert short_run.run.train.average == 1
    assert short_run.run.validation.patience == 0
    assert short_run.run.validation.every_steps == 40  # three in all
    assert short_run.run.validation.max_tokens is None  # there are few pairs
    assert translation_model(short_run).encoder.dropout.sublayer == 0.3  # at least 20 epochs
    assert "as many as fit into 1 minute here" in find_reason(short_run, "Steps:")


@pytest.mark.parametrize("minutes", [0.0, -1.0, float("nan"), float("inf")])
def test_minutes_must_be_some(pairs: Callable[[int], LinesConfig], minutes: float) -> None:
    with pytest.raises(RegardError, match="minutes must be more than 0"):
        configure(pairs(60), minutes=minutes, timer=make_timer(0.5))


def test_a_part_of_a_large_corpus_is_enough_for_a_larger_model(
    pairs: Callable[[int], LinesConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sees two tokens for each of its parameters, however few epochs that are."""
    monkeypatch.setattr("regard.training.recipes.minutes.MIN_EPOCHS", 10**6)
    corpus = pairs(12_000)
    short, longer = (configure(corpus, minutes=minutes, timer=make_timer(0.5)) for minutes in (8, 30))
    short_tokens, longer_tokens = (plan.run.train.steps * plan.run.train.step_tokens for plan in (short, longer))
    assert short_tokens < MIN_TOKENS_PER_PARAMETER * count_parameters(longer) <= longer_tokens
    assert [translation_model(plan).encoder.layers for plan in (short, longer)] == [2, 4]


def test_little_time_for_much_text(pairs: Callable[[int], LinesConfig]) -> None:
    corpus = pairs(12_000)
    auto_run = configure(corpus, minutes=10, timer=make_timer(4.0))
    assert "preset mini" in auto_run.reasons[0]
    assert "no time for tiny" in auto_run.reasons[0]
    assert auto_run.run.train.step_tokens == 2048
    assert auto_run.run.data.batch_tokens == 1024, "two batches per step"
    assert translation_model(auto_run).encoder.dropout.sublayer == 0.1
    requested = configure(corpus, minutes=10, timer=make_timer(4.0), preset="tiny")
    assert translation_model(requested).encoder.layers == 4
    with_time = configure(corpus, minutes=200, timer=make_timer(0.5))
    assert translation_model(with_time).encoder.layers == 4
    with pytest.raises(RegardError, match="minutes must be more than 0 and finite, got 0"):
        configure(corpus, minutes=0)


def test_time_that_has_passed_is_not_available(pairs: Callable[[int], LinesConfig]) -> None:
    corpus = pairs(560)
    before = configure(corpus, minutes=1, timer=make_timer(0.5)).run.train.steps
    after = configure(corpus, minutes=1, timer=make_timer(0.5), started=time.perf_counter() - 30).run.train.steps
    assert after <= before / 2
