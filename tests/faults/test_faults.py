"""The short version of `python -m tests.faults`, and a check that its proofs can fail."""

import subprocess
import sys
from pathlib import Path
from unittest import mock

import torch

from regard.training.checkpoint.folder import Checkpoint, Checkpoints
from tests.faults.__main__ import ON_RANKS, PROOFS, TRACING
from tests.faults.damage import strike_loader
from tests.faults.syscalls import explain_unavailable
from tests.faults.verdict import Verdict

MISSING = explain_unavailable()


def test_faults_violate_no_guarantee() -> None:
    """Run in a separate process: it forks children and must have no other threads."""
    proofs = [name for name in PROOFS if name not in ON_RANKS and (name not in TRACING or MISSING is None)]
    command = [sys.executable, "-m", "tests.faults", "--quick", *proofs]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert [line.partition(" of ")[0] for line in lines] == [f"{name}  0" for name in proofs], result.stdout
    assert all(int(line.split()[3].replace(",", "")) > 0 for line in lines), result.stdout
    assert not result.stderr


def test_loader_without_verification_is_detected(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, print)
    for step in (1, 2):
        checkpoints.save(step, Checkpoint({"w": torch.ones(99)}, {}, {}, {"progress": {"step": step}}))
    good, bad = Verdict("good", ""), Verdict("bad", "")
    strike_loader(good, tmp_path, 20)
    with mock.patch("regard.training.checkpoint.folder.verify"):
        strike_loader(bad, tmp_path, 20)
    assert not good.violations
    assert bad.violations
