"""`regard tune`."""

from pathlib import Path

import pytest

from tests.cli.factories import PAIR_OPTIONS
from tests.commands import run_command


@pytest.mark.usefixtures("corpus")
def test_tune_into_an_existing_run_names_the_command_that_resumes() -> None:
    Path("full/run.toml").touch()
    Path("model").mkdir()
    Path("model/model.toml").touch()
    done = run_command("tune", "model", *PAIR_OPTIONS, "--out", "full")
    assert (done.code, "Continue it with regard train --resume full" in done.errors) == (1, True)
