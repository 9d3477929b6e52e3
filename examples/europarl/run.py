"""Europarl English-German: the best translator that some hours of this machine can train, by one command.

    python examples/europarl/run.py --data ../shared/data/europarl_deen --out europarl
    python examples/europarl/run.py ... --score          # only score the run that is there

Training is `regard train` with the settings of RECIPE, made for 2.5 hours of two cores with AMX. Of the finished run,
`best` translates the test split once with a beam of 5. Figures, their signatures and the learning curve go to
RESULTS.json.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from regard.data.readers.text_files import read_decompressed
from regard.measure.bleu_chrf import bleu, chrf
from regard.pipeline.load import load
from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator
from regard.train.fit import is_finished

BEAM = 5
UPDATES = 8_600
RECIPE = {
    # An encoder twice as deep as the decoder, and nothing dropped: three times through 320,000 pairs, none is learned
    # by heart.
    "model.encoder.layers": "4",
    "model.decoder.layers": "2",
    "model.encoder.dropout": "{}",
    "model.decoder.dropout": "{}",
    "model.encoder.position": '{kind = "rotary"}',
    "model.decoder.position": '{kind = "rotary"}',
    # Muon learns more from an update than Adam, and small updates are many.
    "train.optimizer": '{kind = "muon"}',
    "train.schedule": '{kind = "linear", peak = 0.003, warmup = 400}',
    "train.update_tokens": "4096",
    "data.batch_tokens": "2048",
    "train.precision": "bfloat16",
    "validation.every": "1300",
}


def main() -> None:
    """Train what is not there, then score it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("europarl"))
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], help="handed on to `regard train`")
    parser.add_argument("--score", action="store_true", help="train nothing")
    options = parser.parse_args()
    run = options.out / "run"
    if not options.score and not is_finished(run):
        arguments = [
            *make_command(options.data, run, options.updates, options.threads),
            *_make_set_options(options.set),
        ]
        if code := subprocess.run(arguments, check=False).returncode:  # noqa: S603 - our own command
            sys.exit(code)  # it has said why; 75 is a run that was asked to stop, and goes on when started again
    torch.set_num_threads(options.threads)
    results = {"test": score_test(options.data, run), "curve": read_curve(run)}
    (options.out / "RESULTS.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results["test"]))


def make_command(data: Path, run: Path, updates: int, threads: int) -> list[str]:
    """`regard train`, from the beginning or from where it stopped."""
    start = [sys.executable, "-m", "regard", "train"]
    if run.exists():
        return [*start, "--resume", str(run)]
    options: list[str] = []
    for prefix, split in (("--", "train"), ("--validation-", "valid")):
        options += [f"{prefix}source", str(data / f"{split}.en.gz"), f"{prefix}target", str(data / f"{split}.de.gz")]
    options += ["--languages", "en", "de", "--preset", "small", "--updates", str(updates)]
    settings = [f"{name}={value}" for name, value in RECIPE.items()] + [f"device.threads={threads}"]
    return [*start, *options, *_make_set_options(settings), "--out", str(run)]


def score_test(data: Path, run: Path) -> dict[str, Any]:
    """What the test split says."""
    files = (read_decompressed(str(data / f"test.{language}.gz")) for language in ("en", "de"))
    sources, references = (b"".join(chunks).decode().splitlines() for chunks in files)
    translator = load(run)
    assert isinstance(translator, Translator)  # noqa: S101 - `regard train` made it
    hypotheses = [translation.text for translation in translator.translate(sources, Beam(BEAM))]
    (run.parent / "test.de").write_text("".join(f"{text}\n" for text in hypotheses), encoding="utf-8")
    scores = {"bleu": bleu(hypotheses, references), "chrf": chrf(hypotheses, references)}
    return {name: {"score": round(score.value, 2), "signature": score.signature} for name, score in scores.items()}


def read_curve(run: Path) -> list[dict[str, float]]:
    """Validation after so many updates."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    names = ("loss", "bleu", "chrf")
    return [
        {"update": line["update"], **{name: round(line["validation"][name], 3) for name in names}}
        for line in lines
        if "validation" in line and "averaged" not in line
    ]


def _make_set_options(settings: list[str]) -> list[str]:
    return [argument for setting in settings for argument in ("--set", setting)]


if __name__ == "__main__":
    main()
