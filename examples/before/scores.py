"""Five attention scores of a recurrent translator, and none."""

import statistics
import tempfile
from pathlib import Path

from examples.before.models import recurrent_translator
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.tatoeba import read_pairs
from examples.before.training import MUON, Training, train_translator

from regard.measure.bleu_chrf import chrf

PEAK = 0.01  # of Muon, as in the part `translation`
SCORES = ("scaled_dot", "dot", "general", "concat", "additive", None)


def run(options: Options) -> Report:
    """Train a GRU with each score, and one without attention, on the same pairs."""
    count, tests, width, steps = (60, 1, 16, 3) if options.small else (10_000, 500, 128, 300)
    train, test = read_pairs(options, count, tests)
    dropout = {f"{stack}.dropout": {"embedding": 0.2, "sublayer": 0.2} for stack in ("encoder", "decoder")}
    rows, losses = [], {}
    for score in SCORES[-2:] if options.small else SCORES:
        results = []
        for seed in range(1, 1 + options.seeds):
            training = Training(steps, 2048, PEAK, 300 if options.small else 3000, seed=seed, settings=MUON)
            with tempfile.TemporaryDirectory() as folder:
                model = recurrent_translator(width, score, changes=dropout)
                trained = train_translator(Path(folder), train, test, model, training)
            outputs = trained.translate([source for source, _ in test])
            quality = chrf(outputs, [target for _, target in test]).value
            results.append((trained.validation_loss(), quality, trained.seconds))
        loss, quality, seconds = (statistics.mean(column) for column in zip(*results, strict=True))
        spread = max(result[0] for result in results) - min(result[0] for result in results)
        name = score or "fixed vector"
        losses[name] = [loss] * 2
        rows.append([name, f"{loss:.3f}", f"{spread:.3f}", f"{quality:.1f}", f"{seconds:.0f}"])
    return Report(
        "Scores: five ways to compare a query with a key",
        f"A GRU in Bahdanau's form, width {width}, on {count:,} Tatoeba pairs (en-de), {steps:,} steps of 2,048 "
        f"tokens, seeds: {options.seeds}. Loss per token and chrF (greedy) of {tests} test pairs; CPU-seconds.",
        ["score", "test loss", "largest - smallest of the seeds", "chrF", "CPU-seconds"],
        rows,
        Chart("", "test loss", [0, 1], losses),
    )
