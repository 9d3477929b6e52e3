"""The Slurm recipe and the JobSet, with stubs of their commands: which exit codes start the run again."""

import importlib.util
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "guides" / "distributed.md"
STUBS = {
    "scontrol": 'if [ "$1" = show ]; then echo host-1; else echo "$@" >> "$LOG"; fi',
    "getent": 'echo "10.0.0.1 STREAM host-1"',
    "srun": 'echo "$@" >> "$LOG"; exit "$CODE"',
}


@pytest.mark.parametrize(
    ("code", "restarts", "requeues"),
    [
        (0, "", False),
        (1, "", False),
        (75, "", True),
        (75, "40", True),
        (77, "", True),
        (77, "9", True),
        (77, "10", False),
    ],
)
def test_slurm_job_is_requeued_after_a_stop_and_a_few_failures(
    tmp_path: Path, code: int, restarts: str, requeues: int
) -> None:
    (script,) = re.findall(r"```bash\n(#!/bin/bash\n#SBATCH.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for name, body in STUBS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(tmp_path / "log"), "CODE": str(code)}
    environment |= {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "host-[1-4]", "SLURM_NNODES": "4"}
    environment |= {"SLURM_RESTART_COUNT": restarts} if restarts else {}
    subprocess.run(["/bin/bash", "-c", script], env=environment, check=False)  # noqa: S603
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("regard train run.toml --out /shared/my-model --ranks 8 --hosts 4")
    assert lines[0].endswith("--rendezvous 10.0.0.1:29400")
    assert lines[1:] == ["requeue 7"] * requeues


@pytest.fixture(scope="module")
def check() -> ModuleType:
    """deploy/check.py."""
    spec = importlib.util.spec_from_file_location("check", ROOT / "deploy" / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def jobset() -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "jobset.yaml").read_text())
    return manifest


@pytest.mark.parametrize(
    ("codes", "state", "starts"),
    [
        ([0], "Completed", 1),
        ([75] * 30 + [0], "Completed", 31),
        ([77] * 10 + [0], "Completed", 11),
        ([77] * 11, "Failed", 11),
        ([-9, 137, 75, 0], "Completed", 4),
        ([1], "Failed", 1),
        ([75, 2], "Failed", 2),
        ([76], "Failed", 1),
    ],
)
def test_jobset_starts_pods_again_after_a_stop_and_a_few_failures(
    check: ModuleType, jobset: dict[str, Any], codes: list[int], state: str, starts: int
) -> None:
    left = list(codes)
    assert check.run_jobset(jobset, lambda pods: [left.pop(0)] * len(pods)) == state
    assert len(codes) - len(left) == starts


def test_jobset_replaces_one_stopped_pod_and_restarts_all_after_a_failure(
    check: ModuleType, jobset: dict[str, Any]
) -> None:
    started: list[list[int]] = []

    def run(pods: Sequence[int]) -> list[int]:
        started.append(list(pods))
        return ends.pop(0)

    ends = [[0, 75, 0, 0], [0]]
    assert check.run_jobset(jobset, run) == "Completed"
    ends = [[0, 75, 77, 0], [0, 0, 0, 0]]
    assert check.run_jobset(jobset, run) == "Completed"
    assert started == [[0, 1, 2, 3], [1], [0, 1, 2, 3], [0, 1, 2, 3]]


@pytest.mark.parametrize("has_begun", [False, True])
def test_jobset_command_starts_or_resumes_the_run_on_all_hosts(
    check: ModuleType, jobset: dict[str, Any], tmp_path: Path, has_begun: bool
) -> None:
    for name, body in {"regard": 'echo "$@"', "getent": 'test "$2" = my-model-host-0-0.my-model'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    if has_begun:
        (tmp_path / "my-model").mkdir()
        (tmp_path / "my-model" / "run.toml").touch()
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = check.read_command(jobset, {})
    output = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout  # noqa: S603
    (replicated,) = jobset["spec"]["replicatedJobs"]
    first = f"{jobset['metadata']['name']}-{replicated['name']}-0-0.{jobset['metadata']['name']}"
    ranks = replicated["template"]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    hosts = replicated["template"]["spec"]["completions"]
    run = "--resume my-model" if has_begun else "run.toml --out my-model"
    assert output == f"train {run} --ranks {ranks} --hosts {hosts} --rendezvous {first}:29400\n"
