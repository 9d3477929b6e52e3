"""Small shards for the tests of shards, order and tasks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.data.shards.shard import Shard, Shards
from regard.text.specials import SpecialIds

SHARED = Path(__file__).parents[2] / "../shared/data"
SPECIALS = SpecialIds(pad=90, bos=91, eos=92, unk=93, mask=94, cls=95, sep=96)


def make_shard(
    samples: Sequence[tuple[list[int], ...]], streams: tuple[str, ...] = ("source", "target"), **overrides: object
) -> Shard:
    """Make a shard from lists of token ids; lines count from 1."""
    lengths = [[len(sample[stream]) for sample in samples] for stream in range(len(streams))]
    count = len(samples)
    table = np.array(
        [*lengths, [0] * count, range(1, count + 1), [0] * count, overrides.pop("label", [0] * count)], np.uint32
    )
    flat = [token for sample in samples for stream in sample for token in stream]
    fields: dict[str, object] = {
        "name": "made",
        "source": "made",
        "files": ("made.txt",),
        "languages": (("en", "de"),),
        "labels": (),
    }
    fields |= overrides
    return Shard(streams=streams, tokens=np.array(flat, np.uint16), table=table, **fields)  # type: ignore[arg-type]


def make_random_shards(
    counts: list[int], seed: int = 0, max_length: int = 40, weights: dict[str, float] | None = None
) -> Shards:
    """Make pairs of random lengths; every sample begins with its own number, as two digits of base 80."""
    rng = np.random.default_rng(seed)
    number = 0
    shards = []
    for index, count in enumerate(counts):
        samples = []
        for _ in range(count):
            source_length, target_length = rng.integers(2, max_length, 2)
            digits = [number // 80, number % 80]
            pair = [digits + rng.integers(0, 80, int(size) - 2).tolist() for size in (source_length, target_length)]
            samples.append((pair[0], pair[1]))
            number += 1
        shards.append(make_shard(samples, name=f"{index:03}", source=f"s{index}"))
    return Shards(shards, weights)
