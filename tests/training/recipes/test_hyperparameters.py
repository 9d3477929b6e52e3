"""Hyperparameters that follow from the corpus and the model."""

from collections.abc import Callable

import pytest

from regard.base.formatting import format_count
from regard.config.sources import LinesConfig
from regard.config.training import AdamConfig, InverseSqrtConfig, LinearConfig, MuonConfig
from regard.tasks.recipes.translation import TRANSLATION
from regard.training.recipes.configure import configure
from regard.training.recipes.hyperparameters import (
    MUON_PEAK,
    Budget,
    training_settings,
    validation_settings,
)
from tests.training.recipes.factories import count_parameters, find_reason, make_timer


def test_overridden_settings_are_not_reported_as_chosen(pairs: Callable[[int], LinesConfig]) -> None:
    changes = {
        "train.schedule": {"kind": "constant", "lr": 1e-3},
        "model.encoder.dropout.sublayer": 0.0,
        "model.encoder.layers": 1,
        "train.step_tokens": 1024,
        "train.steps": 70,
        "data.batch_tokens": 512,
        "tokenizer.dropout": 0.1,
    }
    default, auto_run = configure(pairs(600)), configure(pairs(600), changes=changes)
    assert find_reason(auto_run, "Learning rate") == "Learning rate: set by you (train.schedule)."
    assert find_reason(auto_run, "Dropout") == "Dropout: set by you (model.encoder.dropout.sublayer)."
    assert find_reason(auto_run, "Steps").startswith("Steps: 70 of 1,024 tokens")
    assert f"every {auto_run.run.validation.every_steps} steps" in find_reason(auto_run, "Validation:")
    assert f"({format_count(count_parameters(auto_run))} parameters)" in auto_run.reasons[0]
    assert count_parameters(auto_run) < 0.9 * count_parameters(default)
    assert find_reason(auto_run, "Vocabulary") == find_reason(default, "Vocabulary")


def test_a_vocabulary_of_ones_own_counts(pairs: Callable[[int], LinesConfig]) -> None:
    default, auto_run = configure(pairs(600)), configure(pairs(600), changes={"tokenizer.vocabulary": 9000})
    assert find_reason(auto_run, "Vocabulary") == "Vocabulary: set by you (tokenizer.vocabulary)."
    assert f"({format_count(count_parameters(auto_run))} parameters)" in auto_run.reasons[0]
    assert count_parameters(auto_run) == count_parameters(default) + 8000 * 128
    assert auto_run.typical_length < default.typical_length  # larger subwords, fewer tokens


def test_the_learning_rate_fits_steps_of_another_size(pairs: Callable[[int], LinesConfig]) -> None:
    default, auto_run = configure(pairs(600)), configure(pairs(600), changes={"train.step_tokens": 1024})
    assert auto_run.run.train.steps == pytest.approx(2 * default.run.train.steps, rel=0.1)  # as many epochs
    assert isinstance(default.run.train.schedule, InverseSqrtConfig)
    assert isinstance(auto_run.run.train.schedule, InverseSqrtConfig)
    assert auto_run.run.train.schedule.lr == pytest.approx(default.run.train.schedule.lr / 2**0.5, rel=0.03)


def test_the_warm_up_follows_the_steps_that_were_asked_for(pairs: Callable[[int], LinesConfig]) -> None:
    auto_run = configure(pairs(600), steps=100)
    assert auto_run.run.train.steps == 100
    assert auto_run.run.train.schedule.warmup == 25
    assert auto_run.run.validation.every_steps == 3
    assert "as you requested" in find_reason(auto_run, "Steps:")
    assert configure(pairs(600), changes={"train.steps": 100}).run == auto_run.run


def test_a_small_translator_with_little_time_is_trained_by_muon(pairs: Callable[[int], LinesConfig]) -> None:
    corpus, timer = pairs(600), make_timer(5.0)
    short_run = configure(corpus, minutes=1, timer=timer)
    assert short_run.run.train.optimizer == MuonConfig()
    assert isinstance(short_run.run.train.schedule, LinearConfig)
    assert short_run.run.train.schedule.lr == MUON_PEAK
    assert "Muon" in find_reason(short_run, "Optimizer:")
    for changes in ({"train.optimizer.kind": "adam"}, {"train.optimizer": {"kind": "adam"}}):
        run = configure(corpus, minutes=1, timer=timer, changes=changes).run
        assert isinstance(run.train.optimizer, AdamConfig)
        assert isinstance(run.train.schedule, LinearConfig)
        assert run.train.schedule.lr < MUON_PEAK  # a learning rate of Adam
    assert isinstance(configure(corpus, minutes=1000, timer=make_timer(0.1)).run.train.optimizer, AdamConfig)


def test_long_runs_are_validated_about_thirty_times() -> None:
    size = TRANSLATION.for_size(29_000)
    for steps in (1, 2, 10, 63, 64, 500, 8_000, 123_456):
        interval = validation_settings(TRANSLATION, Budget(steps, 8192), 1000, {}, []).every_steps
        assert 1 <= interval <= steps
        assert steps < 64 or 20 <= steps / interval <= 64
        assert training_settings(TRANSLATION, size, Budget(steps, 8192), False, []).save_every == interval
