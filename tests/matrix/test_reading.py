"""Padding says nothing, recorded weights explain the output, and the explicit path equals the fused one."""

import pytest
import torch
from torch import Tensor

from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.nn import attention
from regard.nn.attend import Sight, explicit
from regard.nn.record import Record
from regard.nn.scores import Score
from tests.matrix.models import LAYERS, Choice, make, name, sample, words

CLOSE = 3e-5
ROWS, SOURCE, TARGET = 3, 8, 6
LENGTHS = [8, 3, 5]
REAL = torch.arange(SOURCE) < torch.tensor(LENGTHS)[:, None]  # (B, S)

everything = pytest.mark.parametrize("choice", sample(), ids=name)
readers = pytest.mark.parametrize("choice", [c for c in sample() if c["family"] != "decoder_only"], ids=name)


def run(choice: Choice, source: Tensor, real: Tensor | None, target: Tensor, record: Record | None = None) -> Tensor:
    model = make(choice)
    if isinstance(model, EncoderDecoder):
        return model(source, target, real, record=record)
    if isinstance(model, EncoderOnly):
        return model(source, real, record=record)
    return model(source, record=record)


@readers
@torch.no_grad()
def test_a_row_in_a_padded_batch_equals_the_row_alone(choice: Choice) -> None:
    source, target = words(ROWS, SOURCE, seed=3), words(ROWS, TARGET, seed=4)
    together = run(choice, source, REAL, target)
    for row, length in enumerate(LENGTHS):
        alone = run(choice, source[row : row + 1, :length], None, target[row : row + 1])[0]
        torch.testing.assert_close(together[row, : alone.size(0)], alone, atol=CLOSE, rtol=0)


@everything
@torch.no_grad()
def test_other_padding_changes_real_tokens_by_exactly_nothing(choice: Choice) -> None:
    source, target = words(ROWS, SOURCE, seed=3), words(ROWS, TARGET, seed=4)
    padded = torch.where(REAL, source, (source + 5) % 23)
    real = None if choice["family"] == "decoder_only" else REAL  # right padding lies in a decoder's future
    before, after = run(choice, source, real, target), run(choice, padded, real, target)
    if choice["family"] == "encoder_decoder":
        assert torch.equal(before, after)
    else:
        assert torch.equal(before[REAL], after[REAL])
        assert not torch.equal(before[~REAL], after[~REAL])


@everything
@torch.no_grad()
def test_weights_recomputed_from_the_record_reproduce_the_output(choice: Choice) -> None:
    record = Record()
    source, target = words(ROWS, SOURCE, seed=3), words(ROWS, TARGET, seed=4)
    seen = run(choice, source, REAL, target, record)
    assert torch.equal(seen, run(choice, source, REAL, target))  # looking changes nothing
    kinds = {"encoder_decoder": 3, "decoder_only": 1, "encoder_only": 1}[choice["family"]]
    assert len(record.attention) == kinds * LAYERS
    assert len(record.residuals) == {1: 1 + 2 * LAYERS, 3: 2 + 5 * LAYERS}[kinds]
    for place, kept in record.attention.items():
        weights = record.weights(place)  # (B, H, T, S)
        groups = weights.size(1) // kept.value.size(1)
        output = weights @ kept.value.repeat_interleave(groups, dim=1)
        torch.testing.assert_close(output, kept.output, atol=CLOSE, rtol=0)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]), atol=CLOSE, rtol=0)


@everything
@torch.no_grad()
def test_the_explicit_path_equals_the_fused_one(choice: Choice, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = words(ROWS, SOURCE, seed=3), words(ROWS, TARGET, seed=4)
    quick = run(choice, source, REAL, target)
    calls = 0

    def plainly(query: Tensor, key: Tensor, value: Tensor, seen: Sight, scale: float, dropout: float) -> Tensor:
        nonlocal calls
        calls += 1
        return explicit(query, key, value, seen, Score(scale), dropout)[0]

    monkeypatch.setattr(attention, "fused", plainly)
    torch.testing.assert_close(run(choice, source, REAL, target), quick, atol=CLOSE, rtol=0)
    assert (calls == 0) == (choice["score"] in ("concat", "additive"))  # those two have no fused path


@everything
def test_every_parameter_learns(choice: Choice) -> None:
    """A gradient reaches every parameter, and none is NaN, even where a row of the source is empty."""
    model = make(choice)
    source, target = words(ROWS, SOURCE, seed=3), words(ROWS, TARGET, seed=4)
    nothing = REAL.clone()
    nothing[1] = False
    if isinstance(model, EncoderDecoder):
        output = model(source, target, nothing)
    elif isinstance(model, EncoderOnly):
        output = model(source, nothing)
    else:
        output = model(source)
    torch.nn.functional.cross_entropy(
        output.flatten(0, 1), torch.zeros(output[..., 0].numel(), dtype=torch.long)
    ).backward()
    for place, parameter in model.named_parameters():
        assert parameter.grad is not None, place
        assert parameter.grad.isfinite().all(), place
        assert parameter.grad.abs().sum() > 0 or place.endswith("key.bias"), place  # softmax ignores a constant
