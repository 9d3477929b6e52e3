"""Translation with and without attention: GRU encoder-decoders of equal size on Multi30k."""

import tempfile
from pathlib import Path

from examples.before.models import recurrent_translator
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.training import Trained, Training, train_translator

from regard.measure.bleu_chrf import bleu
from regard.measure.bootstrap import paired_bootstrap

BUCKETS = ((1, 9), (10, 13), (14, 18), (19, 99))  # words of the source


def run(options: Options) -> Report:
    """Train both for the same updates; BLEU of test2016, by length too, and a paired bootstrap."""
    width, updates, vocabulary = (16, 3, 300) if options.small else (256, 4000, 5500)
    train, test = (
        list(zip(*(options.read_lines(f"multi30k/{name}.{side}") for side in ("en", "de")), strict=True))
        for name in ("train", "test_2016_flickr")
    )
    if options.small:
        train, test = train[:60], test[:8]
    dropout = {f"{stack}.dropout": {"embedding": 0.2, "sublayer": 0.2} for stack in ("encoder", "decoder")}
    settings = {"train.label_smoothing": 0.1}
    results: dict[str, tuple[Trained, list[str]]] = {}
    for name, score in (("fixed vector", None), ("additive attention", "additive")):
        training = Training(updates, 2048, peak=0.002, vocabulary=vocabulary, settings=settings)
        with tempfile.TemporaryDirectory() as folder:
            model = recurrent_translator(width, score, changes=dropout)
            trained = train_translator(Path(folder), train, test, model, training)
        results[name] = trained, trained.translate([source for source, _ in test], beam=1 if options.small else 4)
    references = [target for _, target in test]
    fixed, attention = (outputs for _, outputs in results.values())
    comparison = paired_bootstrap(fixed, attention, references)
    rows, lines = [], {}
    for name, (trained, outputs) in results.items():
        lines[name] = [_score_bucket(outputs, test, *bucket) for bucket in BUCKETS]
        total = bleu(outputs, references).value
        shape = [f"{trained.parameters / 1e6:.2f} M", f"{updates:,}", f"{trained.seconds / 60:.1f}", f"{total:.1f}"]
        rows.append([name, *shape, *(f"{value:.1f}" for value in lines[name])])
    difference = f"{comparison.difference:+.1f} BLEU, 95 % of the samples between {comparison.low:+.1f} and "
    return Report(
        "Translation: with and without attention",
        f"GRU encoder-decoders on Multi30k en-de, {updates:,} updates of 2,048 tokens each; BLEU of test2016, beam 4, "
        f"in all and by the words of the source. Attention against a fixed vector: {difference}{comparison.high:+.1f} "
        f"(paired bootstrap, p = {comparison.p:.3f}).",
        ["model", "parameters", "updates", "CPU-minutes", "BLEU", *(f"{low} to {high}" for low, high in BUCKETS)],
        rows,
        Chart("words of the source, at least", "BLEU", [low for low, _ in BUCKETS], lines),
    )


def _score_bucket(outputs: list[str], pairs: list[tuple[str, str]], low: int, high: int) -> float:
    """Return the BLEU of the sentences whose source has `low` to `high` words; 0 if there are none."""
    chosen = [number for number, (source, _) in enumerate(pairs) if low <= len(source.split()) <= high]
    if not chosen:
        return 0.0
    return bleu([outputs[number] for number in chosen], [pairs[number][1] for number in chosen]).value
