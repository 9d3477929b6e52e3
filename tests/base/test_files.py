"""Whole or absent, and every change noticed."""

import errno
import os
import random
import stat
from pathlib import Path

import pytest

from regard.base.errors import DamagedError, RegardError
from regard.base.files import (
    MANIFEST,
    create_folder,
    explain_full_disk,
    recover,
    verify,
    write_atomic,
    write_manifest,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    with create_folder(path) as inside:
        (inside / "model.toml").write_text("d_model = 8\n")
        (inside / "deep").mkdir()
        (inside / "deep" / "weights.bin").write_bytes(bytes(range(256)))
    return path


def test_write_atomic_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_atomic(path, b"old")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    write_atomic(path, b"old")

    def raise_disk_full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", raise_disk_full)
    with pytest.raises(RegardError, match=r"The disk is full: .* 3 bytes are needed") as caught:
        write_atomic(path, b"new")
    assert caught.value.location == str(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_folder_is_sealed_and_verifies(folder: Path) -> None:
    verify(folder)
    assert not folder.with_name("model.tmp").exists()
    with pytest.raises(RegardError, match="already exists"), create_folder(folder):
        pass


def test_a_folder_that_fails_half_way_is_absent(tmp_path: Path) -> None:
    path = tmp_path / "model"

    def fill() -> None:
        with create_folder(path) as inside:
            (inside / "a").write_text("a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "model.tmp").mkdir()
    (tmp_path / "model.tmp" / "half").write_text("half")
    with create_folder(tmp_path / "model") as inside:
        (inside / "a").write_text("a")
    verify(tmp_path / "model")
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["a", MANIFEST]


def test_a_folder_that_somebody_writes_is_left_alone(tmp_path: Path) -> None:
    with create_folder(tmp_path / "model") as inside:
        (inside / "a").write_text("a")
        with pytest.raises(RegardError, match="Another process is writing"), create_folder(tmp_path / "model"):
            pass
    verify(tmp_path / "model")


def test_a_replacement_is_whole_whatever_a_kill_left(tmp_path: Path) -> None:
    path, older = tmp_path / "model", tmp_path / "model.old"
    for name in (path, older):
        name.mkdir()
        (name / "a").write_text("old")  # killed after the new one took its name, before the old one was gone
    with create_folder(path, replace=True) as inside:
        (inside / "a").write_text("new")
    verify(path)
    assert (path / "a").read_text() == "new"
    assert not older.exists()
    path.rename(older)  # killed before the new one took its name
    recover(path)
    assert (path / "a").read_text() == "new"
    assert not older.exists()


def test_folders_of_the_user_are_left_alone(tmp_path: Path) -> None:
    own = tmp_path / "model.old"
    own.mkdir()
    (own / "a").write_text("mine")
    for replace in (False, True):
        with create_folder(tmp_path / "model", replace=replace, backup=tmp_path / ".model.old") as inside:
            (inside / "a").write_text("new")
    with create_folder(tmp_path / "another") as inside:
        (inside / "a").write_text("new")
    assert (own / "a").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another", "model", "model.old"]


def test_a_replacement_that_fails_leaves_the_older_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, rename = hash_files(folder), Path.rename

    def fail_for_the_new_one(path: Path, target: Path) -> Path:
        if path.suffix == ".tmp":
            raise OSError("no")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(OSError, match="no"), create_folder(folder, replace=True) as inside:
        (inside / "a").write_text("new")
    monkeypatch.undo()
    assert hash_files(folder) == before


def hash_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_reaches_the_disk_and_the_manifest_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    original_fsync = os.fsync

    def record_fsync(descriptor: int) -> None:
        flushed.append(os.fstat(descriptor).st_ino)
        original_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", record_fsync)
    path = tmp_path / "model"
    with create_folder(path) as inside:
        (inside / "deep").mkdir()
        (inside / "deep" / "b").write_text("b")
    expected = [path / "deep", path / "deep" / "b", path / MANIFEST, path, tmp_path]
    assert flushed == [item.stat().st_ino for item in expected]


def test_every_difference_is_named(folder: Path) -> None:
    (folder / "model.toml").write_text("d_model = 9\n")
    (folder / "deep" / "weights.bin").write_bytes(b"short")
    (folder / "stranger").write_text("hello")
    with pytest.raises(DamagedError) as caught:
        verify(folder)
    message = str(caught.value)
    assert "model.toml has different content" in message
    assert "deep/weights.bin has 5 bytes, not 256" in message
    assert "stranger is not in the manifest" in message
    (folder / "model.toml").unlink()
    with pytest.raises(DamagedError, match=r"model\.toml is missing"):
        verify(folder)


@pytest.mark.parametrize("name", ["model.toml", "deep/weights.bin", MANIFEST])
def test_any_flipped_bit_is_found(folder: Path, name: str) -> None:
    path, rng = folder / name, random.Random(0)
    good = path.read_bytes()
    for _ in range(100):
        bad = bytearray(good)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(bad))
        with pytest.raises(DamagedError):
            verify(folder)
    path.write_bytes(good)
    verify(folder)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b'{"files": 3}', b"[" * 100_000, b'{"files": {"a": 1}, "format": 1}']
)
def test_a_strange_manifest_is_damage_and_no_crash(folder: Path, content: bytes) -> None:
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(DamagedError, match="manifest is damaged"):
        verify(folder)


def test_names_that_leave_the_folder_are_refused(folder: Path) -> None:
    text = (folder / MANIFEST).read_text().replace("deep/weights.bin", "../outside.bin")
    (folder / MANIFEST).write_text(text)
    with pytest.raises(DamagedError, match="manifest is damaged"):
        verify(folder)


def test_links_are_neither_sealed_nor_trusted(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.toml"
    outside.write_text("d_model = 8\n")
    (folder / "model.toml").unlink()
    (folder / "model.toml").symlink_to(outside)
    with pytest.raises(DamagedError, match=r"model\.toml is missing"):
        verify(folder)
    with pytest.raises(RegardError, match="Only regular files"):
        write_manifest(folder)


def test_a_linked_folder_is_a_stranger(folder: Path, tmp_path: Path) -> None:
    (folder / "more").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(DamagedError, match="more is not in the manifest"):
        verify(folder)


def test_without_a_manifest_nothing_is_good(tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match="no manifest"):
        verify(tmp_path)


def test_a_full_disk_is_said_with_its_place_and_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(RegardError) as caught, explain_full_disk(tmp_path / "step", 12_345):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert "The disk is full: No space left on device. 12,345 bytes are needed, and" in caught.value.message
    assert caught.value.location == str(tmp_path / "step")
    with pytest.raises(RegardError) as caught, explain_full_disk(tmp_path):
        raise OSError(errno.EDQUOT, "Disk quota exceeded", "a/file")
    assert (caught.value.message, caught.value.location) == ("The disk is full: Disk quota exceeded.", "a/file")
    with pytest.raises(PermissionError), explain_full_disk(tmp_path):
        raise PermissionError(errno.EACCES, "Permission denied")


def test_folder_on_a_full_disk_names_size_and_leaves_no_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with (
        pytest.raises(RegardError, match=r"The disk is full: .* 12 bytes are needed") as caught,
        create_folder(tmp_path / "new" / "model", size=12) as inside,
    ):
        (inside / "weights").touch()
    assert caught.value.location == str(tmp_path / "new" / "model")
    assert "Free some space" in (caught.value.hint or "")
    assert [path.name for path in tmp_path.rglob("*")] == ["new"]


def test_files_hashed_in_threads_have_the_same_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with create_folder(tmp_path / "model") as folder:
        for number in range(9):
            (folder / f"{number}.bin").write_bytes(bytes([number]) * 100)
    monkeypatch.setattr("regard.base.files.PARALLEL_BYTES", 0)
    verify(tmp_path / "model")
    for number in (2, 7):
        (tmp_path / "model" / f"{number}.bin").write_bytes(b"x" * 100)
    with pytest.raises(DamagedError) as caught:
        verify(tmp_path / "model")
    assert caught.value.message.count("different content") == 2
    assert "2.bin has different content (sha256); 7.bin has different content (sha256)" in caught.value.message
