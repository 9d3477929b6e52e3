import subprocess
import sys
from pathlib import Path
from unittest import mock

import filelock
import pytest

from regard.base.errors import RegardError
from regard.base.locks import lock_folder

HOLD = """
import sys, time
from pathlib import Path
from regard.base.locks import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=[True, False], ids=["fcntl", "filelock"])
def has_fcntl(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With and without fcntl, which Windows lacks."""
    if not request.param:
        monkeypatch.setitem(sys.modules, "fcntl", None)
    return bool(request.param)


@pytest.mark.usefixtures("has_fcntl")
def test_lock_folder_refuses_a_second_lock(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with lock_folder(folder), pytest.raises(RegardError, match="Another process is writing"), lock_folder(folder):
        pass
    with lock_folder(folder), lock_folder(tmp_path):  # the lock was released
        pass
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("has_fcntl")
def test_lock_folder_passes_on_a_blocking_error_of_its_block(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError, match="pipe"), lock_folder(tmp_path):
        raise BlockingIOError("the pipe is full")


@pytest.mark.usefixtures("has_fcntl")
def test_lock_folder_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), lock_folder(tmp_path / "none"):
        pass


def test_lock_folder_is_released_when_its_process_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE)  # noqa: S603
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(RegardError), lock_folder(tmp_path):
            pass
        process.kill()
        process.wait()
    with lock_folder(tmp_path):
        pass


def test_lock_folder_without_fcntl_waits_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with mock.patch.object(filelock, "FileLock", wraps=filelock.FileLock) as locks:
        for wait in (True, False):
            with lock_folder(tmp_path, wait=wait):
                pass
    assert [call.kwargs["timeout"] for call in locks.call_args_list] == [-1, 0]
