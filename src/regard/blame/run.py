"""Open the run whose model is questioned."""

import threading
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.blame.candidates import BlameCandidate, CandidateSearch
from regard.blame.question import ask
from regard.config.codec import RUN_FILES
from regard.data.shards.shard import Shards
from regard.store.run_folder import RunFolder
from regard.tasks.load import AnyPipeline, load
from regard.training.data import prepare_data

SHOWN = 5  # candidates on a page


def open_run(folder: Path) -> tuple[AnyPipeline, Shards]:
    """Return the best model of a run and its training corpus.

    Raises:
        RegardError: If the folder is not a run, for example an exported model.
    """
    run_folder = RunFolder(folder)
    if not run_folder.run.is_file():
        hint = "Give the folder that `regard train` wrote: it has the training data."
        raise RegardError("This is not a run folder.", location=str(folder), hint=hint)
    data = prepare_data(RUN_FILES.load(run_folder.run), run_folder, lambda _: None, verify=False)
    return load(folder), data.train


class PageBlame:
    """Candidates for the words on a page. The run is opened at the first question, in PyTorch.

    Args:
        folder: The run folder of a translation model.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._opened: tuple[AnyPipeline, CandidateSearch] | None = None

    @staticmethod
    def is_possible(folder: Path) -> bool:
        """Return whether a folder has training data."""
        run_folder = RunFolder(folder)
        return run_folder.run.is_file() and (run_folder.shards / "train").is_dir()

    def answer(self, source: str, output: str, word: str, target_language: str | None = None) -> dict[str, Any]:
        """Return the candidates for a word of a translation, with the names of their files, not the paths.

        Raises:
            RegardError: If the output does not contain the word.
        """
        with self._lock:
            if self._opened is None:
                pipeline, shards = open_run(self._folder)
                self._opened = pipeline, CandidateSearch(shards, pipeline.make_scorer(1.0))
            pipeline, search = self._opened
            found = search.find(ask(pipeline, source, word, target_language, output=output), SHOWN)
        return {"candidates": list(map(_describe, found))}


def _describe(candidate: BlameCandidate) -> dict[str, Any]:
    first, *copies = candidate.locations
    location = f"{Path(first.file).name}:{first.line}"
    return {
        "location": location,
        "copies": len(copies),
        "source": candidate.source,
        "target": candidate.target,
        "score": candidate.lexical,
    }
