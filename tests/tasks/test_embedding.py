"""Embed texts: pooling, batches, truncation, search, and loading encoders of any task."""

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.base.errors import DamagedError, RegardError
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.embedding import Embedder, Pooling, read_pooling
from regard.tasks.load import load, load_embedder
from tests.tasks.factories import TEXTS, make_parts, make_tokenizers


@pytest.mark.parametrize("pool", ["mean", "first", "last"])
def test_pooling(pool: str) -> None:
    model, settings = make_parts()
    embedder = Embedder(model, make_tokenizers(), settings, Pooling(pool, normalize=False))  # type: ignore[arg-type]
    vectors = embedder.embed(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        (row,) = embedder.encode_rows([text])
        with torch.no_grad():
            states = model.hidden_states(torch.tensor([row]))[0][0]
        expected = {"mean": states.mean(dim=0), "first": states[0], "last": states[-1]}[pool]
        assert np.allclose(vector, expected.numpy(), atol=1e-5)
    assert np.allclose(vectors, embedder.embed(TEXTS, batch_tokens=1), atol=1e-5)
    assert np.allclose(vectors[1], embedder.embed(TEXTS[1]), atol=1e-5)


def test_search_and_truncation() -> None:
    model, settings = make_parts()
    embedder = Embedder(model, make_tokenizers(), settings, Pooling(max_length=12))
    assert np.allclose(np.linalg.norm(embedder.embed(TEXTS), axis=1), 1.0)
    assert max(len(row) for row in embedder.encode_rows(["a" * 500])) == 12
    matches = embedder.search(TEXTS[2], TEXTS, n_best=2)
    assert (matches[0].index, matches[0].text) == (2, TEXTS[2])
    assert matches[0].similarity == pytest.approx(1.0, abs=1e-5)
    assert matches[1].similarity < matches[0].similarity
    assert embedder.search("a", []) == []
    with pytest.raises(RegardError, match="n_best"):
        embedder.search("a", TEXTS, n_best=0)


def test_every_encoder_embeds(tmp_path: Path) -> None:
    model, settings = make_parts()
    files = {"embedding.json": b'{"pool": "first", "normalize": false, "max_length": 20}'}
    write_model(tmp_path / "masked_lm", settings, make_tokenizers(), get_weights(model), "# Card\n", files=files)
    assert load_embedder(tmp_path / "masked_lm").pooling == Pooling("first", False, 20)
    assert not isinstance(load(tmp_path / "masked_lm"), Embedder)  # its own task is to fill gaps
    assert isinstance(load(tmp_path / "masked_lm", task="embedding"), Embedder)
    model, settings = make_parts(head={"kind": "none"}, task="embedding")
    write_model(tmp_path / "embedding", settings, make_tokenizers(), get_weights(model), "# Card\n")
    assert isinstance(load(tmp_path / "embedding"), Embedder)
    with pytest.raises(RegardError, match="task is 'embedding', not 'masked_lm'"):
        load(tmp_path / "embedding", task="masked_lm")


@pytest.mark.parametrize("content", ["[]", "{}", '{"pool": "max", "normalize": true, "max_length": null}'])
def test_damaged_pooling_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "embedding.json").write_text(content, encoding="utf-8")
    with pytest.raises(DamagedError):
        read_pooling(tmp_path)


def test_attention_is_recorded() -> None:
    model, settings = make_parts()
    embedder = Embedder(model, make_tokenizers(), settings)
    attention = embedder.record(TEXTS[0])
    (row,) = embedder.encode_rows([TEXTS[0]])
    assert attention["encoder.0.self"].shape == (4, len(row), len(row))
