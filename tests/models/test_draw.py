"""Initial weights do not depend on how they are sharded."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.config.codec import preset
from regard.models.build import build
from regard.models.draw import CHUNK, WeightSource
from regard.models.init import init_weights
from regard.store.weights import get_weights

SHAPE = (7, CHUNK // 3)  # parts begin and end inside a chunk of random numbers
SETTINGS: list[dict[str, Any]] = [{}, {"initial.kind": "xavier"}, {"initial.kind": "scaled_residual"}]


def fill(kind: str, is_keyed: bool, rows: slice = slice(None), columns: slice = slice(None)) -> list[Tensor]:
    """Fill parts of two parameters, as a rank that holds only these rows and columns does."""

    def locate(weight: Tensor) -> tuple[Tensor, Tensor]:
        return weight[rows, columns], torch.empty(weight.shape, device="meta")[rows, columns]

    source = WeightSource(3, torch.device("cpu"), locate, is_keyed=is_keyed)
    weights = [torch.full(SHAPE, float("nan")) for _ in range(2)]
    for weight in weights:
        (source.fill_normal if kind == "normal" else source.fill_uniform)(weight, 0.5)
    return weights


@pytest.mark.parametrize("kind", ["normal", "uniform"])
@pytest.mark.parametrize("is_keyed", [True, False])
def test_shards_together_equal_the_full_weights(kind: str, is_keyed: bool) -> None:
    whole = fill(kind, is_keyed)
    for rows, columns in ([1, 2, 3, 5, 7], [SHAPE[1]]), ([7], [1, 17, SHAPE[1]]), ([4, 7], [1000, SHAPE[1]]):
        union = [torch.full(SHAPE, float("nan")) for _ in whole]
        for row, column in product(range(len(rows)), range(len(columns))):
            part = (
                slice(rows[row - 1] if row else 0, rows[row]),
                slice(columns[column - 1] if column else 0, columns[column]),
            )
            for full, filled in zip(union, fill(kind, is_keyed, *part), strict=True):
                assert int((~filled.isnan()).sum()) == filled[part].numel(), "a rank fills only its part"
                full[part] = filled[part]
        assert all(torch.equal(*pair) for pair in zip(union, whole, strict=True))
    assert not torch.equal(*whole), "parameters of the same shape differ"


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_rank_without_rows_fills_nothing(ranks: int) -> None:
    """A matrix may have fewer rows than there are ranks; the next parameter is drawn as on the others."""
    empty, whole = fill("normal", is_keyed=True, rows=slice(7, 7 + ranks)), fill("normal", is_keyed=True)
    assert all(bool(weight.isnan().all()) for weight in empty)
    assert all(bool(weight.isfinite().all()) for weight in whole)


@pytest.mark.parametrize("changes", SETTINGS)
def test_large_models_draw_from_the_same_distributions(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = preset("tiny", changes)
    small: Any = build(config, seed=1)
    monkeypatch.setattr("regard.models.init.MAX_SEQUENTIAL", 0)
    large: Any = build(config, seed=1)
    for (name, expected), drawn in zip(get_weights(small).items(), get_weights(large).values(), strict=True):
        if expected.numel() < 1000:
            continue
        assert float(drawn.std()) == pytest.approx(float(expected.std()), rel=0.1), name
        assert abs(float(drawn.mean())) < 5 * float(drawn.std()) / drawn.numel() ** 0.5, name
    again: Any = build(config, seed=1)
    other: Any = build(config, seed=2)
    weights = [model.encoder.layers[0].attention.query.weight for model in (large, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_drawn_numbers_are_normal_and_independent() -> None:
    weights = torch.stack(fill("normal", is_keyed=True)).double() / 0.5
    flat = weights.flatten()
    count = flat.numel()
    for power, moment in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)):
        assert float((flat**power).mean()) == pytest.approx(moment, abs=5 * 96**0.5 / count**0.5)
    for lag in (1, 2, SHAPE[1]):
        assert abs(float((flat[lag:] * flat[:-lag]).mean())) < 5 / count**0.5
    assert abs(float((weights[0] * weights[1]).mean())) < 5 / (count / 2) ** 0.5


def test_threads_do_not_change_the_numbers() -> None:
    expected = fill("normal", is_keyed=True)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert torch.equal(fill("normal", is_keyed=True)[1], expected[1])
    finally:
        torch.set_num_threads(threads)


def test_word_vectors_without_layers_support_scaled_residuals() -> None:
    config = preset("word2vec", {"initial": {"kind": "scaled_residual"}})
    model = build(config, seed=0)
    init_weights(model, config, seed=0)
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())
