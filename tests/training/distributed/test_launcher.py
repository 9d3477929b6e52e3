"""The launcher: exit codes, restarts, errors and signals of several ranks, on one host and on two."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.base.errors import RanksFailedError, RegardError
from regard.base.limits import count_cores
from regard.training.distributed.launcher import launch
from tests.training.launched import KILLS

ROOT = Path(__file__).parents[3]
RESTART = "Restarting all ranks from the last checkpoint; 2 restarts left without a new one."
pytestmark = [
    pytest.mark.usefixtures("launcher_environment"),
    pytest.mark.skipif(sys.platform != "linux", reason="these tests read /proc"),
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),  # the agent leaves files open
]


def _launch(action: str, report: list[str] | None = None) -> int:
    lines: list[str] = [] if report is None else report
    return launch(["-m", "tests.training.launched", action], 2, report=lines.append)


def test_the_exit_code_of_the_ranks_is_that_of_the_launcher() -> None:
    assert _launch("75") == 75


@pytest.mark.parametrize("threads", ["7", None])
def test_only_rank_0_reaches_the_terminal_and_ranks_share_the_cores(
    threads: str | None, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if threads is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert _launch("environment") == 0
    environment = f"OMP_NUM_THREADS={threads or max(1, count_cores() // 2)} GLOO_SOCKET_IFNAME=lo"
    assert capfd.readouterr() == (f"rank 0 of 2\n{environment}\n", "")


def test_after_a_kill_all_ranks_start_again() -> None:
    report: list[str] = []
    began = time.monotonic()
    assert _launch("kill", report) == 0
    assert report == [f"Rank 1 was killed by SIGKILL. {RESTART}"]
    assert time.monotonic() - began < 100, "rank 0 slept on"


@pytest.mark.parametrize(("action", "rank"), [("stop", 1), ("stop-early", 0)])
def test_a_rank_that_was_stopped_is_killed(action: str, rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.training.distributed.launcher.STOPPED_SECONDS", 1.0)
    report: list[str] = []
    assert _launch(action, report) == 0
    assert report == [f"Rank {rank} was killed by SIGKILL. {RESTART}"]


def test_a_rank_that_has_lost_another_is_started_again() -> None:
    report: list[str] = []
    assert _launch("lost", report) == 0
    assert report[0].startswith("Rank 0 failed: Rank 0 lost the connection to another rank.")


def test_an_error_that_would_come_again_ends_the_run_and_names_its_rank() -> None:
    report: list[str] = []
    with pytest.raises(
        RegardError, match=r"Rank 1: There are too few sentences.\n  where: train.en\n  fix:   Add some."
    ):
        _launch("refuse", report)
    assert report == []


def test_a_defect_is_tried_again_and_then_shown() -> None:
    report: list[str] = []
    with pytest.raises(RegardError, match=r"(?s)Rank 1 failed: ValueError: a defect. .* 4 attempts.*Traceback"):
        _launch("crash", report)
    lefts = ["2 restarts", "1 restart", "0 restarts"]
    assert [line.split("; ")[1] for line in report] == [f"{left} left without a new one." for left in lefts]


def test_failures_with_new_checkpoints_in_between_do_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHECKPOINTS", str(tmp_path))
    report: list[str] = []
    arguments = ["-m", "tests.training.launched", "progress"]
    assert launch(arguments, 2, report=report.append, checkpoints=tmp_path, max_restarts=1) == 0
    assert len(report) == KILLS
    assert all(line.endswith("0 restarts left without a new one.") for line in report)


def test_failures_without_a_new_checkpoint_end_the_run_with_an_exit_code_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "step-00000007").mkdir()
    report: list[str] = []
    arguments = ["-m", "tests.training.launched", "crash"]
    with pytest.raises(RanksFailedError, match="after 2 attempts, the last 2 without a new checkpoint") as raised:
        launch(arguments, 2, report=report.append, checkpoints=tmp_path, max_restarts=1)
    assert raised.value.exit_code == 77
    assert len(report) == 1


def test_a_rank_that_fails_after_rank_0_has_finished_changes_nothing() -> None:
    report: list[str] = []
    assert _launch("late", report) == 0
    assert report == []


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_the_ranks_hear_of_a_signal_and_their_code_counts(name: str) -> None:
    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert _launch(name) == 75
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == handlers


def test_a_second_ctrl_c_kills_ranks_that_do_not_answer() -> None:
    began = time.monotonic()
    assert _launch("impatient") == 128 + signal.SIGINT
    assert time.monotonic() - began < 100


def test_a_signal_while_the_ranks_start_ends_them() -> None:
    report: list[str] = []
    assert _launch("early", report) == 128 + signal.SIGTERM
    assert report == []


def test_ranks_end_with_their_launcher() -> None:
    program = "; ".join(
        [
            "from regard.training.distributed.launcher import launch",
            "launch(['-m', 'tests.training.launched', 'wait'], 2, report=print)",
        ]
    )
    launcher = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "rank 0 of 2\n"
    ranks = _children(launcher.pid)
    assert len(ranks) == 2
    launcher.kill()
    launcher.wait()
    launcher.stdout.close()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{rank}").exists() for rank in ranks) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [rank for rank in ranks if Path(f"/proc/{rank}").exists()]


def _children(parent: int) -> list[int]:
    stats = [path.read_text().rpartition(")")[2].split() for path in Path("/proc").glob("[0-9]*/stat")]
    ids = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat")]
    return [process for process, fields in zip(ids, stats, strict=True) if fields[1] == str(parent)]
