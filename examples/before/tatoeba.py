"""Pairs of Tatoeba, English to German: the corpus of several parts."""

from examples.before.options import Options
from examples.before.training import Pairs


def read_pairs(options: Options, train: int, tests: int) -> tuple[Pairs, Pairs]:
    """Return the first `train` training pairs and `tests` test pairs."""
    pairs = []
    for name, count in (("train", train), ("test", tests)):
        sides = [options.read_lines(f"tatoeba_deen/{name}.{language}", count) for language in ("en", "de")]
        pairs.append(list(zip(*sides, strict=True)))
    return pairs[0], pairs[1]
