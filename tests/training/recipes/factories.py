"""Helpers that several tests of recipes use."""

from collections.abc import Callable

from regard.config.model import EncoderDecoderConfig
from regard.config.run import RunConfig
from regard.models.cost import cost
from regard.training.recipes.apply import AutoRun

WORDS = ["man", "woman", "dog", "cat", "house", "tree", "runs", "sits", "reads", "near", "under", "with", "old"]


def find_reason(auto_run: AutoRun, prefix: str) -> str:
    matches = [line for line in auto_run.reasons if line.startswith(prefix)]
    assert len(matches) == 1, auto_run.reasons
    return matches[0]


def count_parameters(auto_run: AutoRun) -> int:
    return int(cost(auto_run.run.model, batch_size=1, source=1, target=1).parameters.total())


def translation_model(auto_run: AutoRun) -> EncoderDecoderConfig:
    assert isinstance(auto_run.run.model, EncoderDecoderConfig)
    return auto_run.run.model


def make_timer(seconds: float) -> Callable[[RunConfig, int], float]:
    """Return a fake timer: `seconds` for a step of 2,048 tokens at width 128, scaled for other sizes."""
    return lambda run, _: seconds * run.train.step_tokens / 2048 * run.model.d_model / 128
