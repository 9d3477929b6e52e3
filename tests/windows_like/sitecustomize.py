"""Give Python on Linux the limits of Python on Windows; a process with this folder in PYTHONPATH imports it first.

POSIX-only modules, signals and functions are missing, text files have cp1252 as their default encoding, a folder
cannot be opened, a file opened for reading cannot be flushed, and an open file cannot be renamed or removed.
"""

import builtins
import ctypes
import errno
import io
import locale
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
SIGNALS = {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM", "SIG_DFL", "SIG_IGN"}  # Windows has these
FUNCTIONS = {
    os: """chown fchmod fork getegid geteuid getgid getloadavg getpgid getuid killpg mkfifo pread pwrite
        sched_getaffinity setsid statvfs sysconf
        O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK""",
    signal: "alarm getitimer pause pthread_kill pthread_sigmask setitimer sigwait",
}
LOCKER = "portalocker"  # a dependency of sacrebleu; it uses fcntl unless `os.name` says Windows
ENCODING = "cp1252"
MEMORY = 8 << 30


def hide() -> None:
    """Remove what Windows does not have."""
    real_import: Any = builtins.__import__

    def import_module(name: str, variables: Any = None, *rest: Any, **named: Any) -> Any:
        if name in MODULES and (variables or {}).get("__package__") != LOCKER:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return real_import(name, variables, *rest, **named)

    builtins.__import__ = import_module  # type: ignore[assignment]
    for module, names in FUNCTIONS.items():
        for name in names.split():
            delattr(module, name)
    for name in [name for name in vars(signal) if name.startswith("SIG") and name not in SIGNALS]:
        delattr(signal, name)


def add_windows_functions() -> None:
    """Add the one function of Windows that Regard calls."""

    def fill_memory_status(pointer: Any) -> int:
        status = pointer._obj
        assert ctypes.sizeof(status) == status[0] == 64
        status[1] = MEMORY
        return 1

    ctypes.windll = SimpleNamespace(  # type: ignore[attr-defined]
        kernel32=SimpleNamespace(GlobalMemoryStatusEx=fill_memory_status)
    )


def change_encoding() -> None:
    """Read and write text as cp1252 where the caller gives no encoding."""
    real_open: Any = io.open

    def open_text(file: Any, mode: str = "r", *options: Any, **named: Any) -> Any:
        encoding = options[1] if len(options) > 1 else named.get("encoding")
        if "b" not in mode and encoding in (None, "locale"):
            options, named = options[:1], {**named, "encoding": ENCODING}
        return real_open(file, mode, *options, **named)

    builtins.open = io.open = open_text
    locale.getpreferredencoding = lambda do_setlocale=True: ENCODING  # noqa: ARG005
    locale.getencoding = lambda: ENCODING


def restrict_files() -> None:
    """Refuse to open folders, to flush files opened for reading, and to move or remove open files."""
    real_open, real_fsync = os.open, os.fsync

    def open_file(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if Path(path).is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real_open(path, flags, *rest, **named)

    def fsync(descriptor: int) -> None:
        flags = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").split("flags:")[1].split()[0]
        if int(flags, 8) & (os.O_WRONLY | os.O_RDWR) == 0:
            raise OSError(errno.EBADF, "Bad file descriptor")
        real_fsync(descriptor)

    os.open, os.fsync = open_file, fsync  # type: ignore[assignment]
    for name in ("remove", "rename", "replace", "rmdir", "unlink"):
        setattr(os, name, refuse_open_files(getattr(os, name)))
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    tempfile.TemporaryFile = tempfile.NamedTemporaryFile  # type: ignore[assignment]


def refuse_open_files(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function that raises an error if one of its paths, or a file in it, is open in this process."""

    def call(*paths: Any, **named: Any) -> None:
        for path in paths:
            name = os.path.realpath(path)
            if any(used == name or used.startswith(f"{name}/") for used in list_open_files()):
                raise PermissionError(errno.EACCES, "The file is open", str(path))
        function(*paths, **named)

    return call


def list_open_files() -> list[str]:
    """List the paths of open and of mapped files."""
    paths = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor that lists the folder
            paths.append(str(link.readlink()))
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return paths + [line.split(maxsplit=5)[5] for line in lines if "/" in line]


hide()
add_windows_functions()
change_encoding()
restrict_files()
