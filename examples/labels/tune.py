"""Tags of words with a pre-trained encoder: parts of speech (UD English EWT) and entities (WNUT-17).

    regard import all-MiniLM-L6-v2 --out minilm
    python examples/labels/tune.py ewt wnut --data DATA --out OUT --encoder minilm

DATA holds `ud_english_ewt` and `wnut17`. OUT gets the models and the tags of the test sets: those of WNUT-17 with and
without the constraints of BIO. A step whose output exists is not repeated.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FILES = {
    "ewt": [f"ud_english_ewt/en_ewt-ud-{split}.conllu.gz" for split in ("train", "dev", "test")],
    "wnut": [f"wnut17/{name}.gz" for name in ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")],
}
OPTIONS = {
    "ewt": ["--steps", "240", "--set", "validation.every_steps=240", "--set", "train.save_every=120"],
    "wnut": ["--steps", "330", "--set", "validation.every_steps=110", "--set", "train.save_every=110"],
}
EVALUATIONS: dict[str, dict[str, list[str]]] = {
    "ewt": {"ewt": []},
    "wnut": {"wnut": [], "wnut-unconstrained": ["--unconstrained"]},
}


def call_regard(arguments: Sequence[str], data: Path) -> str:
    """Run a command of Regard in the data folder and return what it prints."""
    command = [sys.executable, "-m", "regard", *arguments]
    done = subprocess.run(command, cwd=data, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own
    return done.stdout


def main() -> None:
    """Tune, tag the test set and print its scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="+", choices=tuple(FILES))
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--out", type=Path, required=True, help="folder of models and tags")
    parser.add_argument("--encoder", type=Path, required=True, help="an imported encoder")
    options = parser.parse_args()
    out, data = options.out.resolve(), options.data.resolve()
    out.mkdir(parents=True, exist_ok=True)
    for step in options.steps:
        folder, (train, dev, test) = out / step, FILES[step]
        if not (folder / "run.toml").is_file():
            arguments = ["tune", str(options.encoder.resolve()), train, "--validation", dev, "--out", str(folder)]
            call_regard([*arguments, "--seed", "1", *OPTIONS[step]], data)
        else:
            call_regard(["train", "--resume", str(folder)], data)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{step}: {(used.ru_utime + used.ru_stime) / 60:.1f} CPU minutes up to here", flush=True)
        for name, extra in EVALUATIONS[step].items():
            tags = out / f"{name}.tags.txt"
            arguments = ["evaluate", str(folder), "--data", test, "--output", str(tags), "--json", *extra]
            scores = json.loads(call_regard(arguments, data))["scores"]
            print(name, {metric: round(score["value"], 2) for metric, score in scores.items()}, flush=True)


if __name__ == "__main__":
    main()
