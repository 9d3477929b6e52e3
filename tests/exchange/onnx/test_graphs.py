"""Inputs of ONNX graphs."""

from pathlib import Path

import pytest
import torch

from regard.config import codec
from regard.config.model import EncoderOnlyConfig
from regard.models.build import build
from tests.tasks.factories import perturb

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")
import onnxruntime  # type: ignore[import-untyped]

from regard.exchange.onnx.graphs import write_graphs

TOLERANCE = 2e-5


def test_graphs_of_models_with_token_types_read_them(tmp_path: Path) -> None:
    """A pair of texts needs them; a single text is read with zeros."""
    settings = codec.preset("encoder-tiny", {"source.vocabulary": 30, "source.types": 2, "encoder.layers": 1})
    assert isinstance(settings, EncoderOnlyConfig)
    model = perturb(build(settings, seed=1), seed=1).eval()
    (name,) = write_graphs(model, tmp_path)
    session = onnxruntime.InferenceSession(tmp_path / name)
    rows = torch.randint(5, 30, (2, 9))
    types = (torch.arange(9) > 4).long().expand(2, 9)
    with torch.inference_mode():
        expected, single = model(rows, types=types), model(rows)
    inputs = {"input_ids": rows, "attention_mask": torch.ones_like(rows), "token_type_ids": types}
    logits = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})[0]
    assert (torch.from_numpy(logits) - expected).abs().max() < TOLERANCE
    assert (single - expected).abs().max() > 100 * TOLERANCE
