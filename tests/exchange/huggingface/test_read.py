"""The pooling of sentence-transformers is imported, and what Regard has not is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.exchange.foreign_folder import ForeignFolder
from regard.exchange.huggingface.read import POOLING, _read_pooling

MODULES = [{"type": f"sentence_transformers.models.{name}"} for name in ("Transformer", "Pooling", "Normalize")]


def write_folder(folder: Path, pooling: dict[str, Any], modules: list[dict[str, str]], **settings: Any) -> Path:
    (folder / POOLING).parent.mkdir()
    (folder / POOLING).write_text(json.dumps(pooling))
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize("pooling", [{"pooling_mode_cls_token": True}, {"pooling_mode": "cls"}])
def test_pooling_is_read(tmp_path: Path, pooling: dict[str, Any]) -> None:
    folder = write_folder(tmp_path, pooling, MODULES, max_seq_length=128)
    assert _read_pooling(ForeignFolder(folder)) == {"pool": "first", "normalize": True, "max_length": 128}


@pytest.mark.parametrize(
    ("pooling", "modules", "settings", "message"),
    [
        ({"pooling_mode": "max"}, MODULES, {}, "pooling is not supported"),
        ({"pooling_mode_max_tokens": True}, MODULES, {}, "pooling is not supported"),
        ({"pooling_mode": "cls"}, [*MODULES, {"type": "x.Dense"}], {}, "module x.Dense is not supported"),
        ({"pooling_mode": "cls"}, MODULES, {"do_lower_case": True}, "do_lower_case"),
    ],
)
def test_what_would_be_ignored_is_refused(
    tmp_path: Path, pooling: dict[str, Any], modules: list[dict[str, str]], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(RegardError, match=message):
        _read_pooling(ForeignFolder(write_folder(tmp_path, pooling, modules, **settings)))
