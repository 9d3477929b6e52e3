"""The bottleneck of one vector: copies of 2 to 20 symbols, with and without attention."""

import random
import tempfile
from pathlib import Path

from examples.before.models import recurrent_translator
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.training import Pairs, Trained, Training, train_translator

SYMBOLS = [f"s{number}" for number in range(20)]
LENGTHS = range(2, 21)


def sample_pairs(count: int, lengths: range, seed: int) -> Pairs:
    """Sample texts to copy; all lengths are equally frequent."""
    rng = random.Random(seed)  # noqa: S311 - symbols, not secrets
    texts = [" ".join(rng.choices(SYMBOLS, k=rng.choice(lengths))) for _ in range(count)]
    return [(text, text) for text in texts]


def count_copies(trained: Trained, length: int, count: int) -> float:
    """Return the share of new texts of this length that the model copies exactly."""
    texts = [source for source, _ in sample_pairs(count, range(length, length + 1), seed=1000 + length)]
    copies = trained.translate(texts)
    return sum(copy == text for copy, text in zip(copies, texts, strict=True)) / count


def train_both(options: Options, steps: int) -> dict[str, Trained]:
    """Train a model with a fixed vector and one with attention on the same texts."""
    lengths = range(2, 9) if options.small else LENGTHS
    width, pairs = (32, 3000) if options.small else (64, 12_000)
    training = Training(steps, 512, peak=0.01, vocabulary=60, tokenizer="word", max_length=24)
    train, held_out = sample_pairs(pairs, lengths, seed=1), sample_pairs(50, lengths, seed=2)
    results = {}
    for name, score in (("fixed vector", None), ("attention", "additive")):
        with tempfile.TemporaryDirectory() as folder:
            results[name] = train_translator(
                Path(folder), train, held_out, recurrent_translator(width, score), training
            )
    return results


def compare(options: Options) -> dict[str, tuple[Trained, list[float]]]:
    """Return both models with their share of exact copies by length."""
    lengths, tests = (range(2, 9), 30) if options.small else (LENGTHS, 100)
    return {
        name: (trained, [count_copies(trained, length, tests) for length in lengths])
        for name, trained in train_both(options, steps=200 if options.small else 1000).items()
    }


def run(options: Options) -> Report:
    """Compare exact copies by length."""
    results = compare(options)
    lengths = list(range(2, 9) if options.small else LENGTHS)
    lines = {name: shares for name, (_, shares) in results.items()}
    costs = "; ".join(
        f"{name} {trained.parameters:,} parameters, {trained.seconds:.0f} CPU-seconds"
        for name, (trained, _) in results.items()
    )
    return Report(
        "Length: copies with one vector and with attention",
        f"A GRU encoder-decoder learns to copy {lengths[0]} to {lengths[-1]} of 20 symbols. One model gives its "
        f"decoder the encoder's last state, the other lets it attend to all states ({costs}). The table is the share "
        "of new texts that greedy search copies exactly.",
        ["symbols", *lines],
        [
            [str(length), *(f"{shares[number]:.0%}" for shares in lines.values())]
            for number, length in enumerate(lengths)
        ],
        Chart("symbols", "exact copies", lengths, lines),
    )
