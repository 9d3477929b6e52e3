"""Heads: pooling, classes and word2vec."""

from typing import Any

import pytest
import torch

from regard.base.errors import ShapeError
from regard.config.codec import MODEL_FILES, preset
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_only import EncoderOnly
from regard.models.heads import BagHead
from tests.models.factories import CLOSE, LABELS, PATCHES, STACK, TOKENS


@torch.no_grad()
@pytest.mark.parametrize("pool", ["first", "mean", "last"])
def test_pooling_ignores_padding(pool: str) -> None:
    table = {"family": "encoder_only", "d_model": 12, "encoder": STACK, "task": "text_classification", "source": TOKENS}
    model = build(MODEL_FILES.parse(table | {"head": LABELS | {"pool": pool, "hidden": False}}), seed=0).eval()
    assert isinstance(model, EncoderOnly)
    tokens, valid = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[True, True, True, False, False]])
    torch.testing.assert_close(model(tokens, valid), model(tokens[:, :3]), atol=CLOSE, rtol=0)


@torch.no_grad()
def test_the_class_token_stands_first() -> None:
    table = {"family": "encoder_only", "d_model": 12, "encoder": STACK, "task": "image_classification", "head": LABELS}
    model: Any = build(MODEL_FILES.parse(table | {"source": PATCHES | {"class_token": True}}), seed=0).eval()
    image = torch.randn(1, 3, 4, 4)
    model.source.class_token.normal_(generator=torch.Generator().manual_seed(0))
    embedded, _ = model.source(image)
    assert torch.equal(embedded[0, 0], model.source.class_token)
    before = model(image)
    model.source.class_token.neg_()
    assert not torch.equal(model(image), before)
    with pytest.raises(ShapeError, match="1 channels, but the model was built for 3"):
        model(image[:, :1])


@torch.no_grad()
@pytest.mark.parametrize("pool", ["last", "mean"])
def test_a_decoder_classifies_by_its_valid_tokens(pool: str) -> None:
    table = {"family": "decoder_only", "d_model": 12, "decoder": STACK, "tokens": TOKENS, "task": "text_classification"}
    model = build(MODEL_FILES.parse(table | {"head": LABELS | {"pool": pool}}), seed=0).eval()
    assert isinstance(model, DecoderOnly)
    tokens, valid = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[True, True, True, False, False]])
    torch.testing.assert_close(model(tokens, valid), model(tokens[:, :3]), atol=CLOSE, rtol=0)
    assert not torch.allclose(model(tokens, valid), model(tokens), atol=CLOSE)
    assert model(tokens, torch.zeros(1, 5, dtype=torch.bool)).isfinite().all()  # a row of padding only gives no NaN
    with pytest.raises(ShapeError, match="cannot generate text"):
        model.start(5)


def test_the_head_averages_the_valid_neighbours() -> None:
    head = build(preset("word2vec", {"source.vocabulary": 30, "head.window": 2}), seed=1).head
    assert isinstance(head, BagHead)
    x = torch.randn(2, 6, 100, generator=torch.Generator().manual_seed(1))
    valid = torch.tensor([[True] * 6, [True, True, True, False, False, False]])
    means = head.average(x, valid)
    for row, length in enumerate((6, 3)):
        for place in range(length):
            neighbors = [n for n in range(place - 2, place + 3) if 0 <= n < length and n != place]
            assert torch.allclose(means[row, place], x[row, neighbors].mean(dim=0), atol=1e-6)
    assert torch.allclose(head.average(x[:1, :1], None), torch.zeros(1, 1, 100), atol=1e-6)  # no neighbors
