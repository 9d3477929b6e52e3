"""Marian's decoder, in a process with its own Python, on request: for `bench.decode`.

A request is a line of JSON with the sources of one batch as words; the reply has the translations and the CPU-seconds
of Marian's call, all threads included. Marian's Python runs this file; Regard need not be installed there.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.peers import ROOT

OPTIONS: dict[str, object] = {
    "normalize": 1,
    "mini-batch": 64,
    "maxi-batch": 1,
    "maxi-batch-sort": "src",
    "max-length": 1000,
    "cpu-threads": 1,
    "workspace": 2000,  # MB
}
FLAGS = ("--allow-unk", "--allow-special", "--quiet", "--quiet-translation")  # nothing to suppress: less work
GREEDY_FLAG = "--skip-cost"  # logits instead of log-probabilities: the same choice for a beam of 1, and faster


class MarianDecoder:
    """The process, with a clock of the CPU time that it has spent on translations."""

    def __init__(self, program: Path, folder: Path) -> None:
        """Start it with the Python of Marian's program; the folder has `model.npz` and `vocabulary.yml`."""
        self._cpu_seconds = 0.0
        self._log = folder / "marian.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [str(program.parent / "python"), "-m", "bench.peers.marian_decoder", str(folder)],
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def translate(self, lines: list[str], beam_size: int, max_length: int) -> list[str]:
        """Translate a batch; every output has at most `max_length` words."""
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        request = {"lines": lines, "beam_size": beam_size, "max_length": max_length}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline()
        if not reply:
            log_tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
            raise SystemExit(f"Marian exited unexpectedly. The end of its log:\n{log_tail}")
        result = json.loads(reply)
        self._cpu_seconds += result["seconds"]
        translations: list[str] = result["lines"]
        return translations

    def read_clock(self) -> float:
        """Return the CPU-seconds of all translations so far."""
        return self._cpu_seconds

    def close(self) -> None:
        """Close the pipe; the process then exits."""
        self._process.communicate()


def main(folder: Path) -> None:
    import pymarian

    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what Marian prints goes to the log
    translators: dict[int, Any] = {}
    for request in map(json.loads, sys.stdin):
        lines, beam_size = request["lines"], request["beam_size"]
        if beam_size not in translators:
            translators[beam_size] = pymarian.Translator(" ".join(make_options(folder, beam_size)))
        factor = make_length_factor(lines, request["max_length"])
        start_time = time.process_time()
        translations = translators[beam_size].translate(lines, **{"max-length-factor": factor})
        seconds = time.process_time() - start_time
        print(json.dumps({"lines": translations, "seconds": seconds}), file=replies)


def make_options(folder: Path, beam_size: int) -> list[str]:
    """Return the options of Marian's command line."""
    vocabulary = str(folder / "vocabulary.yml")
    arguments = ["--models", str(folder / "model.npz"), "--vocabs", vocabulary, vocabulary]
    for option, value in {**OPTIONS, "beam-size": beam_size}.items():
        arguments += [f"--{option}", str(value)]
    return [*arguments, *FLAGS, *([GREEDY_FLAG] if beam_size == 1 else [])]


def make_length_factor(lines: list[str], max_length: int) -> float:
    """Return the factor by which Marian stops after `max_length` words.

    It stops when the number of words reaches factor x the longest source of the batch, eos included.

    >>> make_length_factor(["t5 t6 t7", "t8"], 16)
    3.875
    """
    longest = max(len(line.split()) for line in lines) + 1
    return (max_length - 0.5) / longest  # between two numbers of words: rounding has no effect


if __name__ == "__main__":
    main(Path(sys.argv[1]))
