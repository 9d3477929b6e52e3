"""Train a run with planted errors, print the address of its live look, and serve it.

python blame_pages.py FOLDER PORT
"""

import sys
from pathlib import Path

from tests.blame.runs import QUESTION, train_planted_run

from regard.blame.run import PageBlame
from regard.cli import main
from regard.look.build import look_into
from regard.look.local import serve
from regard.look.session import LookSession
from regard.tasks.load import load


def run() -> None:
    """Serve until the process ends."""
    folder = train_planted_run(Path(sys.argv[1]))
    look = look_into(load(folder), QUESTION, name="planted", ablation=False)
    with serve(LookSession(look, PageBlame(folder).answer)) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.argv = ["regard", "serve", f"planted={folder}", "--port", sys.argv[2], "--engine", "torch"]
        sys.argv += ["--set", "blame=true"]
        main()


if __name__ == "__main__":
    run()
