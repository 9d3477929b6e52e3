"""The choice of an architecture for an export."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.exchange.export import ExportOptions, export_model
from tests.exchange.folders import write_case

pytestmark = pytest.mark.usefixtures("one_short_text")


def test_a_model_without_architecture_is_refused(tmp_path: Path) -> None:
    write_case("pegasus-gelu", tmp_path / "ours")
    with pytest.raises(RegardError, match=r"MarianMTModel: encoder.norm_order is pre"):
        export_model(tmp_path / "ours", "huggingface", options=ExportOptions(architecture="MarianMTModel"))
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]  # nothing is left behind
    with pytest.raises(RegardError, match="There is no export target 'onyx'"):
        export_model(tmp_path / "ours", "onyx")
    with pytest.raises(RegardError, match="would change the model folder"):
        export_model(tmp_path / "ours", "huggingface", tmp_path / "ours")
