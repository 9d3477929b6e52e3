"""The environment of tests that launch ranks."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import regard

ROOT = Path(__file__).parents[3]


@pytest.fixture
def launcher_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let ranks import Regard and the tests, and close the files of torch's agent."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(Path(regard.__file__).parents[1]), str(ROOT))))
    monkeypatch.chdir(ROOT)
    # torch reads the source of every caller on the stack to name an event that nobody logs: 3 CPU-seconds per attempt
    # below pytest.
    monkeypatch.setattr("torch.distributed.elastic.rendezvous.dynamic_rendezvous.get_method_name", lambda: "")
    yield
    gc.collect()  # while the warning about unclosed files is ignored
