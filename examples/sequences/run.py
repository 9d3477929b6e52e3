"""Commands to actions (SCAN) and words to phonemes (CMUdict), with `regard train` and no configuration.

    python examples/sequences/run.py scan --data ../shared/data/scan --minutes 30
    python examples/sequences/run.py cmudict --data ../shared/data/cmudict --minutes 20

The script writes both corpora as two files of lines and runs `regard train --source ... --target ... --minutes 20`.

SCAN      the `simple` split of Lake and Baroni 2018; exact match of the actions
CMUdict   one word in twenty (by the sha1 of the word) is a test word, another one in twenty is for validation; stress
          is removed from the phonemes. If a word has several pronunciations, training uses all of them, and the test
          counts the nearest one.
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
from regard.tasks.load import load
from regard.tasks.translation.translator import Translator
from regard.training.run import is_finished

Pairs = list[tuple[str, str]]


def main() -> None:
    """Prepare the corpus, train, and evaluate on the test set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["scan", "cmudict"])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpus")
    parser.add_argument("--out", type=Path, default=Path("sequences"), help="folder of the run")
    parser.add_argument("--minutes", type=float, default=20, help="time budget of training")
    parser.add_argument("--threads", type=int, default=1, help="number of CPU threads")
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
            sys.exit(code)  # `regard train` has printed why; 75: stopped on request, continues when started again
    translator = load(run)
    assert isinstance(translator, Translator)  # noqa: S101 - `regard train` made it
    torch.set_num_threads(arguments.threads)
    print(json.dumps(evaluate(translator, splits["test"])))


def read_scan(data: Path) -> dict[str, Pairs]:
    """Read training and test pairs of the `simple` split."""
    splits: dict[str, Pairs] = {}
    for split in ("train", "test"):
        path = next(data.rglob(f"tasks_{split}_simple.txt*"))  # with or without .gz
        splits[split] = [tuple(line.removeprefix("IN: ").split(" OUT: ")) for line in _read_lines(path)]  # type: ignore[misc]
    return splits


def read_cmudict(data: Path) -> dict[str, Pairs]:
    """Read words and phonemes; all pronunciations of a word are in the same split."""
    splits: dict[str, Pairs] = {"train": [], "valid": [], "test": []}
    for line in _read_lines(next(data.rglob("cmudict.dict*"))):
        word, *phonemes = line.partition("#")[0].split()
        word = word.partition("(")[0]
        bucket = int(hashlib.sha1(word.encode(), usedforsecurity=False).hexdigest(), 16) % 20
        split = {0: "test", 1: "valid"}.get(bucket, "train")
        splits[split].append((word, " ".join(phoneme.rstrip("012") for phoneme in phonemes)))
    return {split: list(dict.fromkeys(pairs)) for split, pairs in splits.items()}


def write_files(splits: dict[str, Pairs], folder: Path) -> list[str]:
    """Write the training and validation files and return the options of `regard train` that name them."""
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
    """Return exact match with any reference, and the error rate against the nearest one, both in percent."""
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
