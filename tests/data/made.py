"""Small corpora and vocabularies made for the tests of shards, order and tasks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.data.shards import Shard, Shards
from regard.text.specials import SpecialIds

SHARED = Path(__file__).parents[2] / "../shared/data"
SPECIALS = SpecialIds(pad=90, bos=91, eos=92, unk=93, mask=94, cls=95, sep=96)


def shard(
    samples: Sequence[tuple[list[int], ...]], streams: tuple[str, ...] = ("source", "target"), **more: object
) -> Shard:
    """One shard from lists of token ids; the lines count from 1."""
    lengths = [[len(sample[stream]) for sample in samples] for stream in range(len(streams))]
    count = len(samples)
    table = np.array(
        [*lengths, [0] * count, range(1, count + 1), [0] * count, more.pop("label", [0] * count)], np.uint32
    )
    flat = [token for sample in samples for stream in sample for token in stream]
    known: dict[str, object] = {
        "name": "made",
        "source": "made",
        "files": ("made.txt",),
        "languages": (("en", "de"),),
        "labels": (),
    }
    known |= more
    return Shard(streams=streams, tokens=np.array(flat, np.uint16), table=table, **known)  # type: ignore[arg-type]


def random_shards(
    counts: list[int], seed: int = 0, longest: int = 40, weights: dict[str, float] | None = None
) -> Shards:
    """Pairs of random lengths; every sample's tokens begin with its own number, in two digits of base 80."""
    draw = np.random.default_rng(seed)
    number = 0
    shards = []
    for index, count in enumerate(counts):
        samples = []
        for _ in range(count):
            first, second = draw.integers(2, longest, 2)
            own = [number // 80, number % 80]
            pair = [own + draw.integers(0, 80, int(size) - 2).tolist() for size in (first, second)]
            samples.append((pair[0], pair[1]))
            number += 1
        shards.append(shard(samples, name=f"{index:03}", source=f"s{index}"))
    return Shards(shards, weights)
