"""Sentiment of film reviews (SST-2): train from scratch with three seeds, pre-train, or prompt a language model.

python examples/sst2/run.py scratch --data DATA --out OUT
python examples/sst2/run.py pretrain --data DATA --out OUT
python examples/sst2/run.py prompt --data DATA --out OUT --model LANGUAGE_MODEL --shots 4

DATA is the folder of the corpora, whose paths the run files name; commands run there. OUT is a new folder for models,
labels and scores; a step whose output exists is not repeated.
"""

import argparse
import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
TEST = "sst2_sentences/test.tsv.gz"
SEEDS = (1, 2, 3)
NAMES = {"0": "negative", "1": "positive"}  # the labels of the files, and as a prompt writes them
TEMPLATE = r"Review: {text}\nSentiment: {label}\n\n"


def call_regard(arguments: Sequence[str], data: Path) -> str:
    """Run a command of Regard in the data folder and return what it prints."""
    command = [sys.executable, "-m", "regard", *arguments]
    done = subprocess.run(command, cwd=data, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own
    return done.stdout


def train(name: str, out: Path, data: Path, seed: int) -> Path:
    """Train the run file of this name, unless it is done; return the run folder."""
    folder = out / f"{name}-{seed}"
    if not (folder / "best").is_dir():
        call_regard(["train", str(HERE / f"{name}.toml"), "--out", str(folder), "--seed", str(seed)], data)
    return folder


def evaluate(arguments: Sequence[str], data: Path) -> float:
    """Return the accuracy of a model or of a file of labels on the test sentences, in percent."""
    evaluation = json.loads(call_regard(["evaluate", *arguments, "--data", TEST, "--json"], data))
    return float(evaluation["scores"]["accuracy"]["value"])


def train_from_scratch(out: Path, data: Path) -> list[float]:
    """Return the test accuracy of each seed."""
    folders = [train("scratch", out, data, seed) for seed in SEEDS]
    return [evaluate([str(folder), "--output", str(out / f"{folder.name}.labels.txt")], data) for folder in folders]


def read_rows(path: Path) -> list[tuple[str, str]]:
    """Read sentences and their labels."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [(text, label) for text, label in (line.rstrip("\n").split("\t") for line in file)]


def prompt(model: str, count: int, out: Path, data: Path) -> float:
    """Return the test accuracy of a language model that is shown the first `count` training sentences, half of each."""
    rows = read_rows(data / "sst2_sentences/train.tsv.gz")
    shots = [row for label in NAMES for row in [row for row in rows if row[1] == label][: count // len(NAMES)]]
    shots.sort(key=rows.index)
    out.mkdir(parents=True, exist_ok=True)
    (out / "shots.tsv").write_text("".join(f"{text}\t{NAMES[label]}\n" for text, label in shots), encoding="utf-8")
    (out / "test.txt").write_text("".join(f"{text}\n" for text, _ in read_rows(data / TEST)), encoding="utf-8")
    arguments = ["label", model, "--input", str(out / "test.txt"), "--template", TEMPLATE, "--json"]
    arguments += ["--labels", ",".join(NAMES.values()), *(["--examples", str(out / "shots.tsv")] if shots else [])]
    numbers = {name: label for label, name in NAMES.items()}
    predictions = [numbers[json.loads(line)["label"]] for line in call_regard(arguments, data).splitlines()]
    labels = out / f"prompt-{count}.labels.txt"
    labels.write_text("".join(f"{label}\n" for label in predictions), encoding="utf-8")
    return evaluate(["--hypotheses", str(labels)], data)


def main() -> None:
    """Run one step and print its accuracies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("scratch", "pretrain", "prompt"))
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--out", type=Path, required=True, help="folder of models, labels and scores")
    parser.add_argument("--model", help="prompt: a language model")
    parser.add_argument("--shots", type=int, default=0, help="prompt: number of examples")
    arguments = parser.parse_args()
    out, data = arguments.out.resolve(), arguments.data.resolve()
    if arguments.step == "pretrain":
        print(train("pretrain", out, data, SEEDS[0]))
    elif arguments.step == "scratch":
        accuracies = train_from_scratch(out, data)
        print(*(f"{accuracy:.2f}" for accuracy in accuracies), f"mean {sum(accuracies) / len(accuracies):.2f}")
    elif arguments.model is None:
        parser.error("prompt needs --model")
    else:
        print(f"{prompt(str(Path(arguments.model).resolve()), arguments.shots, out, data):.2f}")


if __name__ == "__main__":
    main()
