"""Batches from 320,000 Europarl pairs against litdata, Hugging Face datasets and Grain; the order of 10M samples.

    python -m bench.peers data      # once: the peers' environment
    python -m bench.data            # ten minutes, the first time more
    python -m bench.data --quick    # 40,000 pairs

One epoch in shuffled order, as padded int64 tensors, one process, one thread. All read the same token ids (32k byte
BPE). Regard plans the epoch (token budget 4096, about 132 pairs a batch), adds special tokens and makes source, mask,
target and labels; peers draw 132 pairs a batch and pad source and target, by the same few lines of NumPy for all.
Peers that are missing are left out, and that is said. Every contestant must give the same pairs and tokens. A ratio is
the median over all rounds of their CPU time / ours: above 1, Regard is faster. The last line is JSON.
"""

import argparse
import gzip
import importlib
import importlib.util
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench.peers import ROOT, enter
from bench.timing import race, ratio, table
from regard.config.run import ByteBpe, Lines
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.loader import Loader
from regard.data.order import Order, Rules
from regard.data.prepare import CORPUS, open_corpus, prepare
from regard.data.shards import Shards
from regard.data.tasks import Translate
from regard.text.learn import learn
from regard.text.vocabularies import TokenizerPair

OURS = "regard"
SHARED = ROOT / "../shared/data/europarl_deen"
KEPT = ROOT / "build/bench/data"  # what is prepared once
ROWS = 132  # pairs a batch: what a budget of 4096 comes to on this corpus
Pair = tuple[NDArray[Any], NDArray[Any]]
Counts = tuple[int, int]  # pairs, tokens


def prepared(pairs: int) -> tuple[Shards, TokenizerPair]:
    """The corpus as shards, made once."""
    folder = KEPT / str(pairs)
    words = folder / "words"
    if not (folder / CORPUS).exists():
        print(f"preparing {pairs:,} pairs, once")
        words.mkdir(parents=True, exist_ok=True)
        for side in ("en", "de"):
            with gzip.open(SHARED / f"train.{side}.gz") as file:
                lines = [line for line, _ in zip(file, range(pairs), strict=False)]
            (folder / f"text.{side}").write_bytes(b"".join(lines))
            (folder / f"some.{side}").write_bytes(b"".join(lines[:30_000]))
        some = "".join((folder / f"some.{side}").read_text(encoding="utf-8") for side in ("en", "de"))
        TokenizerPair.joint(learn(some.split("\n"), ByteBpe(vocabulary=32_000))).save(words)
        source = Lines(source=str(folder / "text.en"), target=str(folder / "text.de"), languages=("en", "de"))
        prepare(Corpus([source]), TokenizerPair.load(words), folder, Defects())
    return open_corpus(folder), TokenizerPair.load(words)


class Stored:
    """Pairs by number, from the mapped shards: a source for the peers that take one."""

    def __init__(self, shards: Shards) -> None:
        self.shards = [(shard.tokens, shard.begins(), shard.lengths[0].astype(np.int64)) for shard in shards.shards]
        self.bases = shards.bases

    def __len__(self) -> int:
        return int(self.bases[-1])

    def __getitem__(self, number: int) -> Pair:
        shard = int(np.searchsorted(self.bases, number, side="right")) - 1
        tokens, begins, firsts = self.shards[shard]
        place = number - self.bases[shard]
        begin, end = begins[place], begins[place + 1]
        return tokens[begin : begin + firsts[place]], tokens[begin + firsts[place] : end]


def padded(rows: Sequence[Any]) -> torch.Tensor:
    """The same for all peers: rows of unequal length to one tensor."""
    cells = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for cell, row in zip(cells, rows, strict=True):
        cell[: len(row)] = row
    return torch.from_numpy(cells)


def collated(pairs: Sequence[Pair]) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Source, target, and the number of pairs."""
    return padded([pair[0] for pair in pairs]), padded([pair[1] for pair in pairs]), len(pairs)


def regard(shards: Shards, vocabularies: TokenizerPair) -> Callable[[], Counts]:
    """Token-budget batches, planned anew every epoch."""
    specials = vocabularies.source.specials
    epochs = iter(range(10**9))

    def epoch() -> Counts:
        loader = Loader(shards, Translate(specials, specials), Rules())
        pairs = tokens = 0
        for batch in loader.epoch(next(epochs)):
            pairs += batch.samples.numel()
            if CHECKING[0] and batch.source_real is not None:
                tokens += batch.count + int(batch.source_real.sum())
        return pairs, tokens - 2 * pairs  # the end marks

    return epoch


CHECKING = [True]  # counting tokens takes time: only before the clock runs


def counted(batches: Iterable[tuple[torch.Tensor, torch.Tensor, int]], lengths: int) -> Counts:
    pairs = tokens = 0
    for source, target, rows in batches:
        pairs += rows
        if CHECKING[0]:
            tokens += int((source != 0).sum() + (target != 0).sum())
    return pairs, tokens + lengths


def litdata(stored: Stored, zeros: int) -> Callable[[], Counts]:
    litdata = importlib.import_module("litdata")

    folder = KEPT / f"{len(stored)}-litdata"
    if not folder.exists():
        folder.mkdir()
        writer = importlib.import_module("litdata.streaming.writer").BinaryWriter(str(folder), chunk_bytes="16MB")
        for number in range(len(stored)):
            writer[number] = {"source": stored[number][0], "target": stored[number][1]}
        writer.done()
        writer.merge()
    dataset = litdata.StreamingDataset(str(folder), shuffle=True, seed=1)

    def collate(samples: list[dict[str, Any]]) -> tuple[torch.Tensor, torch.Tensor, int]:
        return collated([(sample["source"], sample["target"]) for sample in samples])

    loader = litdata.StreamingDataLoader(dataset, batch_size=ROWS, collate_fn=collate, num_workers=0)
    return lambda: counted(loader, zeros)


def hf_datasets(stored: Stored, zeros: int) -> Callable[[], Counts]:
    datasets = importlib.import_module("datasets")

    path = KEPT / f"{len(stored)}.parquet"
    if not path.exists():
        pairs = map(stored.__getitem__, range(len(stored)))
        rows = [{"source": one.tolist(), "target": two.tolist()} for one, two in pairs]
        column = datasets.List(datasets.Value("uint16"))
        features = datasets.Features({"source": column, "target": column})
        datasets.Dataset.from_list(rows, features=features).to_parquet(str(path))
    datasets.disable_progress_bars()
    dataset = datasets.load_dataset("parquet", data_files=str(path), split="train", streaming=True)
    dataset = dataset.shuffle(seed=1, buffer_size=10_000)

    def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
        for rows in dataset.iter(batch_size=ROWS):
            yield collated(list(zip(rows["source"], rows["target"], strict=True)))

    return lambda: counted(batches(), zeros)


def grain(stored: Stored, zeros: int) -> Callable[[], Counts]:
    grain = importlib.import_module("grain.python")

    dataset = grain.MapDataset.source(stored).shuffle(seed=1).batch(ROWS, batch_fn=collated)
    return lambda: counted((dataset[number] for number in range(len(dataset))), zeros)


PEERS = {"litdata": litdata, "hf_datasets": hf_datasets, "grain": grain}


def order_of_10m() -> None:
    """Planning alone, in a process of its own: CPU seconds, and memory with the lengths themselves."""
    samples, shards = 10_000_000, 100
    draw = np.random.default_rng(0)
    known = [np.clip(draw.gamma(3, 10, (2, samples // shards)), 1, 200).astype(np.uint16) for _ in range(shards)]
    order = Order([samples // shards] * shards, lambda shard: known[shard], Rules())
    before = time.process_time()
    batches = sum(len(order.plan(0, window)) for window in range(order.windows))
    seconds = time.process_time() - before
    tracemalloc.start()  # slow: not while the clock runs
    for window in range(order.windows):
        order.plan(0, window)
    memory = tracemalloc.get_traced_memory()[1] / 2**20 + sum(lengths.nbytes for lengths in known) / 2**20
    print(json.dumps({"batches": batches, "seconds": round(seconds, 2), "MB": round(memory)}))


def tell_padding(shards: Shards, vocabularies: TokenizerPair) -> None:
    """How much of the batches is padding."""
    specials = vocabularies.source.specials
    cells = real = 0
    for batch in Loader(shards, Translate(specials, specials), Rules()).epoch():
        assert batch.source is not None  # noqa: S101
        assert batch.source_real is not None  # noqa: S101
        cells += batch.source.numel() + batch.labels.numel()
        real += int(batch.source_real.sum()) + batch.count
    print(f"padding: {100 * (1 - real / cells):.2f} % of the cells")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="40,000 pairs")
    parser.add_argument("--order", action="store_true", help="only the order of 10M samples")
    options = parser.parse_args()
    if options.order:
        return order_of_10m()
    enter("data")
    if not SHARED.is_dir():
        raise SystemExit(f"The Europarl pairs are not there: {SHARED}")
    torch.set_num_threads(1)
    began = time.perf_counter()
    shards, vocabularies = prepared(40_000 if options.quick else 320_000)
    stored = Stored(shards)
    zeros = sum(int((shard.tokens == 0).sum()) for shard in shards.shards)  # ids 0 look like padding: count them apart
    steps: dict[str, Callable[[], Counts]] = {OURS: regard(shards, vocabularies)}
    for name, make in PEERS.items():
        if importlib.util.find_spec(name.removeprefix("hf_")) is None:
            print(f"{name} is left out: it is not installed")
        else:
            steps[name] = make(stored, zeros)
    tell_padding(shards, vocabularies)
    wanted = len(shards), sum(shard.tokens.size for shard in shards.shards)
    print(f"{wanted[0]:,} pairs, {wanted[1]:,} tokens; torch {torch.__version__}, Python {sys.version.split()[0]}")
    for name, step in steps.items():
        if (found := step()) != wanted:
            raise SystemExit(f"{name} gave {found[0]} pairs and {found[1]} tokens.")
    CHECKING[0] = False
    times = race(steps, seconds=15 if options.quick else 240, warm_up=0)
    print(table(times, ours=OURS))
    for name, spent in times.items():
        print(f"{name:<12}{1000 * wanted[0] / float(np.median(spent)):>12,.0f} pairs per CPU-second")
    command = [sys.executable, "-m", "bench.data", "--order"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)  # noqa: S603
    order = json.loads(done.stdout)
    print(f"\norder of 10M samples: {order['batches']:,} batches, {order['seconds']} CPU-s, {order['MB']} MB")
    print(f"{time.perf_counter() - began:.0f} s. Ratio: median over the rounds of their CPU time / ours.")
    print(json.dumps({f"pairs/{name}": round(ratio(times[name], times[OURS]), 3) for name in times if name != OURS}))
    return None


if __name__ == "__main__":
    main()
