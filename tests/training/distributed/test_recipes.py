"""The Slurm recipe of docs/guides/distributed.md, with stubs of its commands: when the job goes back into the queue."""

import os
import re
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "distributed.md"
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
