"""Marian's own program on pairs of ids; float32, the only precision in which it trains on a CPU.

The program is C++ without hooks. So signals stop and continue it: it prints a line after every step, which has the
number of target tokens so far, and the kernel counts its CPU time. What it computes between a line and the signal
belongs to the next turn.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.peers import write_words

STEP = re.compile(r"Up\. \d+ .* after ([\d,]+)")
TICKS = os.sysconf("SC_CLK_TCK")


def main(settings: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_corpus(Path(settings["pairs"]), settings["vocabulary"], folder)
        command = [settings["marian"], "train", *_make_options(settings, folder)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # noqa: S603
        try:
            _run_in_turns(process)
        finally:
            process.kill()
            process.wait()


def _run_in_turns(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None  # noqa: S101
    requested, first_token, start_time = 0, 0, 0.0
    for line in process.stderr:
        print(line, end="", file=sys.stderr)
        match = STEP.search(line)
        if match is None:
            continue
        tokens, seconds = int(match[1].replace(",", "")), _read_seconds(process.pid)
        if tokens - first_token < requested:
            continue
        process.send_signal(signal.SIGSTOP)
        print(json.dumps({"tokens": tokens - first_token, "seconds": seconds - start_time}), flush=True)
        request = sys.stdin.readline()
        if not request:
            return
        requested, first_token, start_time = int(request), tokens, seconds
        process.send_signal(signal.SIGCONT)


def _read_seconds(pid: int) -> float:
    """Return the CPU time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _write_corpus(pairs: Path, vocabulary_size: int, folder: Path) -> None:
    """Write the token ids as words: Marian trains on the same tokens as the others."""
    words = ["</s>", "<unk>", *(f"t{token}" for token in range(vocabulary_size))]
    (folder / "vocabulary.yml").write_text("".join(f'"{word}": {number}\n' for number, word in enumerate(words)))
    write_words(pairs, folder, {"train": None})


def _make_options(settings: dict[str, Any], folder: Path) -> list[str]:
    options: dict[str, object] = {
        "type": "transformer",
        "train-sets": [folder / "train.en", folder / "train.de"],
        "vocabs": [folder / "vocabulary.yml"] * 2,
        "model": folder / "model.npz",
        "tempdir": folder,
        "dim-emb": settings["d_model"],
        "enc-depth": settings["layers"],
        "dec-depth": settings["layers"],
        "transformer-heads": settings["heads"],
        "transformer-dim-ffn": settings["hidden"],
        "transformer-ffn-activation": "relu",
        "transformer-dropout": settings["dropout"],
        "label-smoothing": settings["smoothing"],
        "clip-norm": settings["max_grad_norm"],
        "optimizer-params": [0.9, 0.98, 1e-9],
        "learn-rate": settings["rate"],
        "mini-batch-words": settings["tokens"],
        "maxi-batch": 1000,  # batches sorted among 1000 of them by length
        "max-length": settings["max_length"],
        "cpu-threads": 1,
        "data-threads": 1,
        "workspace": 4000,
        "seed": 1,
        "disp-freq": "1u",
        "save-freq": "100000u",
    }
    arguments = ["--tied-embeddings-all", "--sync-sgd"]
    for option, value in options.items():
        arguments += [f"--{option}", *map(str, value if isinstance(value, list) else [value])]
    return arguments


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
