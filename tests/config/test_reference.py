"""The list of settings is the classes themselves."""

from collections.abc import Iterator
from typing import Any

from regard.config import codec
from regard.config.reference import tables
from regard.config.run import Run
from regard.config.tables import plain


def paths(table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        yield f"{prefix}{name}"
        inner = value if isinstance(value, dict) else {}
        yield from paths(inner, f"{prefix}{name}.")


def test_every_setting_of_a_run_is_in_it() -> None:
    run: Run = codec.runs().parse(
        {
            "model": {"preset": "tiny"},
            "data": {"train": [{"kind": "lines", "source": "a"}]},
            "train": {"updates": 1, "schedule": {"kind": "linear", "peak": 0.1}},
        }
    )
    told = {f"{table.path}.{name}".strip(".") for table in tables() for name in table.again}
    told |= {setting.path for table in tables() for setting in table.settings}
    told |= {f"model.decoder.{path.removeprefix('model.encoder.')}" for path in told}  # "As `model.encoder.norm`."
    told |= {path.replace("decoder.attention", "decoder.cross") for path in told}
    tags = ("kind", "family", "format")
    assert {path for path in paths(plain(run)) if path.rpartition(".")[2] not in tags} <= told


def test_a_setting_has_its_values_its_default_and_its_reason() -> None:
    found = {setting.path: setting for table in tables() for setting in table.settings}
    clip = found["train.clip"]
    assert (clip.values, clip.default) == ("number (at least 0)", "1.0")
    assert clip.about.startswith("The longest gradient")
    assert found["train.optimizer"].values == "table: adamw, adam, adafactor, muon"
    assert found["train.optimizer"].default == "adamw"
    assert found["train.updates"].default == "(must be given)"
    assert found["model.decoder.norm"].about == "As `model.encoder.norm`."
    assert found["data.longest"].values == "whole number (above 0)"  # what only guards against damage is not told


def test_what_kinds_share_is_told_once() -> None:
    lines = {table.tag: table for table in tables() if table.path == "data.train"}
    assert "weight" in {setting.path.rpartition(".")[2] for setting in lines['kind = "lines"'].settings}
    assert lines['kind = "tmx"'].again == ("name", "weight", "languages", "path")
