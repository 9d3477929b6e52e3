import os
import subprocess
import sys

import pytest

from regard.base.process_start import WAIT_VARIABLES, limit_tokenizer_threads, set_wait_policy


def run_python(code: str, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in WAIT_VARIABLES}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment | variables, check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout.strip()


def test_importing_regard_sets_passive_waiting_before_torch_is_imported() -> None:
    code = "import regard, os, sys; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    assert run_python(code) == "passive False"


@pytest.mark.parametrize("name", WAIT_VARIABLES)
def test_wait_policy_of_the_user_is_kept(name: str) -> None:
    environment = {name: "active"}
    set_wait_policy(environment)
    assert environment == {name: "active"}


@pytest.mark.parametrize(
    "environment", [{"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "4"}, {"OMP_NUM_THREADS": "2,1"}, {}], ids=str
)
def test_tokenizer_threads_of_the_user_are_kept(environment: dict[str, str]) -> None:
    before = dict(environment)
    limit_tokenizer_threads(environment)
    assert environment == before
