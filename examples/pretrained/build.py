"""Train three small models, measure them on test data, and pack them for a release.

    python examples/pretrained/build.py --data DATA --parent MINILM --out OUT            # all three
    python examples/pretrained/build.py --data DATA --out OUT translator shakespeare
    python examples/pretrained/build.py --parent MINILM --check OUT/release

DATA is the folder of the corpora; MINILM is all-MiniLM-L6-v2 after `regard import`, the parent of the sentiment
classifier, which is a LoRA adapter. A finished step is not repeated. OUT/release gets one archive per model and
SHA256SUMS; weights of whole models are float16. `--check` compares the checksums, unpacks each archive and lets the
model answer.
"""

import argparse
import gzip
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regard
from regard.base.files import create_folder
from regard.measure.bleu_chrf import make_bleu_metric, make_chrf_metric
from regard.measure.likelihood import mean_interval
from regard.store.weights import load_tensors, save_tensors

HERE = Path(__file__).resolve().parent
SUMS = "SHA256SUMS"
MAX_WEIGHTS = 5_000_000  # bytes
RESAMPLES = 1000
PARTS = 20  # of the validation text: the interval of a mean over parts
FIRST_VALIDATION = 1_003_854  # characters of Shakespeare: nine tenths are for training, as in nanoGPT
ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # equal files give equal archives

Scores = dict[str, Any]


def call_regard(*arguments: str | Path, cwd: Path | None = None) -> str:
    """Run a command of Regard with one thread; return what it prints."""
    command = [sys.executable, "-m", "regard", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True, env=environment)  # noqa: S603 - our own
    return done.stdout


@dataclass(frozen=True)
class Work:
    """Where one model is made."""

    data: Path
    folder: Path
    parent: Path | None

    @property
    def run(self) -> Path:
        """The run folder."""
        return self.folder / "run"


@dataclass(frozen=True)
class Flagship:
    """A model of the release."""

    title: str
    train: Callable[[Work], None]
    score: Callable[[Work, Path], Scores]
    command: str
    example: str
    """An input for `command` and for the look page."""
    text: str
    data: str
    """Where the training text is from, and its license."""
    is_adapter: bool = False

    def find_weights(self, folder: Path) -> Path:
        """Return the weights in an archive's folder."""
        return folder / ("adapter.safetensors" if self.is_adapter else "model.safetensors")

    def open(self, folder: Path, parent: Path | None, merged: Path) -> Path:
        """Return a model folder: of an adapter, the model that it makes with its parent."""
        if not self.is_adapter:
            return folder
        if parent is None:
            sys.exit(f"{folder.name} is an adapter. Give its parent: --parent")
        call_regard("import", folder, "--parent", parent, "--out", merged, "--replace")
        return merged


def train_translator(work: Work) -> None:
    """Train on the everyday sentences of Tatoeba."""
    call_regard("train", HERE / "translator.toml", "--out", work.run, cwd=work.data)


def score_translator(work: Work, model: Path) -> Scores:
    """Translate the test set; keep the translations."""
    files = [work.data / f"tatoeba_deen/test.{side}.gz" for side in ("en", "de")]
    output = work.folder / "test.de"
    call_regard("evaluate", model, "--source", files[0], "--reference", files[1], "--output", output, "--json")
    hypotheses = output.read_text(encoding="utf-8").splitlines()
    references = gzip.decompress(files[1].read_bytes()).decode().splitlines()
    scores: Scores = {"test set": f"Tatoeba, {len(references):,} sentences"}
    for name, metric in (("BLEU", make_bleu_metric()), ("chrF", make_chrf_metric())):
        result = metric.corpus_score(hypotheses, [references], n_bootstrap=RESAMPLES)
        scores[name] = [float(value) for value in (result.score, result._mean - result._ci, result._mean + result._ci)]
        scores[f"{name} signature"] = str(metric.get_signature())
    return scores


def train_shakespeare(work: Work) -> None:
    """Train on nine tenths of the text."""
    text = gzip.decompress((work.data / "tinyshakespeare/input.txt.gz").read_bytes()).decode()
    for name, part in (("train", text[:FIRST_VALIDATION]), ("validation", text[FIRST_VALIDATION:])):
        (work.folder / f"{name}.txt").write_text(part, encoding="utf-8")
    call_regard("train", HERE / "shakespeare.toml", "--out", work.run, cwd=work.folder)


def score_shakespeare(work: Work, model: Path) -> Scores:
    """Compute the mean loss on 20 parts of the last tenth of the text, and its interval."""
    text = (work.folder / "validation.txt").read_text(encoding="utf-8")
    parts = [text[part * len(text) // PARTS : (part + 1) * len(text) // PARTS] for part in range(PARTS)]
    scored = regard.load_generator(model).make_scorer(1.0).score(parts)
    losses = [-sum(part.logprobs) / len(part.logprobs) for part in scored]
    return {"test set": f"the last {len(text):,} characters", "nats per character": list(mean_interval(losses))}


def train_reviews(work: Work) -> None:
    """Tune MiniLM with LoRA on the sentences of SST-2, as examples/sst2 does."""
    if work.parent is None:
        sys.exit("--parent is missing: all-MiniLM-L6-v2, imported by `regard import`")
    corpus = ["sst2_sentences/train.tsv.gz", "--validation", "sst2_sentences/dev.tsv.gz"]
    call_regard("tune", work.parent, *corpus, *REVIEWS, "--out", work.run, cwd=work.data)


def score_reviews(work: Work, model: Path) -> Scores:
    """Label the test sentences; keep the labels."""
    test, output = work.data / "sst2_sentences/test.tsv.gz", work.folder / "test.labels.txt"
    result = json.loads(call_regard("evaluate", model, "--data", test, "--output", output, "--json"))
    values = [result["scores"]["accuracy"]["value"], *result["intervals"]["accuracy"]]
    return {"test set": f"SST-2, {result['labels']:,} sentences", "accuracy": values}


REVIEWS = ["--lora", "8", "--steps", "620", "--seed", "1", "--set", "device.threads=1"]  # four epochs
REVIEWS += ["--set", "validation.every_steps=155", "--set", "train.save_every=155"]
REVIEWS += ["--set", "train.schedule={kind = 'linear', lr = 0.0025, warmup = 62}"]  # chosen on validation
FLAGSHIPS = {
    "translator": Flagship(
        "English to German, everyday sentences",
        train_translator,
        score_translator,
        "translate",
        "Tom forgot his umbrella on the train.",
        "A small encoder-decoder for short, everyday English sentences. It has learned no other kind of text.",
        "Data: Tatoeba (tatoeba.org and manythings.org/anki), CC BY 2.0 FR.",
    ),
    "shakespeare": Flagship(
        "Shakespeare, character by character",
        train_shakespeare,
        score_shakespeare,
        "generate",
        "ROMEO:",
        "A small decoder that continues a text in the form of Shakespeare's plays. The words are often not words.",
        "Data: tinyshakespeare, in the public domain.",
    ),
    "reviews": Flagship(
        "Sentiment of film reviews",
        train_reviews,
        score_reviews,
        "predict",
        "A gripping film with a weak ending.",
        "A LoRA adapter for all-MiniLM-L6-v2 that labels a sentence of an English film review: 1 is positive, 0 is "
        "negative.",
        "Data: SST-2 (Socher et al. 2013), for research. MiniLM, which is not in the archive: Apache-2.0.",
        is_adapter=True,
    ),
}


CARD = """\
# {title}

{text}

```bash
{commands}
```

| {test_set} | value (95 % interval) |
|---|---|
{rows}

Trained by `python examples/pretrained/build.py` in {minutes:.0f} CPU-minutes, and scored with the weights of
this folder. {data}

"""


def build(name: str, work: Work, release: Path) -> None:
    """Train, pack and measure one model, unless it is done."""
    flagship, minutes = FLAGSHIPS[name], work.folder / "minutes.json"
    if not (work.run / "best").is_dir():
        work.folder.mkdir(parents=True, exist_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        flagship.train(work)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        minutes.write_text(json.dumps(round(spent / 60, 1)), encoding="utf-8")
    packed = work.folder / name
    if not packed.is_dir():
        pack(flagship, work, packed, json.loads(minutes.read_text(encoding="utf-8")))
    write_zip(packed, release / f"{name}.zip")


def pack(flagship: Flagship, work: Work, packed: Path, minutes: float) -> None:
    """Write the folder of an archive: weights and settings, run file, scores, look page and model card."""
    part, draft = work.run / ("adapter" if flagship.is_adapter else "best"), work.folder / "draft"
    with create_folder(draft, replace=True) as folder:
        shutil.copytree(part, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("manifest.json", "README.md"))
        shutil.copy(work.run / "run.toml", folder)
        if not flagship.is_adapter:
            weights = load_tensors(folder / "model.safetensors")
            save_tensors({name: tensor.half() for name, tensor in weights.items()}, folder / "model.safetensors")
    size = flagship.find_weights(draft).stat().st_size
    if size > MAX_WEIGHTS:
        sys.exit(f"{flagship.title}: the weights have {size:,} bytes, more than {MAX_WEIGHTS:,}.")
    model, page = flagship.open(draft, work.parent, work.folder / "merged"), work.folder / "look.html"
    scores = flagship.score(work, model)
    call_regard("look", model, flagship.example, "--save", page, "--no-browser")
    with create_folder(packed) as folder:
        shutil.copytree(draft, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("manifest.json"))
        shutil.copy(page, folder)
        (folder / "scores.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
        card = format_card(flagship, packed.name, scores, minutes)
        (folder / "README.md").write_text(card + read_run_card(work), encoding="utf-8")


def read_run_card(work: Work) -> str:
    """Return the card that training wrote, one level deeper."""
    return (work.run / "best" / "README.md").read_text(encoding="utf-8").replace("# ", "## ")


def format_card(flagship: Flagship, name: str, scores: Scores, minutes: float) -> str:
    """Return the first part of the model card; the card of the run follows."""
    values = {score: value for score, value in scores.items() if isinstance(value, list)}
    rows = [f"| {score} | {mean:.4g} ({low:.4g} to {high:.4g}) |" for score, (mean, low, high) in values.items()]
    commands, model = [f"unzip {name}.zip"], name
    if flagship.is_adapter:
        model = f"my-{name}"
        commands += ["regard import hf://sentence-transformers/all-MiniLM-L6-v2 --out minilm"]
        commands += [f"regard import {name} --parent minilm --out {model}"]
    commands += [f'regard {command} {model} "{flagship.example}"' for command in (flagship.command, "look")]
    return CARD.format(
        title=flagship.title,
        text=flagship.text,
        commands="\n".join(commands),
        test_set=scores["test set"],
        rows="\n".join(rows),
        minutes=minutes,
        data=flagship.data,
    )


def write_zip(folder: Path, path: Path) -> None:
    """Write a folder as a zip archive; equal files give equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                entry = zipfile.ZipInfo(f"{folder.name}/{file.relative_to(folder).as_posix()}", ZIP_TIME)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, file.read_bytes(), compress_type=zipfile.ZIP_DEFLATED)


def hash_file(path: Path) -> str:
    """Return the sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_sums(release: Path) -> None:
    """Write the checksums of all archives."""
    lines = [f"{hash_file(path)}  {path.name}\n" for path in sorted(release.glob("*.zip"))]
    (release / SUMS).write_text("".join(lines), encoding="utf-8")


def check(release: Path, parent: Path | None) -> None:
    """Compare the checksums, unpack each archive, and let the model answer."""
    for line in (release / SUMS).read_text(encoding="utf-8").splitlines():
        expected, archive = line.split()
        path = release / archive
        if hash_file(path) != expected:
            sys.exit(f"{path}: the sha256 differs from {SUMS}. Download it again.")
        flagship = FLAGSHIPS[path.stem]
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(path).extractall(folder)
            unpacked = Path(folder) / path.stem
            model = flagship.open(unpacked, parent, Path(folder) / "merged")
            answer = call_regard(flagship.command, model, flagship.example).strip()
            weights = flagship.find_weights(unpacked).stat().st_size
        print(f"{archive}: {path.stat().st_size:,} bytes, weights {weights:,} bytes, checksum as listed")
        print(f"  {flagship.example} -> {answer}")


def main() -> None:
    """Read the arguments; build or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*FLAGSHIPS, []], help=", ".join(FLAGSHIPS))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--parent", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--check", type=Path, metavar="RELEASE")
    arguments = parser.parse_args()
    if arguments.check:
        check(arguments.check, arguments.parent)
        return
    if not arguments.data or not arguments.out:
        parser.error("--data and --out are needed")
    release, parent = arguments.out / "release", arguments.parent and arguments.parent.resolve()
    for name in arguments.names or FLAGSHIPS:
        work = Work(arguments.data.resolve(), (arguments.out / name).resolve(), parent)
        build(name, work, release)
    write_sums(release)


if __name__ == "__main__":
    main()
