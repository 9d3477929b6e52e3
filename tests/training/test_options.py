"""Options of `regard.train` and the command."""

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.base.errors import RegardError
from regard.config import codec
from regard.training.options import TrainOptions, UsageError
from tests.training.runs import make_small_run


@pytest.mark.usefixtures("corpus")
def test_errors_spell_options_as_arguments() -> None:
    with pytest.raises(UsageError, match=r"source='a.en' has no target[\s\S]*Add target='FILE'"):
        regard.train("a.en", out="new")
    with pytest.raises(UsageError, match=r"source='a.en', target='a.de' to translate"):
        regard.train(out="new")
    with pytest.raises(UsageError, match="Both minutes and a number of steps"):
        regard.train("a.en", "a.de", out="new", minutes=1, steps=2)
    for languages in (("en",), "de"):
        with pytest.raises(UsageError, match="languages must be two names, got"):
            regard.train("a.en", "a.de", out="new", languages=languages)  # type: ignore[arg-type]
    Path("run.toml").touch()
    with pytest.raises(UsageError, match="Both steps and more"):
        regard.resume(".", steps=2, more=1)
    with pytest.raises(RegardError, match=r"Continue it with regard.resume\('.'\)"):
        regard.train("a.en", "a.de", out=".")
    assert not Path("new").exists()


def test_settings_are_paths_or_tables() -> None:
    expected = {"train.max_grad_norm": 0.5, "train.keep_checkpoints": 2, "seed": 1, "data.seed": 1}
    for settings in (
        {"train": {"max_grad_norm": 0.5, "keep_checkpoints": 2}},
        {"train.max_grad_norm": 0.5, "train.keep_checkpoints": 2},
    ):
        assert TrainOptions(settings=settings, seed=1).changes == expected
    assert TrainOptions(settings=["train.max_grad_norm=0.5", "train.keep_checkpoints=2"], seed=1).changes == expected


def test_a_model_to_tune_and_a_run_file_exclude_each_other(tmp_path: Path) -> None:
    options = TrainOptions(run=tmp_path / "run.toml", parent=tmp_path / "model", out=tmp_path / "out")
    with pytest.raises(UsageError, match="cannot be combined with a run file") as caught:
        options.check()
    assert "finetune.parent=" in str(caught.value.hint)


def test_changes_of_a_resumed_run_reach_the_settings_of_the_process(tmp_path: Path) -> None:
    """The device is needed before the run is loaded."""
    files = {name: name for name in ("all.en", "all.de", "book.txt")}
    codec.RUN_FILES.save(make_small_run("translation", files), tmp_path / "run.toml")
    changed = TrainOptions(resume=tmp_path, settings=["device.name=cuda"])
    assert changed.device_name == "cuda"


def test_options_survive_json_as_ranks_read_them(tmp_path: Path) -> None:
    paths: dict[str, Any] = {
        field.name: tmp_path / field.name for field in fields(TrainOptions) if field.type == Path | None
    }
    assert {"run", "out", "without", "resume", "parent", "add_tokens", "chat_template"} == paths.keys()
    options = TrainOptions(**paths, source=["a"], languages=("en", "de"), settings={"train.max_grad_norm": 0.5}, lora=4)
    assert TrainOptions.from_arguments(json.loads(json.dumps(asdict(options), default=str))) == options


def test_arguments_may_be_any_path_and_one_path_instead_of_several() -> None:
    options = TrainOptions.from_arguments({"source": "a", "target": Path("b"), "text": ["c", Path("d")], "out": "e"})
    assert options == TrainOptions(source=["a"], target=["b"], text=["c", "d"], out=Path("e"))
