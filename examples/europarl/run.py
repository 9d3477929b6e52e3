"""Europarl English-German: train a translation model in a few hours on two CPU cores, and score it.

    python examples/europarl/run.py --data path/to/europarl --out europarl
    python examples/europarl/run.py ... --score          # score the existing run, train nothing

The script runs `regard train` with the settings of RECIPE, chosen for some hours on a small machine. The model `best`
then translates the test set once with a beam of 5. Scores, their signatures and the learning curve go to RESULTS.json.
`--recipe adam` trains with what the other toolkits offer: Adam, sinusoidal positions, no average of checkpoints.
"""

import argparse
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

import regard
from regard.data.readers.text_files import read_decompressed
from regard.measure.bleu_chrf import bleu, chrf
from regard.tasks.load import load
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator
from regard.training.run import is_finished

BEAM = 5
PRESET = "small"
TRIAL_PAIRS = 500
STEPS = 8_600
MAX_WARMUP = 400
RECIPE = {
    # The encoder is twice as deep as the decoder. No dropout: three epochs of 320,000 pairs do not overfit.
    "model.encoder.layers": "4",
    "model.decoder.layers": "2",
    "model.encoder.dropout": "{}",
    "model.decoder.dropout": "{}",
    "model.encoder.position": '{kind = "rotary"}',
    "model.decoder.position": '{kind = "rotary"}',
    # Muon learns more per step than Adam; small steps allow more of them.
    "train.optimizer": '{kind = "muon"}',
    "train.step_tokens": "4096",
    "data.batch_tokens": "2048",
    "validation.every_steps": "1300",
}
ADAM = {
    "model.encoder.position": '{kind = "sinusoidal", layout = "halves"}',
    "model.decoder.position": '{kind = "sinusoidal", layout = "halves"}',
    "train.optimizer": '{kind = "adam"}',
    "train.average": "1",
}
RECIPES = {"muon": RECIPE, "adam": RECIPE | ADAM}


def main() -> None:
    """Train the run unless it is finished, then score it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of {train,valid,test}.{en,de}.gz")
    parser.add_argument("--out", type=Path, default=Path("europarl"), help="folder of the run and its results")
    parser.add_argument("--recipe", choices=RECIPES, default="muon", help="settings")
    parser.add_argument("--preset", default=PRESET, help="size of the model")
    parser.add_argument("--rate", type=float, default=0.003, help="peak of the learning rate")
    parser.add_argument("--steps", type=int, default=STEPS, help="number of steps")
    parser.add_argument("--threads", type=int, default=2, help="number of CPU threads")
    parser.add_argument("--set", action="append", default=[], help="setting passed to `regard train`; repeatable")
    parser.add_argument("--score", action="store_true", help="score the existing run, train nothing")
    parser.add_argument("--trial", action="store_true", help="measure the validation loss, translate nothing")
    options = parser.parse_args()
    run = options.out / "run"
    if not options.score and not is_finished(run):
        recipe = RECIPES[options.recipe] | {"train.schedule": make_schedule(options.rate, options.steps)}
        arguments = [
            *make_command(options.data, run, recipe, options.steps, options.threads, options.preset),
            *_make_set_options(options.set),
        ]
        training = subprocess.Popen(arguments)  # noqa: S603 - our own command
        signal.signal(signal.SIGTERM, lambda *_: training.terminate())
        if code := training.wait():
            sys.exit(code)  # `regard train` has printed why; 75: stopped on request, continues when started again
    torch.set_num_threads(options.threads)
    scores = evaluate(options.data, run, options.out, is_trial=options.trial)
    results = {**scores, "curve": read_curve(run)}
    (options.out / "RESULTS.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(scores))


def count_warmup(steps: int) -> int:
    """Return during how many updates the learning rate rises: at most a tenth of all."""
    return max(1, min(MAX_WARMUP, steps // 10))


def make_schedule(rate: float, steps: int) -> str:
    """Return the setting of a learning rate that rises to `rate` and decays to 0."""
    return f'{{kind = "linear", lr = {rate}, warmup = {count_warmup(steps)}}}'


def make_command(
    data: Path, run: Path, recipe: dict[str, str], steps: int, threads: int, preset: str = PRESET
) -> list[str]:
    """Return the command line of `regard train`: a new run, or --resume for an existing one."""
    start = [sys.executable, "-m", "regard", "train"]
    if run.exists():
        return [*start, "--resume", str(run)]
    options: list[str] = []
    for prefix, split in (("--", "train"), ("--validation-", "valid")):
        options += [f"{prefix}source", str(data / f"{split}.en.gz"), f"{prefix}target", str(data / f"{split}.de.gz")]
    options += ["--languages", "en", "de", "--preset", preset, "--steps", str(steps)]
    settings = [f"{name}={value}" for name, value in recipe.items()] + [f"device.threads={threads}"]
    return [*start, *options, *_make_set_options(settings), "--out", str(run)]


def evaluate(data: Path, model: Path, out: Path, *, is_trial: bool) -> dict[str, Any]:
    """Translate the test set with a beam, and return BLEU and chrF; of a trial, return the validation loss."""
    split = "valid" if is_trial else "test"
    files = (read_decompressed(str(data / f"{split}.{language}.gz")) for language in ("en", "de"))
    sources, references = (b"".join(chunks).decode().splitlines() for chunks in files)
    if is_trial:
        scored_texts = regard.load(model).make_scorer().score(references[:TRIAL_PAIRS], sources[:TRIAL_PAIRS])
        return {
            "loss": -sum(text.total_logprob for text in scored_texts) / sum(len(text.tokens) for text in scored_texts)
        }
    translator = load(model)
    assert isinstance(translator, Translator)  # noqa: S101 - `regard train` made it
    hypotheses = [translation.text for translation in translator.translate(sources, Beam(BEAM))]
    (out / "test.de").write_text("".join(f"{text}\n" for text in hypotheses), encoding="utf-8")
    scores = {"bleu": bleu(hypotheses, references), "chrf": chrf(hypotheses, references)}
    return {name: {"score": round(score.value, 2), "signature": score.signature} for name, score in scores.items()}


def read_curve(run: Path) -> list[dict[str, float]]:
    """Return the validation scores by step."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    names = ("loss", "bleu", "chrf")
    return [
        {"step": line["step"], **{name: round(line["validation"][name], 3) for name in names}}
        for line in lines
        if "validation" in line and "averaged" not in line
    ]


def _make_set_options(settings: list[str]) -> list[str]:
    return [argument for setting in settings for argument in ("--set", setting)]


if __name__ == "__main__":
    main()
