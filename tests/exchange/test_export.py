"""Exports that fail."""

import json
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.exchange import ctranslate2, parity
from regard.exchange.export import ExportOptions, export_model
from regard.store.export_folder import PARITY_FILE
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.exchange.ctranslate2_models import make_encoder_decoder, make_stack, make_stored_model


def test_a_failed_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = make_stored_model(make_encoder_decoder(make_stack()))
    weights = get_weights(stored.model)
    write_model(tmp_path / "m", stored.settings, stored.tokenizers, weights, "card")
    monkeypatch.setattr(parity, "TEXTS", 3)
    export_model(tmp_path / "m", "ctranslate2", tmp_path / "good", ExportOptions(max_positions=100))
    assert json.loads((tmp_path / "good" / PARITY_FILE).read_text())["passed"] is True
    monkeypatch.setattr(ctranslate2, "ACTIVATIONS", {"relu": "GELU"})  # a wrong export
    with pytest.raises(RegardError, match="The export differs from the model"):
        export_model(tmp_path / "m", "ctranslate2", tmp_path / "bad")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good", "m"]
    _, report = export_model(tmp_path / "m", "ctranslate2", tmp_path / "eight", ExportOptions(dtype="int8"))
    assert "compared with PyTorch" in report.notes[0]  # figures only
