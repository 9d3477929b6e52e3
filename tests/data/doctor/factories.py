"""Examples and helpers that several tests of the corpus doctor use."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from regard.config.sources import AnySourceConfig, LinesConfig
from regard.data.doctor.fingerprints import Fingerprints
from regard.data.doctor.one_pass import TrainingCheck, TrainingCheckResult
from regard.data.example import Example, Location
from tests.data.doctor.synthetic_pairs import make_pairs


def make_examples(*texts: tuple[str, str | None]) -> list[Example]:
    return [Example(Location("a.en", row), *text) for row, text in enumerate(texts, 1)]


def make_fingerprints(*texts: tuple[str, str | None], should_fold: bool = True) -> Fingerprints:
    fingerprints = Fingerprints(should_fold=should_fold)
    for example in make_examples(*texts):
        fingerprints.add(example)
    return fingerprints


def make_lengths(rows: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    source = np.exp(rng.normal(4.5, 0.5, rows))
    target = source * 1.1 * np.exp(rng.normal(0, 0.15, rows))
    return source.astype(np.uint32), target.astype(np.uint32)


PAIRS = make_pairs(1200)


GOOD_EXAMPLES = [
    Example(
        Location("a.en", line),
        f"{'word ' * (3 + line * 7 % 23)}number {line} end",
        f"{'Wort ' * (3 + line * 7 % 23)}Nummer {line} Ende",
    )
    for line in range(1, 401)
]


LONG_CORPUS = [replace(GOOD_EXAMPLES[row * 131 % 400], location=Location("a.en", row + 1)) for row in range(4000)]


SOURCE = LinesConfig(source="a.en", target="a.de", languages=("en", "de"))


def run_training_check(
    pairs: Sequence[tuple[str, str | None]],
    validation: Sequence[tuple[str, str | None]] = (),
    source: AnySourceConfig = SOURCE,
) -> TrainingCheckResult:
    check = TrainingCheck([source], [LinesConfig(source="v.en", target="v.de")] if validation else [])
    for line, pair in enumerate(pairs, 1):
        check.add(0, Example(Location("a.en", line), *pair))
    for line, pair in enumerate(validation, 1):
        check.add_validation(0, Example(Location("v.en", line), *pair))
    return check.conclude()
