"""Settings files: values, faults and hints."""

from pathlib import Path
from typing import Any

import pytest

from regard.base import limits
from regard.base.errors import ConfigError, RegardError
from regard.config import codec
from regard.config.toml_file import TomlTable, parse_settings
from tests.config.factories import preset_faults


def parse_faults(table: TomlTable) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        codec.MODEL_FILES.parse(table)
    return {fault.path: f"{fault.message} {fault.hint or ''}".strip() for fault in caught.value.faults}


def test_settings_are_toml_or_bare_words() -> None:
    settings = ["a=1", "b.c=0.5", "d=true", "e=word", 'f="1"', "g=[1, 2]", 'h={kind = "rotary", theta = 5}', "i=a b"]
    expected: dict[str, Any] = {"a": 1, "b.c": 0.5, "d": True, "e": "word", "f": "1", "g": [1, 2]}
    assert parse_settings(settings) == expected | {"h": {"kind": "rotary", "theta": 5}, "i": "a b"}
    with pytest.raises(ConfigError, match=r"a\.b=c"):
        parse_settings(["d_model"])


def test_every_fault_is_named_at_once_with_its_path_and_a_hint() -> None:
    found = preset_faults(
        "tiny",
        "encoder.position.kind=rotery",
        "encoder.attention.head=3",
        "decoder.layers=four",
        "decoder.dropout.sublayer=1.5",
        "d_modle=3",
        "decoder.feedforward.kind=gated",
    )
    assert found == {
        "encoder.position.kind": "is 'rotery'. Did you mean 'rotary'?",
        "encoder.attention.head": "is not a key here. Did you mean 'heads'?",
        "decoder.layers": "is 'four': input should be a valid integer.",
        "decoder.dropout.sublayer": "is 1.5: input should be less than 1.",
        "decoder.feedforward.d_ff": "is missing.",
        "d_modle": "is not a key here. Did you mean 'd_model'?",
    }


def test_a_missing_or_unknown_family() -> None:
    assert parse_faults({"d_model": 8}) == {"family": "is missing: it selects the type of its table."}
    assert parse_faults({"family": "decoder-only"}) == {"family": "is 'decoder-only'. Did you mean 'decoder_only'?"}
    assert "decoder" in parse_faults({"family": "decoder_only"})


def test_values_that_are_no_tables() -> None:
    with pytest.raises(ConfigError, match="'d_model' is a value"):
        codec.preset("tiny", {"d_model.height": 3})
    assert parse_faults({"family": "decoder_only", "d_model": 8, "tokens": 3, "decoder": []}).keys() == {
        "tokens",
        "decoder",
    }


def test_broken_files_and_unknown_presets_are_explained(tmp_path: Path) -> None:
    broken = tmp_path / "model.toml"
    broken.write_bytes(b"d_model = \n")
    with pytest.raises(ConfigError, match="is not TOML"):
        codec.MODEL_FILES.load(broken)
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not TOML"):
        codec.MODEL_FILES.load(broken)
    with pytest.raises(RegardError, match="cannot be read: No such file"):
        codec.MODEL_FILES.load(tmp_path / "nothing.toml")
    broken.write_bytes(b"family = 1979-05-27\n")
    with pytest.raises(ConfigError, match="family"):
        codec.MODEL_FILES.load(broken, {"d_model": 8})
    with pytest.raises(RegardError, match="Did you mean 'tiny'"):
        codec.preset("tini")


def test_a_file_that_could_not_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SETTINGS", 100)
    with pytest.raises(RegardError, match="limit is 100"):
        codec.MODEL_FILES.save(codec.preset("tiny"), tmp_path / "model.toml")
    assert not (tmp_path / "model.toml").exists()
