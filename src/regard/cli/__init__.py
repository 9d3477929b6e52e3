"""The `regard` command: one file per command or group of commands. Only this package imports Typer and Rich."""

import io
import signal
import sys

_INTERRUPTED = 128 + signal.SIGINT  # exit code


def main() -> None:
    """Run the command and exit with its code; Ctrl-C never prints a traceback."""
    _set_encoding()
    try:
        from regard.cli.app import run  # takes a second, and Ctrl-C may arrive during it

        code = run()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # interpreter shutdown also takes time
    except KeyboardInterrupt:  # Typer catches it only while the command runs
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = _INTERRUPTED
    sys.exit(code)


def _set_encoding() -> None:
    """Write UTF-8 to pipes and files, as commands read it; on Windows, their default is an 8-bit encoding."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() not in ("utf-8", "utf8"):
            if stream.isatty():
                stream.reconfigure(errors="replace")  # a terminal shows no other characters
            else:
                stream.reconfigure(encoding="utf-8")


__all__ = ["main"]
