"""Tune a translation model of Europarl to captions (Multi30k): all parameters, the last layers, LoRA; against scratch.

    python examples/tune_translation/prepare.py --europarl DATA/europarl_deen --multi30k DATA/multi30k/tok --out OUT
    python examples/tune_translation/run.py parent methods longer fewer scratch scores --out OUT

`parent` learns a tokenizer from both corpora and trains on Europarl. `methods` tunes it in three ways with equally many
steps, `longer` all parameters with more, `fewer` on fewer pairs, and `scratch` trains new models on all and on fewer
pairs, again with as many steps. Every model translates the validation and the test set once, with a beam of 5. A step
whose output exists is not repeated; `scores` prints BLEU of all translations in OUT/hypotheses.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU

PARENT_STEPS = 4_500
STEPS = {1_000: 200, 5_000: 500, 29_000: 1_000}
"""Steps by the number of pairs: fewer pairs are learned, and overfitted, sooner."""
ALL = max(STEPS)
LONGER = 2_500  # steps, about nine epochs
TOKENIZER_PAIRS = 30_000  # of Europarl, about as many as of Multi30k: a word of a caption has 1.2 tokens, not 1.7
SIZES = ["--set", "train.step_tokens=2048", "--set", "data.batch_tokens=2048", "--set", "device.threads=1"]
SHAPE = ["--preset", "tiny", "--set", "train.optimizer={kind = 'muon'}"]
for stack in ("encoder", "decoder"):  # pre-norm and rotary positions, as the students of examples/multi30k
    for setting in ("position={kind = 'rotary'}", "norm_order='pre'", "final_norm=true"):
        SHAPE += ["--set", f"model.{stack}.{setting}"]
PARENT = [
    *("--set", "model.encoder.dropout={}", "--set", "model.decoder.dropout={}"),  # one epoch does not overfit
    *("--set", "train.schedule={kind = 'linear', lr = 0.005, warmup = 200}", "--set", "validation.every_steps=1000"),
]
TUNE = ["--set", "validation.every_steps=100", "--set", "train.save_every=100"]
for stack in ("encoder", "decoder"):
    TUNE += ["--set", f"model.{stack}.dropout={{embedding = 0.1, sublayer = 0.1}}"]
# Near the best learning rates of few after 100 steps, by validation loss; those of tuning by default are lower.
RATE = ["--set", "train.schedule={kind = 'linear', lr = 0.01, warmup = 50}"]
MUON = ["--set", "train.optimizer={kind = 'muon'}", *RATE]
LORA = ["--lora", "4", "--set", "train.schedule={kind = 'linear', lr = 0.015, warmup = 50}"]  # with Adam
MORE_DROPOUT = [item.replace("0.1", "0.2") for item in TUNE]  # nine epochs overfit more than four
# Two batches per step, one of shorter and one of longer sentences.
TWO_BATCHES = ["--set", "data.batch_tokens=1024", "--set", "validation.every_steps=250"]
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


def list_files(train: Path) -> list[str]:
    """Return the options of the training files, given without their ending, and of the validation files beside them."""
    options = ["--languages", "en", "de"]
    for side, language in (("source", "en"), ("target", "de")):
        options += [f"--{side}", f"{train}.{language}"]
        options += [f"--validation-{side}", str(train.with_name(f"valid.{language}"))]
    return options


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


def write_pairs(corpus: Path, pairs: int) -> Path:
    """Write the first pairs of the training set to files of their own; return their path without the ending."""
    path = corpus / f"train-{pairs}"
    for language in ("en", "de"):
        lines = read_lines(corpus / f"train.{language}")[:pairs]
        path.with_suffix(f".{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def learn_tokenizer(out: Path) -> None:
    """Learn one tokenizer from both corpora, and tokenize Europarl with it."""
    parts = [write_pairs(out / "europarl", TOKENIZER_PAIRS), write_pairs(out / "multi30k", ALL)]
    tokenizer = out / "tokenizer" / "tokenizer.json"
    tokenizer.parent.mkdir(exist_ok=True)
    texts = [f"{part}.{language}" for part in parts for language in ("en", "de")]
    call_regard(["tokenizer", "learn", *texts, "--vocabulary", "10000", "--out", str(tokenizer)], out, "tokenizer")
    tables = []
    for part, name in (("train", "train"), ("validation", "valid")):
        paths = [f"{side} = '{out / 'europarl' / name}.{end}'" for side, end in (("source", "en"), ("target", "de"))]
        tables += [f"[[data.{part}]]", "kind = 'lines'", "languages = ['en', 'de']", *paths]
    (out / "europarl.toml").write_text("\n".join(tables) + "\n", encoding="utf-8")
    arguments = [str(out / "europarl.toml"), str(out / "shards"), "--tokenizer", str(tokenizer.parent)]
    call_regard(["prepare", *arguments], out, "tokenizer")


def train_parent(out: Path) -> None:
    """Train on Europarl; the parent also translates captions as it is."""
    if "tokenizer" not in read_minutes(out):
        learn_tokenizer(out)
    options = [*SHAPE, *SIZES, *PARENT, "--set", f"data.prepared='{out / 'shards'}'"]
    run(["train", *list_files(out / "europarl" / "train"), "--steps", str(PARENT_STEPS), *options], out, "parent")


def tune(out: Path, pairs: int, steps: int, options: Sequence[str], name: str) -> None:
    """Tune the parent on the first pairs of the training set."""
    files = list_files(write_pairs(out / "multi30k", pairs))
    run(["tune", str(out / "parent"), *files, "--steps", str(steps), *SIZES, *options], out, name)


def tune_by_methods(out: Path) -> None:
    """Tune the parent in three ways."""
    for name, options in METHODS.items():
        tune(out, ALL, STEPS[ALL], [*TUNE, *options], name)


def tune_for_longer(out: Path) -> None:
    """Tune all parameters of the parent with more steps and more dropout."""
    tune(out, ALL, LONGER, [*MORE_DROPOUT, *TWO_BATCHES, *MUON], "longer")


def tune_on_fewer_pairs(out: Path) -> None:
    """Tune all parameters of the parent on the first pairs of the training set."""
    for pairs in STEPS:
        if pairs != ALL:  # all pairs: `full`
            tune(out, pairs, STEPS[pairs], [*TUNE, *MUON], f"tuned-{pairs}")


def train_from_scratch(out: Path) -> None:
    """Train new models on the first pairs of the training set."""
    for pairs, steps in reversed(STEPS.items()):
        files = list_files(write_pairs(out / "multi30k", pairs))
        options = [*SHAPE, *SIZES, *TUNE, *RATE]
        run(["train", *files, "--steps", str(steps), *options], out, f"scratch-{pairs}")


def score(out: Path, hypotheses: Path) -> None:
    """Print BLEU of all translations, tokenized and lower-cased as they are."""
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
    steps = {"parent": train_parent, "methods": tune_by_methods, "longer": tune_for_longer}
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
