"""Translation with and without attention: GRU encoder-decoders, and a Transformer of equal size."""

import gzip
from collections.abc import Sequence
from typing import NamedTuple

from examples.before.models import recurrent_translator, transformer_translator
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.training import MUON, Trained, Training, train_translator

from regard.measure.bleu_chrf import bleu
from regard.measure.bootstrap import paired_bootstrap

PEAK = 0.01  # of Muon: the loss of the validation pairs after 150 steps is 3.46, with AdamW at 0.002 it is 5.23
SETTINGS = {"train.label_smoothing": 0.1, **MUON}
ATTENTION, FIXED, FIXED_LONGER = "additive attention", "fixed vector, equal steps", "fixed vector, equal CPU time"
TRANSFORMER = "Transformer, equal steps"


class Corpus(NamedTuple):
    """Sentence pairs, English to German, and how they are learned."""

    name: str
    """The folder of the translations, and the beginning of the models' names."""
    title: str
    description: str
    files: tuple[str, str, str]
    """Of the training, validation and test pairs, without the language."""
    steps: int
    buckets: Sequence[tuple[int, int]]
    """Lengths of the source in words, first and last."""
    pairs: int | None = None
    """Training pairs that are read; None for all."""


MULTI30K = Corpus(
    "translation",
    "Translation: with and without attention",
    "Multi30k en-de (lower-cased, tokenized), steps of 2,048 tokens; BLEU of test2016",
    ("multi30k/tok/train.lc.norm.tok", "multi30k/tok/val.lc.norm.tok", "multi30k/tok/test_2016_flickr.lc.norm.tok"),
    steps=1500,
    buckets=((1, 9), (10, 13), (14, 18), (19, 99)),
)


def run(options: Options) -> Report:
    """Train all on Multi30k; BLEU of test2016, by length too, and paired bootstraps."""
    return compare(options, MULTI30K, (ATTENTION, FIXED, FIXED_LONGER, TRANSFORMER))


def compare(options: Options, corpus: Corpus, names: Sequence[str]) -> Report:
    """Train models on a corpus; BLEU of its test pairs, by length too, and paired bootstraps."""
    width, vocabulary = (16, 300) if options.small else (256, 5500)
    train, valid, test = (
        list(zip(*(options.read_lines(f"{file}.{side}", corpus.pairs) for side in ("en", "de")), strict=True))
        for file in corpus.files
    )
    if options.small:
        train, valid, test = train[:60], valid[:8], test[:8]
    sources, references = ([pair[side] for pair in test] for side in (0, 1))
    dropout = {f"{stack}.dropout": {"embedding": 0.2, "sublayer": 0.2} for stack in ("encoder", "decoder")}
    results: dict[str, tuple[Trained, list[str], int]] = {}
    for name in names:
        steps = 3 if options.small else corpus.steps
        if name == FIXED_LONGER:
            steps = round(steps * results[ATTENTION][0].seconds / results[FIXED][0].seconds)
        training = Training(steps, 2048, PEAK, vocabulary, save_every=500, settings=SETTINGS)
        file_name = name.replace(",", "").replace(" ", "-")
        with options.run_folder(f"{corpus.name}-{file_name}") as folder:
            if name == TRANSFORMER:
                model = transformer_translator(3 * width // 4, changes=dropout)  # as many weights as the others
            else:
                model = recurrent_translator(width, "additive" if name == ATTENTION else None, changes=dropout)
            trained = train_translator(folder, train, valid, model, training)
        outputs = trained.translate(sources, beam=1 if options.small else 4)
        results[name] = trained, outputs, steps
        hypotheses = options.out / corpus.name / f"{file_name}.de.gz"
        hypotheses.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{output}\n" for output in outputs)
        hypotheses.write_bytes(gzip.compress(text.encode(), mtime=0))
    rows, lines, notes = [], {}, []
    attention = results[ATTENTION][1]
    for name, (trained, outputs, steps) in results.items():
        lines[name] = [_score_bucket(outputs, test, *bucket) for bucket in corpus.buckets]
        total = f"{bleu(outputs, references).value:.2f}"
        shape = [
            f"{trained.parameters / 1e6:.2f} M",
            f"{steps:,}",
            f"{trained.seconds / 60:.1f}",
            total,
        ]
        rows.append([name, *shape, *(f"{value:.1f}" for value in lines[name])])
        if outputs is not attention:
            gain = paired_bootstrap(outputs, attention, references)
            span = f"95 % of the samples between {gain.low:+.2f} and {gain.high:+.2f}, p = {gain.p:.3f}"
            notes.append(f"Attention against {name}: {gain.difference:+.2f} BLEU ({span}; paired bootstrap).")
    return Report(
        corpus.title,
        f"GRU encoder-decoders and a Transformer on {corpus.description} with a beam of 4, in all and by the words of "
        f"the source. The translations are in `{corpus.name}/`. " + " ".join(notes),
        [
            "model",
            "parameters",
            "steps",
            "CPU-minutes",
            "BLEU",
            *(f"{low} to {high}" for low, high in corpus.buckets),
        ],
        rows,
        Chart("words of the source, at least", "BLEU", [low for low, _ in corpus.buckets], lines),
    )


def _score_bucket(outputs: list[str], pairs: list[tuple[str, str]], low: int, high: int) -> float:
    """Return the BLEU of the sentences whose source has `low` to `high` words; 0 if there are none."""
    chosen = [number for number, (source, _) in enumerate(pairs) if low <= len(source.split()) <= high]
    if not chosen:
        return 0.0
    return bleu([outputs[number] for number in chosen], [pairs[number][1] for number in chosen]).value
