from typing import Any

import pytest
import torch

from regard.base.errors import RegardError
from regard.config.codec import preset
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.attend import ResolvedMask
from regard.nn.record import Record

CONFIG = preset("gpt2", {"d_model": 16, "decoder.layers": 2, "decoder.attention.heads": 2, "tokens.vocabulary": 20})
TOKENS = torch.tensor([[1, 2, 3, 4, 5]])


def make_model() -> DecoderOnly:
    model = build(CONFIG, seed=0).eval()
    assert isinstance(model, DecoderOnly)
    return model


@torch.no_grad()
def test_replacing_a_heads_output_changes_what_follows() -> None:
    writer = make_model()

    def without_head_one(heads: torch.Tensor) -> torch.Tensor:
        return torch.cat((heads[:, :1], torch.zeros_like(heads[:, 1:])), dim=1)

    plain, ablated = Record(), Record(replace={"decoder.1.self": without_head_one})
    before, after = writer(TOKENS, record=plain), writer(TOKENS, record=ablated)
    assert not torch.equal(before, after)
    assert torch.equal(plain.residuals["decoder.0.feedforward"], ablated.residuals["decoder.0.feedforward"])
    assert not torch.equal(plain.residuals["decoder.1.self"], ablated.residuals["decoder.1.self"])
    # What was recorded is what happened before the change.
    assert torch.equal(plain.attention["decoder.1.self"].output, ablated.attention["decoder.1.self"].output)
    unchanged = writer(TOKENS, record=Record(replace={"decoder.1.self": lambda heads: heads}))
    assert torch.equal(before, unchanged)


@torch.no_grad()
def test_a_recorded_step_survives_what_later_happens_to_the_cache() -> None:
    writer = make_model()
    state, record = writer.start(capacity=5), Record()
    writer.step(TOKENS[:, :3], state)
    writer.step(TOKENS[:, 3:4], state, record=record)
    before = record.weights("decoder.0.self").clone()
    state.crop(1)
    writer.step(TOKENS[:, :3] + 7, state)
    assert torch.equal(record.weights("decoder.0.self"), before)
    full = Record()
    writer(TOKENS[:, :4], record=full)
    torch.testing.assert_close(before[:, :, 0], full.weights("decoder.0.self")[:, :, 3], atol=1e-6, rtol=0)


@torch.no_grad()
def test_heads_of_the_encoder_can_be_replaced_inside_a_search() -> None:
    changes = {"source.vocabulary": 20, "encoder.layers": 1, "decoder.layers": 1}
    model = build(preset("mini", changes), seed=0).eval()
    assert isinstance(model, EncoderDecoder)
    source, bos = torch.tensor([[5, 6, 7]]), torch.tensor([[1]])
    record = Record(replace={"encoder.0.self": lambda heads: heads * 0})
    plain = model.step(bos, model.start(source, capacity=4))
    ablated = model.step(bos, model.start(source, capacity=4, record=record), record)
    assert set(record.attention) == {"encoder.0.self", "decoder.0.self", "decoder.0.cross"}
    assert not torch.equal(plain, ablated)
    torch.testing.assert_close(ablated, model(source, bos, record=record), atol=1e-6, rtol=0)


@torch.no_grad()
def test_one_row_of_one_head_needs_no_dense_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record()
    make_model()(TOKENS, record=record)
    expected = record.weights("decoder.1.self")[:, 1:, 3:4]
    monkeypatch.setattr(ResolvedMask, "dense", lambda self, *_: self.allowed)
    torch.testing.assert_close(record.weights("decoder.1.self", [1], [3]), expected, atol=1e-7, rtol=0)


def test_an_unknown_place_names_the_known_ones() -> None:
    record = Record()
    make_model()(TOKENS, record=record)
    with pytest.raises(RegardError, match=r"decoder\.0\.self, decoder\.1\.self"):
        record.weights("encoder.0.self")


@torch.no_grad()
def test_relative_bias_is_added_in_every_layer() -> None:
    position = {"kind": "relative"}
    changes = {"d_model": 16, "decoder.layers": 3, "decoder.attention.heads": 2, "tokens.vocabulary": 20}
    model: Any = build(preset("gpt2", {**changes, "decoder.position": position}), seed=0).eval()
    record = Record()
    model(TOKENS, record=record)
    (table,) = model.decoder.position.tables
    for layer in range(3):
        mask = record.attention[f"decoder.{layer}.self"].mask
        assert mask.bias is not None
        assert torch.equal(mask.bias[0, :, 4, 4], table[0])
