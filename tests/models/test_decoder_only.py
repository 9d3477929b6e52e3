"""Decoders with images, prefixes and class heads."""

import pytest
import torch

from regard.base.errors import ShapeError
from regard.config.codec import MODEL_FILES
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from tests.models.factories import CLOSE, PATCHES, STACK, TOKENS, check_packing


@torch.no_grad()
@pytest.mark.parametrize("position", ["rotary", "sinusoidal", "alibi"])
def test_an_image_before_tokens_is_a_caption(position: str) -> None:
    stack = STACK | {"position": {"kind": position}}
    table = {"family": "decoder_only", "d_model": 12, "task": "captioning", "decoder": stack, "tokens": TOKENS}
    model = build(MODEL_FILES.parse(table | {"prefix": PATCHES}), seed=0).eval()
    assert isinstance(model, DecoderOnly)
    image, tokens = torch.randn(2, 3, 4, 4), torch.tensor([[1, 2, 3], [4, 5, 6]])
    valid = torch.tensor([[True] * 4, [True, True, False, False]])
    full = model(tokens, prefix=image, prefix_valid=valid)
    assert full.shape == (2, 3, 20)
    state = model.start(7, prefix=image, prefix_valid=valid)
    stepped = torch.cat([model.step(token, state) for token in tokens.split(1, dim=1)], dim=1)
    torch.testing.assert_close(stepped, full, atol=CLOSE, rtol=0)
    alone = model(tokens[1:], prefix=image[1:, :, :2])  # its first two squares are its upper row
    torch.testing.assert_close(full[1:], alone, atol=CLOSE, rtol=0)
    with pytest.raises(ShapeError, match="Packed rows cannot have a prefix"):
        model(tokens, prefix=image, documents=torch.zeros(2, 3))


@torch.no_grad()
def test_packed_documents_equal_documents_alone() -> None:
    table = {"d_model": 12, "family": "decoder_only", "decoder": STACK, "tokens": TOKENS}
    check_packing(build(MODEL_FILES.parse(table), seed=0).eval())


@torch.no_grad()
def test_a_prefix_within_a_window_and_a_prefix_with_a_hole() -> None:
    table = {"family": "decoder_only", "d_model": 12, "task": "captioning", "tokens": TOKENS, "prefix": PATCHES}
    model = build(MODEL_FILES.parse(table | {"decoder": STACK | {"window": 3}}), seed=0).eval()
    assert isinstance(model, DecoderOnly)
    image, tokens = torch.randn(2, 3, 4, 4), torch.tensor([[1, 2, 3], [4, 5, 6]])
    valid = torch.tensor([[True] * 4, [True, True, False, False]])
    state = model.start(7, prefix=image, prefix_valid=valid)
    stepped = torch.cat([model.step(token, state) for token in tokens.split(1, dim=1)], dim=1)
    torch.testing.assert_close(stepped, model(tokens, prefix=image, prefix_valid=valid), atol=CLOSE, rtol=0)
    with pytest.raises(ShapeError, match="padding before valid"):
        model.start(7, prefix=image, prefix_valid=torch.tensor([[True, False, True, True]] * 2))
