"""Options of `regard train`."""

from pathlib import Path

import pytest

from regard.cli.train_options import TrainCommandOptions
from regard.config.sources import TableConfig
from regard.training.options import UsageError
from tests.cli.factories import write_lines


@pytest.mark.usefixtures("corpus")
def test_text_file_with_columns_is_a_table() -> None:
    write_lines("deu.txt", [f"Go {n}.\tGeh {n}.\tCC-BY {n}\t{n}" for n in range(40)])
    (source,) = TrainCommandOptions(files=["deu.txt"]).place_files().sources
    assert source == TableConfig(path="deu.txt", target=2)
    (source,) = TrainCommandOptions(files=["deu.txt"], columns="2,1").place_files().sources
    assert source == TableConfig(path="deu.txt", source=2, target=1)
    assert TrainCommandOptions(files=["book.txt"]).place_files().text == ["book.txt"]
    with pytest.raises(UsageError, match="--columns needs --data"):
        TrainCommandOptions(source=["a.en"], target=["a.de"], columns="1,2").check()


def test_a_second_attempt_resumes_a_run_that_has_begun(tmp_path: Path) -> None:
    options = TrainCommandOptions(source=["a.en"], target=["a.de"], out=tmp_path, steps=9, track=["tensorboard"])
    assert options.for_next_attempt() == options, "nothing has begun"
    (tmp_path / "run.toml").touch()
    assert options.for_next_attempt() == TrainCommandOptions(resume=tmp_path, track=["tensorboard"])
