"""Initial weights by name: their spread, their seeds, and that nothing is left undrawn."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from regard.config.codec import MODEL_FILES, preset
from regard.models.build import build
from regard.models.init import init_weights
from tests.matrix.models import make_settings, sample_choices

KINDS = ["xavier", "scaled_residual", "small_embedding"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_draws_the_same_weights(kind: str) -> None:
    config = preset("tiny", {"initial.kind": kind})
    first: Any = build(config, seed=1)
    second: Any = build(config, seed=1)
    reseeded: Any = build(config, seed=2)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(
        first.encoder.layers[0].attention.query.weight, reseeded.encoder.layers[0].attention.query.weight
    )
    torch.manual_seed(5)
    third = build(config)
    torch.manual_seed(5)
    assert torch.equal(next(third.parameters()), next(build(config).parameters()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("choice", sample_choices()[:12], ids=lambda choice: "-".join(choice.values()))
def test_every_parameter_is_initialised(kind: str, choice: dict[str, str]) -> None:
    config = MODEL_FILES.parse(make_settings(choice) | {"initial": {"kind": kind}})
    model = build(config, seed=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))
    init_weights(model, config, seed=0)
    for name, parameter in model.named_parameters():
        assert not parameter.isnan().any(), name


def test_a_model_assembled_on_meta_is_filled_later() -> None:
    config = preset("tiny")
    with torch.device("meta"):
        model = build(config)
    model = model.to_empty(device="cpu")
    init_weights(model, config, seed=3)
    for (name, ours), theirs in zip(model.named_parameters(), build(config, seed=3).parameters(), strict=True):
        assert torch.equal(ours, theirs), name


def standard_deviation(weight: torch.Tensor) -> float:
    return float(weight.detach().std())


def test_xavier_draws_each_projection_by_its_own_fans_and_keeps_torchs_biases() -> None:
    model: Any = build(preset("lecture", {"source.vocabulary": 100, "target.vocabulary": 100}), seed=0)
    layer = model.encoder.layers[0]
    for linear in (layer.attention.query, layer.attention.key, layer.feedforward.up, layer.feedforward.down):
        bound = math.sqrt(6 / (linear.in_features + linear.out_features))
        assert float(linear.weight.detach().abs().max()) <= bound
        assert standard_deviation(linear.weight) == pytest.approx(bound / math.sqrt(3), rel=0.02)
        assert standard_deviation(linear.bias) == pytest.approx(1 / math.sqrt(3 * linear.in_features), rel=0.1)
    assert standard_deviation(model.source.embedding.weight) == pytest.approx(math.sqrt(2 / (100 + 512)), rel=0.02)


def test_scaled_residual_divides_by_the_root_of_the_sublayers() -> None:
    changes = {"d_model": 256, "tokens.vocabulary": 500, "decoder.layers": 8, "decoder.attention.heads": 4}
    model: Any = build(preset("gpt2", changes), seed=0)
    layer = model.decoder.layers[3]
    assert standard_deviation(layer.attention.query.weight) == pytest.approx(0.02, rel=0.02)
    assert standard_deviation(layer.attention.output.weight) == pytest.approx(0.02 / math.sqrt(16), rel=0.02)
    assert standard_deviation(layer.feedforward.down.weight) == pytest.approx(0.02 / math.sqrt(16), rel=0.02)
    assert float(layer.feedforward.down.bias.detach().abs().max()) == 0


def test_small_embedding_gives_unit_variance_once_scaled() -> None:
    model: Any = build(preset("tiny"), seed=0)
    embedding = model.source.embedding
    assert isinstance(embedding, nn.Embedding)
    assert standard_deviation(embedding.weight) * math.sqrt(128) == pytest.approx(1, rel=0.02)


def test_each_stack_is_scaled_by_its_own_sublayers() -> None:
    changes = {"initial": {"kind": "scaled_residual"}, "encoder.layers": 12, "decoder.layers": 2}
    model: Any = build(preset("tiny", changes), seed=0)
    assert standard_deviation(model.encoder.layers[5].feedforward.down.weight) == pytest.approx(
        0.02 / math.sqrt(24), rel=0.03
    )
    assert standard_deviation(model.decoder.layers[1].cross.output.weight) == pytest.approx(
        0.02 / math.sqrt(6), rel=0.03
    )


def test_an_output_matrix_of_its_own_is_initialised_as_an_embedding() -> None:
    model: Any = build(preset("tiny", {"head.tied": False}), seed=0)
    assert standard_deviation(model.head.projection.weight) == pytest.approx(1 / math.sqrt(128), rel=0.02)
    assert not torch.equal(model.head.projection.weight, model.source.embedding.weight)
