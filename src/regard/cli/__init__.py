"""The `regard` command: one file per command or group of commands. Only this package imports Typer and Rich."""

import signal
import sys

_INTERRUPTED = 128 + signal.SIGINT  # exit code


def main() -> None:
    """Run the command and exit with its code; Ctrl-C never prints a traceback."""
    try:
        from regard.cli.app import run  # takes a second, in which Ctrl-C may arrive

        code = run()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the interpreter's exit takes time, too
    except KeyboardInterrupt:  # Typer catches it only while the command runs
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = _INTERRUPTED
    sys.exit(code)


__all__ = ["main"]
