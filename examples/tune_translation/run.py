"""Tune a translation model of Europarl to captions (Multi30k): all parameters, the last layers, LoRA; against scratch.

    python examples/tune_translation/prepare.py --europarl DATA/europarl_deen --multi30k DATA/multi30k/tok --out OUT
    python examples/tune_translation/run.py parent methods curve scores --out OUT

`parent` trains on Europarl. `methods` tunes it in three ways with equally many updates. `curve` tunes and trains from
scratch on fewer pairs. Every model translates the validation and the test set once, with a beam of 5. A step whose
output exists is not repeated; `scores` prints BLEU of all translations in OUT/hypotheses.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU

PARENT_UPDATES = 1000
UPDATES = 300
SIZES = (1_000, 5_000, 29_000)
SHAPE = ["--preset", "tiny", "--set", "train.optimizer={kind = 'muon'}", "--set", "device.threads=1"]
for stack in ("encoder", "decoder"):  # pre-norm and rotary positions, as the students of examples/multi30k
    for setting in ("position={kind = 'rotary'}", "placement='pre'", "final_norm=true"):
        SHAPE += ["--set", f"model.{stack}.{setting}"]
PARENT = [
    *SHAPE,
    *("--set", "model.encoder.dropout={}", "--set", "model.decoder.dropout={}"),  # a few epochs do not overfit
    *("--set", "train.schedule={kind = 'linear', peak = 0.005, warmup = 100}"),
    *("--set", "train.update_tokens=4096", "--set", "data.batch_tokens=2048", "--set", "validation.every=500"),
]
TUNE = ["--updates", str(UPDATES), "--set", "train.update_tokens=4096", "--set", "data.batch_tokens=2048"]
TUNE += ["--set", "validation.every=100", "--set", "train.save_every=100", "--set", "device.threads=1"]
DROPOUT = [f"model.{stack}.dropout={{embedding = 0.1, sublayer = 0.1}}" for stack in ("encoder", "decoder")]
TUNE += ["--set", DROPOUT[0], "--set", DROPOUT[1]]
METHODS = {"full": [], "layers": ["--layers", "2"], "lora": ["--lora", "4"]}


def call_regard(arguments: Sequence[str], out: Path, name: str) -> None:
    """Run a command of Regard, and add its CPU minutes to `minutes.json`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "regard", *arguments], check=True)  # noqa: S603 - our own command
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    path = out / "minutes.json"
    times = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    times[name] = round(times.get(name, 0) + seconds / 60, 1)
    path.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")


def list_files(corpus: Path, train: str = "train") -> list[str]:
    """Return the options of the training and validation files."""
    files = ["--source", str(corpus / f"{train}.en"), "--target", str(corpus / f"{train}.de")]
    files += ["--validation-source", str(corpus / "valid.en"), "--validation-target", str(corpus / "valid.de")]
    return [*files, "--languages", "en", "de"]


def run(arguments: Sequence[str], out: Path, name: str) -> None:
    """Train or tune a model and translate with it, unless that is done."""
    folder = out / name
    if not (folder / "best").is_dir() and not (folder / "run.toml").is_file():
        call_regard([*arguments, "--out", str(folder)], out, name)
    elif not (out / "hypotheses" / f"{name}.test.de").is_file():
        call_regard(["train", "--resume", str(folder)], out, name)
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


def draw_curve(out: Path) -> None:
    """Tune and train from scratch on the first pairs of the training set, with as many updates."""
    corpus = out / "multi30k"
    for size in SIZES:
        name = f"train-{size}"
        for language in ("en", "de"):
            lines = (corpus / f"train.{language}").read_text(encoding="utf-8").split("\n")
            (corpus / f"{name}.{language}").write_text("\n".join(lines[:size]) + "\n", encoding="utf-8")
        files = list_files(corpus, name)
        if size != SIZES[-1]:  # all pairs: `full`
            run(["tune", str(out / "parent"), *files, *TUNE], out, f"tuned-{size}")
        schedule = ["--set", "train.schedule={kind = 'linear', peak = 0.005, warmup = 50}"]
        run(["train", *files, *SHAPE, *TUNE, *schedule], out, f"scratch-{size}")


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
    steps = {"parent": train_parent, "methods": tune_by_methods, "curve": draw_curve}
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
