"""Not only translation: commands to actions (SCAN) and words to sounds (CMUdict), by `regard train` without a config.

    python examples/sequences/run.py scan --data ../shared/data/scan --minutes 30
    python examples/sequences/run.py cmudict --data ../shared/data/cmudict --minutes 20

Both corpora become two files of lines; the rest is `regard train --source ... --target ... --minutes 20`.

SCAN      the `simple` split of Lake and Baroni 2018: exact match of the actions
CMUdict   one word in twenty (by the sha1 of the word) is tested, another validates; stress is removed from the sounds.
          A word may have several pronunciations: training sees all, and the nearest one counts in the test.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import torch

from regard.data.readers.text_files import read_decompressed
from regard.measure.bleu_chrf import exact_match
from regard.measure.error_rate import wer
from regard.pipeline.load import load
from regard.pipeline.translator import Translator
from regard.train.fit import is_finished

Pairs = list[tuple[str, str]]


def main() -> None:
    """Prepare, train, test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["scan", "cmudict"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("sequences"))
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    splits = read_scan(arguments.data) if arguments.task == "scan" else read_cmudict(arguments.data)
    folder = arguments.out / arguments.task
    files = write_files(splits, folder)
    run = folder / "run"
    if not is_finished(run):
        new_run_options = [
            *files,
            "--out",
            str(run),
            "--minutes",
            str(arguments.minutes),
            "--set",
            f"device.threads={arguments.threads}",
        ]
        train_options = ["--resume", str(run)] if run.exists() else new_run_options
        if code := subprocess.run([sys.executable, "-m", "regard", "train", *train_options], check=False).returncode:  # noqa: S603 - ours
            sys.exit(code)  # it has said why; 75 is a run that was asked to stop, and goes on when started again
    translator = load(run)
    assert isinstance(translator, Translator)  # noqa: S101 - `regard train` made it
    torch.set_num_threads(arguments.threads)
    print(json.dumps(evaluate(translator, splits["test"])))


def read_scan(data: Path) -> dict[str, Pairs]:
    """Train and test of the `simple` split."""
    splits: dict[str, Pairs] = {}
    for split in ("train", "test"):
        path = next(data.rglob(f"tasks_{split}_simple.txt*"))  # plain or packed
        splits[split] = [tuple(line.removeprefix("IN: ").split(" OUT: ")) for line in _read_lines(path)]  # type: ignore[misc]
    return splits


def read_cmudict(data: Path) -> dict[str, Pairs]:
    """Every word goes into one split with all its pronunciations."""
    splits: dict[str, Pairs] = {"train": [], "valid": [], "test": []}
    for line in _read_lines(next(data.rglob("cmudict.dict*"))):
        word, *sounds = line.partition("#")[0].split()
        word = word.partition("(")[0]
        bucket = int(hashlib.sha1(word.encode(), usedforsecurity=False).hexdigest(), 16) % 20
        split = {0: "test", 1: "valid"}.get(bucket, "train")
        splits[split].append((word, " ".join(sound.rstrip("012") for sound in sounds)))
    return {split: list(dict.fromkeys(pairs)) for split, pairs in splits.items()}


def write_files(splits: dict[str, Pairs], folder: Path) -> list[str]:
    """The files of training and validation, and the options that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    options = []
    for split, prefix in (("train", "--"), ("valid", "--validation-")):
        for number, side in enumerate(("source", "target")):
            if split in splits:
                path = folder / f"{split}.{side}"
                path.write_text("".join(f"{pair[number]}\n" for pair in splits[split]), encoding="utf-8")
                options += [f"{prefix}{side}", str(path)]
    return options


def evaluate(translator: Translator, pairs: Pairs) -> dict[str, float]:
    """Exact match with any reference, and errors per token of the nearest one, both in percent."""
    references_by_source: dict[str, list[str]] = defaultdict(list)
    for source, target in pairs:
        references_by_source[source].append(target)
    references = [tuple(targets) for targets in references_by_source.values()]
    outputs = [translation.text for translation in translator.translate(list(references_by_source))]
    return {
        "exact match": exact_match(outputs, references).value,
        "error rate": wer(outputs, references).value,
        "tested": len(references),
    }


def _read_lines(path: Path) -> Iterator[str]:
    yield from b"".join(read_decompressed(str(path))).decode().splitlines()


if __name__ == "__main__":
    main()
