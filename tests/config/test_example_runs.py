"""The run files of `examples/` are valid; the students of Multi30k differ from their teachers as their page says."""

from pathlib import Path

import pytest

from regard.config.codec import RUN_FILES
from regard.config.toml_file import to_dict
from regard.train.fit import differences

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.toml")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_run_file_of_an_example_is_valid(path: Path) -> None:
    assert RUN_FILES.load(path).data.train


def test_students_differ_from_teachers_in_the_documented_settings() -> None:
    runs = [to_dict(RUN_FILES.load(EXAMPLES / "multi30k" / f"{name}.toml")) for name in ("recipe", "student")]
    changed = {path.removeprefix("model.") for path, _, _ in differences(*runs)}
    parts = {f"{side}.{part}" for side in ("encoder", "decoder") for part in ("position", "dropout")}
    assert {".".join(path.split(".")[:2]) for path in changed} == {*parts, "train.updates"}
    for side in ("encoder", "decoder"):
        settings = runs[1]["model"][side]
        assert settings["position"]["kind"] == "rotary"
        assert [settings["dropout"][site] for site in ("token", "embedding", "sublayer")] == [0.1, 0.1, 0.1]
