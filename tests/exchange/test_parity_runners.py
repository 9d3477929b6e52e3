"""Parity of every family."""

from dataclasses import replace
from pathlib import Path

import pytest

from regard.exchange.parity import measure_parity
from tests.exchange.ctranslate2_models import make_decoder_only, make_encoder_only, make_stored_model
from tests.exchange.models import AlteredRunner


@pytest.mark.parametrize("settings", [make_decoder_only(), make_encoder_only()], ids=["decoder-only", "encoder-only"])
def test_other_families(settings: dict[str, object], tmp_path: Path) -> None:
    stored = replace(make_stored_model(settings), path=tmp_path / "model")
    result = measure_parity(stored, AlteredRunner(stored, 1e-5), must_match=True, texts=5, max_positions=20)
    assert result.max_difference == pytest.approx(1e-5, rel=0.1)
    assert (result.greedy is None) == (settings["family"] == "encoder_only")
