"""Padding has no effect, recorded weights reproduce the output, and eager attention equals SDPA."""

import pytest
import torch
from torch import Tensor

from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.nn import attention
from regard.nn.attend import ResolvedMask, eager_attention
from regard.nn.record import Record
from regard.nn.scores import ScoreFunction
from tests.matrix.models import (
    Choice,
    choice_name,
    count_records,
    make_audio_model,
    make_model,
    random_tokens,
    sample_choices,
    share_model,
)

TOLERANCE = 3e-5
ROWS, SOURCE, TARGET = 3, 8, 6
LENGTHS = [8, 3, 5]
VALID = torch.arange(SOURCE) < torch.tensor(LENGTHS)[:, None]  # (B, S)

all_choices = pytest.mark.parametrize("choice", sample_choices(), ids=choice_name)
encoder_choices = pytest.mark.parametrize(
    "choice", [c for c in sample_choices() if c["family"] != "decoder_only"], ids=choice_name
)


def run(choice: Choice, source: Tensor, valid: Tensor | None, target: Tensor, record: Record | None = None) -> Tensor:
    model = share_model(choice)
    if isinstance(model, EncoderDecoder):
        return model(source, target, valid, record=record)
    if isinstance(model, EncoderOnly):
        return model(source, valid, record=record)
    return model(source, record=record)


@encoder_choices
@torch.no_grad()
def test_row_in_a_padded_batch_equals_the_row_alone(choice: Choice) -> None:
    source, target = random_tokens(ROWS, SOURCE, seed=3), random_tokens(ROWS, TARGET, seed=4)
    batched = run(choice, source, VALID, target)
    for row, length in enumerate(LENGTHS):
        alone = run(choice, source[row : row + 1, :length], None, target[row : row + 1])[0]
        torch.testing.assert_close(batched[row, : alone.size(0)], alone, atol=TOLERANCE, rtol=0)


@encoder_choices
@torch.no_grad()
def test_an_audio_clip_in_a_padded_batch_equals_the_audio_alone(choice: Choice) -> None:
    model = make_audio_model(choice)
    audio = torch.randn(ROWS, SOURCE, 5, generator=torch.Generator().manual_seed(3))
    target = random_tokens(ROWS, TARGET, seed=4)

    def read(audio: Tensor, valid: Tensor | None, target: Tensor) -> Tensor:
        if isinstance(model, EncoderDecoder):
            return model(audio, target, valid)
        assert isinstance(model, EncoderOnly)
        return model.hidden_states(audio, valid)[0]

    batched = read(audio, VALID, target)
    for row, length in enumerate(LENGTHS):
        alone = read(audio[row : row + 1, :length], None, target[row : row + 1])[0]
        torch.testing.assert_close(batched[row, : alone.size(0)], alone, atol=TOLERANCE, rtol=0)


@all_choices
@torch.no_grad()
def test_padding_content_does_not_change_valid_tokens(choice: Choice) -> None:
    source, target = random_tokens(ROWS, SOURCE, seed=3), random_tokens(ROWS, TARGET, seed=4)
    repadded = torch.where(VALID, source, (source + 5) % 23)
    valid = None if choice["family"] == "decoder_only" else VALID  # right padding lies in a decoder's future
    before, after = run(choice, source, valid, target), run(choice, repadded, valid, target)
    if choice["family"] == "encoder_decoder":
        assert torch.equal(before, after)
    else:
        assert torch.equal(before[VALID], after[VALID])
        runs_padding = "cell" not in choice or valid is None  # recurrent layers leave padding out
        assert torch.equal(before[~VALID], after[~VALID]) != runs_padding


@all_choices
@torch.no_grad()
def test_weights_recomputed_from_the_record_reproduce_the_output(choice: Choice) -> None:
    record = Record()
    source, target = random_tokens(ROWS, SOURCE, seed=3), random_tokens(ROWS, TARGET, seed=4)
    recorded_output = run(choice, source, VALID, target, record)
    assert torch.equal(recorded_output, run(choice, source, VALID, target))  # recording changes nothing
    assert (len(record.attention), len(record.residuals)) == count_records(choice)
    for name, entry in record.attention.items():
        weights = record.weights(name)  # (B, H, T, S)
        groups = weights.size(1) // entry.value.size(1)
        output = weights @ entry.value.repeat_interleave(groups, dim=1)
        torch.testing.assert_close(output, entry.output, atol=TOLERANCE, rtol=0)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]), atol=TOLERANCE, rtol=0)
        heads, rows = [weights.size(1) - 1, 0], [2, 0]
        selected = record.weights(name, heads, rows)  # (B, 2, 2, S)
        torch.testing.assert_close(selected, weights[:, heads][:, :, rows], atol=TOLERANCE, rtol=0)
        torch.testing.assert_close(record.recompute_output(name), entry.output, atol=TOLERANCE, rtol=0)
        selected_output = entry.output[:, heads][:, :, rows]
        torch.testing.assert_close(record.recompute_output(name, heads, rows), selected_output, atol=TOLERANCE, rtol=0)
        assert entry.mask.terms is not None
        assert entry.mask.terms.causal == (name.startswith("decoder") and name.endswith("self"))


@all_choices
@torch.no_grad()
def test_eager_attention_equals_sdpa(choice: Choice, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = random_tokens(ROWS, SOURCE, seed=3), random_tokens(ROWS, TARGET, seed=4)
    sdpa_output = run(choice, source, VALID, target)
    calls = 0

    def eager_sdpa(
        query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask, scale: float, dropout: float
    ) -> Tensor:
        nonlocal calls
        calls += 1
        return eager_attention(query, key, value, mask, ScoreFunction(scale), dropout)[0]

    monkeypatch.setattr(attention, "sdpa", eager_sdpa)
    torch.testing.assert_close(run(choice, source, VALID, target), sdpa_output, atol=TOLERANCE, rtol=0)
    assert (calls == 0) == (choice["score"] in ("concat", "additive", "none"))  # SDPA does not support the first two


@all_choices
def test_every_parameter_has_a_gradient(choice: Choice) -> None:
    """A gradient reaches every parameter, and none is NaN, even where a row of the source is empty."""
    model = make_model(choice)
    source, target = random_tokens(ROWS, SOURCE, seed=3), random_tokens(ROWS, TARGET, seed=4)
    valid = VALID.clone()
    valid[1] = False
    if isinstance(model, EncoderDecoder):
        output = model(source, target, valid)
    elif isinstance(model, EncoderOnly):
        output = model(source, valid)
    else:
        output = model(source)
    torch.nn.functional.cross_entropy(
        output.flatten(0, 1), torch.zeros(output[..., 0].numel(), dtype=torch.long)
    ).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0 or name.endswith("key.bias"), name  # softmax ignores a constant
