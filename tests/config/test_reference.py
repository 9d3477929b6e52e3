"""The list of settings is the classes themselves."""

from collections.abc import Iterator
from typing import Any

from regard.config import codec
from regard.config.reference import iter_tables
from regard.config.run import RunConfig
from regard.config.toml_file import to_dict


def iter_paths(table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        yield f"{prefix}{name}"
        inner = value if isinstance(value, dict) else {}
        yield from iter_paths(inner, f"{prefix}{name}.")


def test_every_setting_of_a_run_is_in_it() -> None:
    run: RunConfig = codec.RUN_FILES.parse(
        {
            "model": {"preset": "tiny"},
            "data": {"train": [{"kind": "lines", "source": "a"}]},
            "train": {"steps": 1, "schedule": {"kind": "linear", "lr": 0.1}},
        }
    )
    documented = {f"{table.path}.{name}".strip(".") for table in iter_tables() for name in table.repeated}
    documented |= {setting.path for table in iter_tables() for setting in table.settings}
    documented |= {
        f"model.decoder.{path.removeprefix('model.encoder.')}" for path in documented
    }  # "As `model.encoder.norm`."
    documented |= {path.replace("decoder.attention", "decoder.cross") for path in documented}
    tags = ("kind", "family", "format")
    assert {path for path in iter_paths(to_dict(run)) if path.rpartition(".")[2] not in tags} <= documented


def test_a_setting_has_its_values_its_default_and_its_reason() -> None:
    settings = {setting.path: setting for table in iter_tables() for setting in table.settings}
    clip = settings["train.max_grad_norm"]
    assert (clip.values, clip.default) == ("number (at least 0)", "1.0")
    assert clip.description.startswith("Maximum norm of the gradient")
    assert settings["train.optimizer"].values == "table: adamw, adam, muon"
    assert settings["train.optimizer"].default == "adamw"
    assert settings["train.steps"].default == "(required)"
    assert (settings["task_options"].values, settings["task_options"].default) == ("table", "")
    assert settings["model.decoder.norm"].description == "As `model.encoder.norm`."
    assert settings["data.max_length"].values == "whole number (above 0)"  # what only guards against damage is not told


def test_what_kinds_share_is_listed_once() -> None:
    lines = {table.tag: table for table in iter_tables() if table.path == "data.train"}
    assert "weight" in {setting.path.rpartition(".")[2] for setting in lines['kind = "lines"'].settings}
    assert lines['kind = "tmx"'].repeated == ("name", "weight", "languages", "path")
