"""The attention of a model while it reads a sentence."""

import math
import re
from pathlib import Path

import pytest

from regard.config.model import AnyModelConfig
from regard.lectures import sentence
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.tasks.factories import make_generator_settings, make_tokenizers, make_translator_settings

NUMBER = r"-?\d+\.\d\d"


def print_sentence(
    settings: AnyModelConfig, tmp_path: Path, attention: str | None = None, head: int = 0
) -> list[list[list[float]]]:
    """Return the numbers of the four tables of an untrained model."""
    model = tmp_path / "model"
    write_model(model, settings, make_tokenizers(), get_weights(build(settings, seed=1)), "card")
    text = "\n".join(sentence.show_sentence(model, "Two men are here.", attention, head))
    _, *tables = text.split("\n\n")
    return [
        [[float(number) for number in re.findall(NUMBER, line)] for line in table.splitlines()[2:]] for table in tables
    ]


def test_weights_are_the_softmax_of_the_scores(tmp_path: Path) -> None:
    settings = make_translator_settings()
    scores, weights, outputs, similarities = print_sentence(settings, tmp_path)
    assert len(scores) == len(weights) == len(outputs) == len(similarities) > 3
    for score_row, weight_row in zip(scores, weights, strict=True):
        assert len(score_row) == len(weight_row) == len(weights)
        exponentials = [math.exp(score) for score in score_row]
        expected = [exponential / sum(exponentials) for exponential in exponentials]
        assert weight_row == pytest.approx(expected, abs=0.02)  # both are rounded to two digits
    assert {len(row) for row in similarities} == {settings.encoder.layers}
    assert all(abs(value) <= 1 for row in similarities for value in row)


def test_a_decoder_has_no_weight_on_later_tokens(tmp_path: Path) -> None:
    _, weights, *_ = print_sentence(make_generator_settings(), tmp_path, head=1)
    assert weights[0][0] == 1
    for number, row in enumerate(weights):
        assert sum(row[number + 1 :]) == 0


def test_cross_attention_has_a_row_per_target_token(tmp_path: Path) -> None:
    settings = make_translator_settings()
    scores, weights, outputs, _ = print_sentence(settings, tmp_path, "decoder.0.cross")
    assert len(scores) == len(weights) == len(outputs)
    assert {len(row) for row in scores} == {len(weights[0])}
