from pathlib import Path

import pytest

from tests.blame.runs import train_planted_run


@pytest.fixture(scope="session")
def planted_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_planted_run(tmp_path_factory.mktemp("blame"))
