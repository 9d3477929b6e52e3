"""The progress of a run is read exactly as it was written, also from checkpoints of earlier versions."""

import pytest

from regard.base.errors import DamagedError
from regard.training.checkpoint.progress import Progress


def test_progress_of_an_earlier_version_is_healthy_at_its_step() -> None:
    values = Progress(step=40, losses=[2.0], spikes=3).to_dict()
    for name in ("loss_limit", "healthy_step", "recoveries"):
        del values[name]
    progress = Progress.from_state({"progress": values, "run": {}}, location="step-40")
    assert progress == Progress(step=40, losses=[2.0], healthy_step=40)


@pytest.mark.parametrize(
    "changes", [{"healthy_step": 41}, {"healthy_step": -1}, {"recoveries": [-1]}, {"loss_limit": float("nan")}]
)
def test_progress_that_no_run_can_have_is_damaged(changes: dict[str, object]) -> None:
    values = Progress(step=40).to_dict() | changes
    with pytest.raises(DamagedError, match="no valid progress"):
        Progress.from_state({"progress": values, "run": {}}, location="step-40")
