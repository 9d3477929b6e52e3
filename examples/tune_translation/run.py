"""Tune a translation model of Europarl to captions (Multi30k): all parameters, the last layers, LoRA; against scratch.

    python examples/tune_translation/prepare.py --europarl DATA/europarl_deen --multi30k DATA/multi30k/tok --out OUT
    python examples/tune_translation/run.py parent methods fewer scratch scores --out OUT

`parent` trains on Europarl. `methods` tunes it in three ways with equally many updates, `fewer` on fewer pairs, and
`scratch` trains new models on all and on fewer pairs, again with as many updates. Every model translates the validation
and the test set once, with a beam of 5. A step whose output exists is not repeated; `scores` prints BLEU of all
translations in OUT/hypotheses.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU

PARENT_UPDATES = 2000
UPDATES = 300
SIZES = (1_000, 5_000, 29_000)
SHAPE = ["--preset", "tiny", "--set", "train.optimizer={kind = 'muon'}", "--set", "device.threads=1"]
for stack in ("encoder", "decoder"):  # pre-norm and rotary positions, as the students of examples/multi30k
    for setting in ("position={kind = 'rotary'}", "placement='pre'", "final_norm=true"):
        SHAPE += ["--set", f"model.{stack}.{setting}"]
PARENT = [
    *SHAPE,
    *("--set", "model.encoder.dropout={}", "--set", "model.decoder.dropout={}"),  # a few epochs do not overfit
    *("--set", "train.schedule={kind = 'linear', peak = 0.005, warmup = 200}"),
    *("--set", "train.update_tokens=4096", "--set", "data.batch_tokens=2048", "--set", "validation.every=500"),
]
TUNE = ["--updates", str(UPDATES), "--set", "train.update_tokens=4096", "--set", "data.batch_tokens=2048"]
TUNE += ["--set", "validation.every=100", "--set", "train.save_every=100", "--set", "device.threads=1"]
DROPOUT = [f"model.{stack}.dropout={{embedding = 0.1, sublayer = 0.1}}" for stack in ("encoder", "decoder")]
TUNE += ["--set", DROPOUT[0], "--set", DROPOUT[1]]
SCRATCH = ["--set", "train.schedule={kind = 'linear', peak = 0.005, warmup = 50}"]
# Learning rates are the best of few after 60 to 100 updates, by validation loss; those of tuning by default are lower.
MUON = ["--set", "train.optimizer={kind = 'muon'}"]
MUON += ["--set", "train.schedule={kind = 'linear', peak = 0.003, warmup = 50}"]
LORA = ["--lora", "4", "--set", "train.schedule={kind = 'linear', peak = 0.015, warmup = 50}"]  # with Adam
METHODS = {"full": MUON, "layers": ["--layers", "2", *MUON], "lora": LORA}


def call_regard(arguments: Sequence[str], out: Path, name: str) -> None:
    """Run a command of Regard, and add its CPU minutes to `minutes.json` when it has ended well."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "regard", *arguments], check=True)  # noqa: S603 - our own command
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    times = read_minutes(out)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    times[name] = round(times.get(name, 0) + seconds / 60, 1)
    (out / "minutes.json").write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")


def read_minutes(out: Path) -> dict[str, float]:
    """Read the CPU minutes of the commands that have ended."""
    path = out / "minutes.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def list_files(corpus: Path, train: str = "train") -> list[str]:
    """Return the options of the training and validation files."""
    files = ["--source", str(corpus / f"{train}.en"), "--target", str(corpus / f"{train}.de")]
    files += ["--validation-source", str(corpus / "valid.en"), "--validation-target", str(corpus / "valid.de")]
    return [*files, "--languages", "en", "de"]


def run(arguments: Sequence[str], out: Path, name: str) -> None:
    """Train or tune a model and translate with it, unless that is done."""
    folder = out / name
    if name not in read_minutes(out):
        start = ["train", "--resume"] if (folder / "run.toml").is_file() else [*arguments, "--out"]
        call_regard([*start, str(folder)], out, name)
    translate(out, name)


def translate(out: Path, name: str) -> None:
    """Translate validation and test set of Multi30k."""
    for split in ("valid", "test"):
        path = out / "hypotheses" / f"{name}.{split}.de"
        if not path.is_file():
            path.parent.mkdir(exist_ok=True)
            part = path.with_suffix(".part")
            source = out / "multi30k" / f"{split}.en"
            call_regard(
                ["translate", str(out / name), "--input", str(source), "--beam", "5", "--output", str(part)],
                out,
                "translate",
            )
            part.rename(path)


def train_parent(out: Path) -> None:
    """Train on Europarl; the parent also translates captions as it is."""
    run(["train", *list_files(out / "europarl"), "--updates", str(PARENT_UPDATES), *PARENT], out, "parent")


def tune_by_methods(out: Path) -> None:
    """Tune the parent in three ways."""
    for name, options in METHODS.items():
        run(["tune", str(out / "parent"), *list_files(out / "multi30k"), *TUNE, *options], out, name)


def write_pairs(corpus: Path, size: int) -> list[str]:
    """Write the first pairs of the training set to files of their own; return the options of these files."""
    for language in ("en", "de"):
        lines = read_lines(corpus / f"train.{language}")
        (corpus / f"train-{size}.{language}").write_text("\n".join(lines[:size]) + "\n", encoding="utf-8")
    return list_files(corpus, f"train-{size}")


def tune_on_fewer_pairs(out: Path) -> None:
    """Tune the parent on the first pairs of the training set."""
    for size in SIZES[:-1]:  # all pairs: `full`
        run(["tune", str(out / "parent"), *write_pairs(out / "multi30k", size), *TUNE, *MUON], out, f"tuned-{size}")


def train_from_scratch(out: Path) -> None:
    """Train new models on the first pairs of the training set."""
    for size in reversed(SIZES):
        run(["train", *write_pairs(out / "multi30k", size), *SHAPE, *TUNE, *SCRATCH], out, f"scratch-{size}")


def score(out: Path, hypotheses: Path) -> None:
    """Print BLEU of all translations, tokenised and lower-cased as they are."""
    bleu = BLEU(tokenize="none", force=True)
    for path in sorted(hypotheses.glob("*.test.de")):
        scores = []
        for split in ("valid", "test"):
            outputs = read_lines(path.with_name(path.name.replace(".test.", f".{split}.")))
            scores.append(bleu.corpus_score(outputs, [read_lines(out / "multi30k" / f"{split}.de")]).score)
        print(f"{path.name.removesuffix('.test.de')}: validation {scores[0]:.2f}, test {scores[1]:.2f}")
    print(bleu.get_signature())


def read_lines(path: Path) -> list[str]:
    """Read the lines of a file; only line feeds separate them."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def main() -> None:
    """Run the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = {"parent": train_parent, "methods": tune_by_methods}
    steps |= {"fewer": tune_on_fewer_pairs, "scratch": train_from_scratch}
    parser.add_argument("steps", nargs="+", choices=(*steps, "scores"))
    parser.add_argument("--out", type=Path, required=True, help="folder of prepare.py, models and translations")
    parser.add_argument("--hypotheses", type=Path, help="scores: another folder of translations")
    options = parser.parse_args()
    out = options.out.resolve()
    for step in options.steps:
        if step == "scores":
            score(out, options.hypotheses or out / "hypotheses")
        else:
            steps[step](out)


if __name__ == "__main__":
    main()
