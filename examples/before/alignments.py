"""Word alignments of attention: a GRU with additive attention beside a Transformer, against annotated links.

The models are given: `--model gru=FOLDER --model transformer=FOLDER`, both English to German (or both German to
English). The links are those of 100 pairs of Europarl (`align_gold/deen_bicici`, Biçici 2011), lower-cased and
tokenized.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from examples.before.models import recurrent_translator, transformer_translator
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.training import Training, train_translator
from torch import Tensor

import regard
from regard.measure.alignment import Gold, Links, alignment_error, read_gold
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator
from regard.tasks.translation.word_alignment import AttentionRows, align_words, sum_subwords

ROWS: tuple[AttentionRows, ...] = ("output", "input")
PICTURED_WORDS = 14  # a sentence that fits a picture
CELL, MARGIN = 22, 110  # pixels of a picture


class Pair(NamedTuple):
    """A sentence pair with its links, in the direction of a model."""

    source: str
    target: str
    gold: Gold


def run(options: Options) -> Report:
    """Score every decoder layer of the models, and draw the attention of one sentence."""
    rows, lines, pages, pairs = list[list[str]](), dict[str, list[float]](), list[str](), list[Pair]()
    with _models(options) as models:
        layers = max(translator.settings.decoder.layers for translator in models.values())
        for name, translator in models.items():
            pairs = _read_pairs(options, translator)
            for kind in ROWS:
                scores = [
                    alignment_error(_align(translator, pairs, layer, kind), [pair.gold for pair in pairs])
                    for layer in range(translator.settings.decoder.layers)
                ]
                lines[f"{name}, {kind} row"] = [score.error_rate for score in scores] + [float("nan")] * (
                    layers - len(scores)
                )
                best = min(range(len(scores)), key=lambda layer: scores[layer].error_rate)
                for layer in dict.fromkeys((best, len(scores) - 1)):
                    score = scores[layer]
                    figures = (score.error_rate, score.precision, score.recall)
                    rows.append([f"{name}, layer {layer + 1}, {kind} row", *(f"{figure:.1f}" for figure in figures)])
            shown = min(pairs, key=lambda pair: len(pair.source)) if options.small else _choose(pairs)
            max_new_tokens = 6 if options.small else None  # a model of three steps does not end its texts
            pages.append(_draw(name, translator, shown, options.out / "alignments", max_new_tokens))
        diagonal = alignment_error([_align_diagonally(pair) for pair in pairs], [pair.gold for pair in pairs])
    rows.append(["the diagonal", *(f"{x:.1f}" for x in (diagonal.error_rate, diagonal.precision, diagonal.recall))])
    return Report(
        "Alignments: what a GRU and a Transformer attend to",
        "Every target word is aligned with the source word of the largest attention weight (mean of the heads), and "
        f"compared with {len(pairs)} annotated pairs of Europarl, whose sentences the models read lower-cased and "
        "tokenized. The row of attention is that which predicts the target word (output) or reads it (input); the "
        "best and the last decoder layer are listed. Error rate, precision and recall in percent; the diagonal "
        "aligns words by their relative place.",
        ["attention", "error rate", "precision", "recall"],
        rows,
        Chart("decoder layer", "alignment error rate", list(range(1, layers + 1)), lines),
        notes=pages,
    )


@contextmanager
def _models(options: Options) -> Iterator[dict[str, Translator]]:
    """Yield the given models; in the small form, two of three steps."""
    if not options.small:
        if not options.folders:
            raise SystemExit("Give the models: --model gru=FOLDER --model transformer=FOLDER.")
        yield {name: regard.load_translator(folder) for name, folder in options.folders.items()}
        return
    pairs = list(zip(*(options.read_lines(f"tatoeba_deen/train.{side}") for side in ("en", "de")), strict=True))
    models: dict[str, Translator] = {}
    with TemporaryDirectory() as folder:
        for name, model in (("gru", recurrent_translator(16)), ("transformer", transformer_translator(16))):
            place = Path(folder) / name
            place.mkdir()
            trained = train_translator(place, pairs[:60], pairs[60:68], model, Training(3, vocabulary=300))
            models[name] = Translator(trained.model, trained.data.tokenizers, trained.settings)  # type: ignore[arg-type]
        yield models


def _read_pairs(options: Options, translator: Translator) -> list[Pair]:
    """Read the annotated pairs, German to English there; in the small form, words in the same order."""
    english, german = (options.read_lines(f"align_gold/deen_bicici.{side}") for side in ("en", "de"))
    if options.small:
        gold = [" ".join(f"{index}-{index}" for index in range(len(line.split()))) for line in english[:4]]
    else:
        gold = options.read_lines("align_gold/deen_bicici.align")
    pairs = []
    for source, target, line in zip(german, english, gold, strict=False):
        links = read_gold(line)
        links = links.without(links.links_outside(len(source.split()), len(target.split())))  # one fault of the file
        is_reversed = tuple(translator.settings.languages) != ("de", "en")
        pairs.append(Pair(target, source, links.transposed()) if is_reversed else Pair(source, target, links))
    return pairs


def _align(translator: Translator, pairs: Sequence[Pair], layer: int, rows: AttentionRows) -> list[Links]:
    return align_words(translator, [pair.source for pair in pairs], [pair.target for pair in pairs], layer, rows)


def _align_diagonally(pair: Pair) -> Links:
    """Align each target word with the source word at the same relative place."""
    source, target = len(pair.source.split()), len(pair.target.split())
    return frozenset((min(source - 1, int((index + 0.5) * source / target)), index) for index in range(target))


def _choose(pairs: Sequence[Pair]) -> Pair:
    """Return a random pair that fits a picture."""
    short = [pair for pair in pairs if len(pair.source.split()) <= PICTURED_WORDS >= len(pair.target.split())]
    return random.Random(1).choice(short or pairs)  # noqa: S311 - a sentence, not a secret


def _draw(name: str, translator: Translator, pair: Pair, folder: Path, max_new_tokens: int | None) -> str:
    """Write the attention of one sentence as SVG, and the page of the glass box for its source; return their links."""
    folder.mkdir(parents=True, exist_ok=True)
    svg = draw_attention(pair, _read_weights(translator, pair))
    (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
    search = Beam(1)
    look = regard.look_into(
        translator, pair.source, search=search, max_new_tokens=max_new_tokens, ablation=False, name=name
    )
    look.save(folder / f"{name}.html")
    return (
        f"{name}: [attention to a sentence with its given translation](alignments/{name}.svg) (frames: annotated "
        f"links); the command also writes the page of its own translation, `alignments/{name}.html`."
    )


def _read_weights(translator: Translator, pair: Pair) -> Tensor:
    """Return the attention of the last layer, mean of the heads, by words: (target words, source words)."""
    recorded = translator.record(pair.source, pair.target)
    weights = recorded.cross[-1].mean(dim=0)  # (T, S); row i predicts token i + 1
    source_ids, target_ids = (
        tokenizer.encode(text).word_ids
        for tokenizer, text in (
            (translator.tokenizers.source, pair.source),
            (translator.tokenizers.target, pair.target),
        )
    )
    by_source = sum_subwords(weights[: len(target_ids), : len(source_ids)].T, source_ids)  # (source words, T)
    sums = sum_subwords(by_source.T, target_ids)  # (target words, source words)
    return sums / sums.sum(dim=1, keepdim=True).clamp(min=1e-9)


def draw_attention(pair: Pair, weights: Tensor) -> str:
    """Return a picture: a row for each target word, darker cells for larger weights, a frame around each gold link."""
    sources, targets = pair.source.split(), pair.target.split()
    width, height = MARGIN + CELL * len(sources) + 10, MARGIN + CELL * len(targets) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for column, word in enumerate(sources):
        x = MARGIN + CELL * column + 15
        parts.append(f'<text x="{x}" y="{MARGIN - 6}" transform="rotate(-60 {x} {MARGIN - 6})">{escape(word)}</text>')
    for row, word in enumerate(targets):
        y = MARGIN + CELL * row
        parts.append(f'<text x="{MARGIN - 6}" y="{y + 15}" text-anchor="end">{escape(word)}</text>')
        for column in range(len(sources)):
            x, weight = MARGIN + CELL * column, float(weights[row, column])
            frame = ' stroke="#d62728" stroke-width="2"' if (column, row) in pair.gold.sure else ' stroke="#eee"'
            parts.append(
                f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" fill="#1f77b4" '
                f'fill-opacity="{weight:.2f}"{frame}/>'
            )
    return "\n".join([*parts, "</svg>", ""])
