"""Sentiment of film reviews (SST-2): from scratch, pre-trained, fine-tuned fully and by LoRA, and by prompting.

python examples/sst2/run.py baseline --data DATA --out OUT
python examples/sst2/run.py scratch --data DATA --out OUT
python examples/sst2/run.py full lora --data DATA --out OUT --encoder ENCODER
python examples/sst2/run.py pretrained --data DATA --out OUT
python examples/sst2/run.py prompt --data DATA --out OUT --language-model MODEL --shots 0 4 16
python examples/sst2/run.py compare                # score the labels in this folder again

DATA is the folder of the corpora, whose paths the run files name; commands run there. OUT is a folder for models,
labels and CPU times; a step whose output exists is not repeated. ENCODER is an imported MiniLM, MODEL a language model.
`compare` scores all labels again and compares methods by a paired bootstrap.
"""

import argparse
import gzip
import json
import random
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
TRAIN, DEV, TEST = (f"sst2_sentences/{split}.tsv.gz" for split in ("train", "dev", "test"))
SEEDS = (1, 2, 3)
TUNING = ["--steps", "620", "--set", "validation.every_steps=155", "--set", "train.save_every=155"]  # four epochs
RATE = "train.schedule={kind = 'linear', lr = 0.0025, warmup = 62}"  # of LoRA: better on validation than the default
SMALL = ["--set", "train.schedule={kind = 'linear', lr = 0.0015, warmup = 62}"]  # of the small encoder: likewise
SMALL += ["--set", "model.encoder.dropout={embedding = 0.1, sublayer = 0.1, attention = 0.1}"]
METHODS = {"full": TUNING, "lora": [*TUNING, "--lora", "8", "--set", RATE], "pretrained": [*TUNING, *SMALL]}
NAMES = {"0": "negative", "1": "positive"}  # the labels of the files, and as a prompt writes them
TEMPLATE = r"Review: {text}\nSentiment: {label}\n\n"
COMPARISONS = (
    ("full", "lora"),
    ("pretrained", "scratch"),
    ("full", "scratch"),
    ("full", "baseline"),
    *(("full", f"prompt-{shots}") for shots in (0, 4, 16)),
)
RESAMPLES = 10_000


def call_regard(arguments: Sequence[str], data: Path) -> tuple[str, float]:
    """Run a command of Regard in the data folder; return what it prints, and its CPU minutes."""
    command = [sys.executable, "-m", "regard", *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=data, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 60


def train(name: str, arguments: Sequence[str], out: Path, data: Path) -> Path:
    """Train, or tune, and label the test sentences, unless it is done; return the file of labels."""
    labels = out / f"{name}.labels.txt"
    if not labels.is_file():
        folder = out / name
        start = ["train", "--resume", str(folder)] if (folder / "run.toml").is_file() else [*arguments, "--out", folder]
        _, minutes = call_regard([str(argument) for argument in start], data)
        write_minutes(out, name, minutes)
        call_regard(["evaluate", str(folder), "--data", TEST, "--output", str(labels)], data)
    return labels


def train_with_seed(method: str, parent: Path | None, seed: int, out: Path, data: Path) -> None:
    """Train from scratch, or tune a parent."""
    arguments = ["train", str(HERE / "scratch.toml")]
    if method in METHODS:
        arguments = ["tune", str(parent), TRAIN, "--validation", DEV, *METHODS[method]]
    train(f"{method}-{seed}", [*arguments, "--seed", str(seed)], out, data)


def write_minutes(out: Path, name: str, minutes: float) -> None:
    """Add the CPU minutes of a command to `minutes.json`."""
    path = out / "minutes.json"
    times = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    times[name] = round(times.get(name, 0) + minutes, 1)
    path.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")


def read_rows(path: Path) -> list[tuple[str, str]]:
    """Read sentences and their labels."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [(text, label) for text, label in (line.rstrip("\n").split("\t") for line in file)]


def label_by_baseline(out: Path, data: Path) -> None:
    """Write the labels of naive Bayes, learned from the same sentences."""
    script = HERE.parent / "labels" / "baselines.py"
    command = [sys.executable, str(script), TRAIN, TEST]
    done = subprocess.run(command, cwd=data, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own
    (out / "baseline.labels.txt").write_text(done.stdout, encoding="utf-8")


def prompt(model: Path, count: int, sentences: int | None, out: Path, data: Path) -> None:
    """Write the labels of a language model that is shown the first `count` training sentences, half of each label."""
    labels = out / f"prompt-{count}.labels.txt"
    if labels.is_file():
        return
    rows = read_rows(data / TRAIN)
    shots = [row for label in NAMES for row in [row for row in rows if row[1] == label][: count // len(NAMES)]]
    shots.sort(key=rows.index)
    examples, texts = out / f"shots-{count}.tsv", out / "test.txt"
    examples.write_text("".join(f"{text}\t{NAMES[label]}\n" for text, label in shots), encoding="utf-8")
    texts.write_text("".join(f"{text}\n" for text, _ in read_rows(data / TEST)[:sentences]), encoding="utf-8")
    arguments = ["predict", str(model), "--input", str(texts), "--template", TEMPLATE, "--json"]
    arguments += ["--labels", ",".join(NAMES.values()), *(["--examples", str(examples)] if shots else [])]
    output, minutes = call_regard(arguments, data)
    write_minutes(out, labels.name.removesuffix(".labels.txt"), minutes)
    numbers = {name: label for label, name in NAMES.items()}
    predictions = [numbers[json.loads(line)["label"]] for line in output.splitlines()]
    labels.write_text("".join(f"{label}\n" for label in predictions), encoding="utf-8")


def read_correct(path: Path, references: Sequence[str]) -> list[bool]:
    """Return for each test sentence whether its label in this file is right."""
    labels = path.read_text(encoding="utf-8").split()
    return [label == reference for label, reference in zip(labels, references, strict=False)]


def compare(out: Path) -> None:
    """Print the accuracy of every file of labels, means over seeds, and differences with their 95 % intervals."""
    references = gzip.decompress((HERE.parent / "gold" / "sst2-test.txt.gz").read_bytes()).decode().split()
    correct: dict[str, list[list[bool]]] = {}
    for path in sorted(out.glob("*.labels.txt*")):
        name = path.name.split(".")[0]
        method = name if name.startswith("prompt") else name.split("-")[0]
        correct.setdefault(method, []).append(read_correct(path, references))
    for method, runs in correct.items():
        accuracies = [100 * sum(run) / len(run) for run in runs]
        mean = sum(accuracies) / len(accuracies)
        values = ", ".join(f"{accuracy:.2f}" for accuracy in accuracies)
        print(f"{method}: {mean:.2f} ({values}) on {len(runs[0]):,} sentences")
    for first, second in COMPARISONS:
        if first in correct and second in correct:
            mean, low, high = bootstrap(correct[first], correct[second])
            print(f"{first} - {second}: {mean:+.2f} (95 % interval {low:+.2f} to {high:+.2f})")


def bootstrap(first: list[list[bool]], second: list[list[bool]]) -> tuple[float, float, float]:
    """Return the difference of the mean accuracies over seeds, and its interval over resampled test sentences."""
    means = ([sum(column) / len(runs) for column in zip(*runs, strict=True)] for runs in (first, second))
    differences = [100 * (a - b) for a, b in zip(*means, strict=False)]  # prompts label the first sentences only
    generator, count = random.Random(1), len(differences)  # noqa: S311 - no secret
    samples = sorted(sum(generator.choices(differences, k=count)) / count for _ in range(RESAMPLES))
    return sum(differences) / count, samples[RESAMPLES // 40], samples[-RESAMPLES // 40]


def main() -> None:
    """Run the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = ("baseline", "scratch", "pretrain", *METHODS, "prompt", "compare")
    parser.add_argument("steps", nargs="+", choices=steps)
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--out", type=Path, default=HERE / "labels", help="folder of models, labels and CPU times")
    parser.add_argument("--encoder", type=Path, help="an imported encoder, to tune")
    parser.add_argument("--language-model", type=Path, help="prompt: a language model")
    parser.add_argument("--shots", type=int, nargs="+", default=[0], help="prompt: numbers of examples")
    parser.add_argument("--sentences", type=int, help="prompt: label the first test sentences only")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), help="seeds of training and tuning")
    options = parser.parse_args()
    if options.steps == ["compare"]:
        compare(options.out)
        return
    if options.data is None:
        parser.error("training needs --data")
    out, data = options.out.resolve(), options.data.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if options.encoder is None and set(METHODS) - {"pretrained"} & set(options.steps):
        parser.error("tuning needs --encoder")
    if options.language_model is None and "prompt" in options.steps:
        parser.error("prompt needs --language-model")
    if "baseline" in options.steps:
        label_by_baseline(out, data)
    if {"pretrain", "pretrained"} & set(options.steps) and not (out / "pretrain" / "best").is_dir():
        arguments = ["train", str(HERE / "pretrain.toml"), "--out", str(out / "pretrain")]
        write_minutes(out, "pretrain", call_regard(arguments, data)[1])
    for seed in options.seeds:
        for method in (step for step in options.steps if step in ("scratch", *METHODS)):
            parent = out / "pretrain" if method == "pretrained" else options.encoder
            train_with_seed(method, parent and parent.resolve(), seed, out, data)
    for count in options.shots if "prompt" in options.steps else ():
        prompt(options.language_model.resolve(), count, options.sentences, out, data)
    if "compare" in options.steps:
        compare(out)


if __name__ == "__main__":
    main()
