"""Print the files of Regard whose functions run while `regard translate FOLDER TEXT` translates a text.

The command runs twice: the first run imports everything, the second is profiled. Only the command itself counts,
without the parsing of its arguments and without loading the model (`load_as`).
"""

import sys
from pathlib import Path
from types import FrameType

import regard
from regard.cli import main
from regard.cli.translate import translate

ROOT = Path(regard.__file__).parent


def run_command() -> None:
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def trace_files() -> list[str]:
    """Run the command of `sys.argv` and return the files whose functions ran, in the order of their first call."""
    files: dict[str, None] = {}
    depths = {"command": 0, "load": 0}

    def record(frame: FrameType, event: str, _: object) -> None:
        change = {"call": 1, "return": -1}.get(event, 0)
        if frame.f_code is translate.__code__:
            depths["command"] += change
        if frame.f_code.co_name == "load_as":
            depths["load"] += change
        if event == "call" and depths["command"] and not depths["load"]:
            files[frame.f_code.co_filename] = None

    run_command()
    sys.setprofile(record)
    try:
        run_command()
    finally:
        sys.setprofile(None)
    return [Path(file).relative_to(ROOT).as_posix() for file in files if Path(file).is_relative_to(ROOT)]


if __name__ == "__main__":
    sys.stderr.write("\n".join(trace_files()))
