"""Run the programs that write cases for tests, in one process: python make_cases.py FOLDER PROGRAM...

Importing torch takes longer than most of them need. Each program writes to FOLDER/PROGRAM, which exists only if it
ended without an error.
"""

import os
import runpy
import sys
from pathlib import Path

from tests.look import conftest  # noqa: F401 - what most programs import; each runs in a copy of this process


def main() -> None:
    """Run one program after the other."""
    here, folder = Path(__file__).parent, Path(sys.argv[1])
    for name in sys.argv[2:]:
        target = folder / f"{name}.part"
        target.mkdir()
        if os.fork() == 0:
            sys.argv = [f"{name}.py", str(target)]
            runpy.run_path(str(here / f"{name}.py"), run_name="__main__")
            return
        if os.wait()[1] == 0:
            target.rename(folder / name)


if __name__ == "__main__":
    main()
