"""Quality by the size of the corpus: a Transformer and a GRU with attention, of about equal size."""

import tempfile
from pathlib import Path

from examples.before.models import recurrent_translator, transformer_translator
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.training import MUON, Training, train_translator

from regard.measure.bleu_chrf import bleu


def run(options: Options) -> Report:
    """Train both on growing parts of Multi30k."""
    counts, tests, steps = ([20, 60], 1, 3) if options.small else ([1000, 5000, 29_000], 500, 600)
    names = ("train", "test_2016_flickr")
    train, test = (
        list(zip(*(options.read_lines(f"multi30k/{name}.{side}") for side in ("en", "de")), strict=True))
        for name in names
    )
    test = test[:tests]
    rows, lines = [], dict[str, list[float]]()
    for name in ("Transformer", "GRU with attention"):
        scores, parameters = [], 0
        for count in counts:
            dropout = {f"{stack}.dropout": {"embedding": 0.2, "sublayer": 0.2} for stack in ("encoder", "decoder")}
            width = 16 if options.small else 128
            training = Training(steps, 2048, 0.005, 300 if options.small else 4000, settings=MUON)
            with tempfile.TemporaryDirectory() as folder:
                model = (
                    transformer_translator(width, changes=dropout)
                    if name == "Transformer"
                    else recurrent_translator(width, changes=dropout)
                )
                trained = train_translator(Path(folder), train[:count], test, model, training)
            outputs = trained.translate([source for source, _ in test])
            parameters = trained.parameters
            scores.append(bleu(outputs, [target for _, target in test]).value)
        lines[name] = scores
        rows.append([name, f"{parameters / 1e6:.1f} M", *(f"{score:.1f}" for score in scores)])
    return Report(
        "Data: quality by the size of the corpus",
        f"Multi30k en-de, {steps:,} steps of 2,048 tokens each; BLEU of greedy translations of {len(test)} "
        "sentences of test2016.",
        ["model", "parameters", *(f"{count:,} pairs" for count in counts)],
        rows,
        Chart("pairs", "BLEU", counts, lines, log_x=True),
    )
