"""Batches from 320,000 Europarl pairs against litdata, Hugging Face datasets and Grain; the order of 10M samples.

    python -m bench.peers data      # once: the environment of the peers
    python -m bench.data            # ten minutes, the first time more
    python -m bench.data --quick    # 40,000 pairs

One epoch in shuffled order, as padded int64 tensors, one process, one thread. All read the same token ids (32k byte
BPE). Regard plans the epoch (token budget 4096, about 132 pairs per batch), adds special tokens and makes source,
mask, target and labels; the peers take 132 pairs per batch and pad source and target, with the same NumPy code for all.
Peers that are not installed are left out with a message. All contestants must yield the same pairs and tokens. A ratio
is the median over all rounds of their CPU time / ours: above 1, Regard is faster. The last line is JSON.
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

from bench.corpora import DATA, require
from bench.peers import ROOT, restart_in_environment
from bench.timing import format_table, race, ratio
from regard.config.sources import LinesConfig
from regard.config.tokenizers import ByteBpeConfig
from regard.data.batches.loader import Loader
from regard.data.batches.order import Order, OrderSettings
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.shards.prepare import CORPUS_FILE, open_corpus, prepare
from regard.data.shards.shard import Shards
from regard.tasks.translation.rows import TranslationRows
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair

OURS = "regard"
DATA_FOLDER = DATA / "europarl_deen"
CACHE_FOLDER = ROOT / "build/bench/data"  # the prepared shards
BATCH_SIZE = 132  # pairs per batch: the mean with a budget of 4096 tokens on this corpus
Pair = tuple[NDArray[Any], NDArray[Any]]
Counts = tuple[int, int]  # pairs, tokens


def prepare_corpus(pairs: int) -> tuple[Shards, TokenizerPair]:
    """Return the corpus as shards, prepared on first use."""
    folder = CACHE_FOLDER / str(pairs)
    tokenizer_folder = folder / "words"
    if not (folder / CORPUS_FILE).exists():
        print(f"Preparing {pairs:,} pairs (only the first time).")
        tokenizer_folder.mkdir(parents=True, exist_ok=True)
        for side in ("en", "de"):
            with gzip.open(DATA_FOLDER / f"train.{side}.gz") as file:
                lines = [line for line, _ in zip(file, range(pairs), strict=False)]
            (folder / f"text.{side}").write_bytes(b"".join(lines))
            (folder / f"some.{side}").write_bytes(b"".join(lines[:30_000]))
        sample_text = "".join((folder / f"some.{side}").read_text(encoding="utf-8") for side in ("en", "de"))
        TokenizerPair.joint(learn(sample_text.split("\n"), ByteBpeConfig(vocabulary=32_000))).save(tokenizer_folder)
        source = LinesConfig(source=str(folder / "text.en"), target=str(folder / "text.de"), languages=("en", "de"))
        prepare(Corpus([source]), TokenizerPair.load(tokenizer_folder), folder, Defects())
    return open_corpus(folder), TokenizerPair.load(tokenizer_folder)


class PairSource:
    """Random access to the pairs of memory-mapped shards, for the peers that take a data source."""

    def __init__(self, shards: Shards) -> None:
        self.shards = [(shard.tokens, shard.offsets(), shard.lengths[0].astype(np.int64)) for shard in shards.shards]
        self.sample_offsets = shards.sample_offsets

    def __len__(self) -> int:
        return int(self.sample_offsets[-1])

    def __getitem__(self, number: int) -> Pair:
        shard = int(np.searchsorted(self.sample_offsets, number, side="right")) - 1
        tokens, offsets, source_lengths = self.shards[shard]
        index = number - self.sample_offsets[shard]
        start, stop = offsets[index], offsets[index + 1]
        return tokens[start : start + source_lengths[index]], tokens[start + source_lengths[index] : stop]


def pad_rows(rows: Sequence[Any]) -> torch.Tensor:
    """Pad rows to one tensor, with the same code for all peers."""
    grid = np.zeros((len(rows), max(map(len, rows))), np.int64)
    for cell, row in zip(grid, rows, strict=True):
        cell[: len(row)] = row
    return torch.from_numpy(grid)


def collate_pairs(pairs: Sequence[Pair]) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return padded sources, padded targets, and the number of pairs."""
    return pad_rows([pair[0] for pair in pairs]), pad_rows([pair[1] for pair in pairs]), len(pairs)


def regard(shards: Shards, tokenizers: TokenizerPair) -> Callable[[], Counts]:
    """Iterate over batches with a token budget, planned for every epoch."""
    specials = tokenizers.source.specials
    epochs = iter(range(10**9))

    def epoch() -> Counts:
        loader = Loader(shards, TranslationRows(specials, specials), OrderSettings())
        pairs = tokens = 0
        for batch in loader.iter_epoch(next(epochs)):
            pairs += batch.samples.numel()
            if CHECKING[0] and batch.source_valid is not None:
                tokens += batch.label_count + int(batch.source_valid.sum())
        return pairs, tokens - 2 * pairs  # without bos and eos

    return epoch


CHECKING = [True]  # counting tokens takes time: only before timing starts


def count_batches(batches: Iterable[tuple[torch.Tensor, torch.Tensor, int]], extra_tokens: int) -> Counts:
    pairs = tokens = 0
    for source, target, rows in batches:
        pairs += rows
        if CHECKING[0]:
            tokens += int((source != 0).sum() + (target != 0).sum())
    return pairs, tokens + extra_tokens


def litdata(pair_source: PairSource, zeros: int) -> Callable[[], Counts]:
    litdata = importlib.import_module("litdata")

    folder = CACHE_FOLDER / f"{len(pair_source)}-litdata"
    if not folder.exists():
        folder.mkdir()
        writer = importlib.import_module("litdata.streaming.writer").BinaryWriter(str(folder), chunk_bytes="16MB")
        for number in range(len(pair_source)):
            writer[number] = {"source": pair_source[number][0], "target": pair_source[number][1]}
        writer.done()
        writer.merge()
    dataset = litdata.StreamingDataset(str(folder), shuffle=True, seed=1)

    def collate(samples: list[dict[str, Any]]) -> tuple[torch.Tensor, torch.Tensor, int]:
        return collate_pairs([(sample["source"], sample["target"]) for sample in samples])

    loader = litdata.StreamingDataLoader(dataset, batch_size=BATCH_SIZE, collate_fn=collate, num_workers=0)
    return lambda: count_batches(loader, zeros)


def hf_datasets(pair_source: PairSource, zeros: int) -> Callable[[], Counts]:
    datasets = importlib.import_module("datasets")

    path = CACHE_FOLDER / f"{len(pair_source)}.parquet"
    if not path.exists():
        pairs = map(pair_source.__getitem__, range(len(pair_source)))
        rows = [{"source": source.tolist(), "target": target.tolist()} for source, target in pairs]
        column = datasets.List(datasets.Value("uint16"))
        features = datasets.Features({"source": column, "target": column})
        datasets.Dataset.from_list(rows, features=features).to_parquet(str(path))
    datasets.disable_progress_bars()
    dataset = datasets.load_dataset("parquet", data_files=str(path), split="train", streaming=True)
    dataset = dataset.shuffle(seed=1, buffer_size=10_000)

    def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
        for rows in dataset.iter(batch_size=BATCH_SIZE):
            yield collate_pairs(list(zip(rows["source"], rows["target"], strict=True)))

    return lambda: count_batches(batches(), zeros)


def grain(pair_source: PairSource, zeros: int) -> Callable[[], Counts]:
    grain = importlib.import_module("grain.python")

    dataset = grain.MapDataset.source(pair_source).shuffle(seed=1).batch(BATCH_SIZE, batch_fn=collate_pairs)
    return lambda: count_batches((dataset[number] for number in range(len(dataset))), zeros)


PEERS = {"litdata": litdata, "hf_datasets": hf_datasets, "grain": grain}


def time_order_of_10m() -> None:
    """Measure planning alone, in a separate process: CPU-seconds, and memory including the lengths."""
    samples, shards = 10_000_000, 100
    rng = np.random.default_rng(0)
    lengths_of_shards = [
        np.clip(rng.gamma(3, 10, (2, samples // shards)), 1, 200).astype(np.uint16) for _ in range(shards)
    ]
    order = Order([samples // shards] * shards, lambda shard: lengths_of_shards[shard], OrderSettings())
    start_time = time.process_time()
    batches = sum(len(order.plan_window(0, window)) for window in range(order.window_count))
    seconds = time.process_time() - start_time
    tracemalloc.start()  # slow: not during timing
    for window in range(order.window_count):
        order.plan_window(0, window)
    memory = tracemalloc.get_traced_memory()[1] / 2**20 + sum(lengths.nbytes for lengths in lengths_of_shards) / 2**20
    print(json.dumps({"batches": batches, "seconds": round(seconds, 2), "MB": round(memory)}))


def print_padding(shards: Shards, tokenizers: TokenizerPair) -> None:
    """Print the fraction of padding."""
    specials = tokenizers.source.specials
    cells = valid_cells = 0
    for batch in Loader(shards, TranslationRows(specials, specials), OrderSettings()).iter_epoch():
        assert batch.source is not None  # noqa: S101
        assert batch.source_valid is not None  # noqa: S101
        cells += batch.source.numel() + batch.labels.numel()
        valid_cells += int(batch.source_valid.sum()) + batch.label_count
    print(f"padding: {100 * (1 - valid_cells / cells):.2f} % of the positions")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="40,000 pairs")
    parser.add_argument("--order", action="store_true", help="only measure the order of 10M samples")
    options = parser.parse_args()
    if options.order:
        return time_order_of_10m()
    require("europarl_deen")
    restart_in_environment("data")
    torch.set_num_threads(1)
    start_time = time.perf_counter()
    shards, tokenizers = prepare_corpus(40_000 if options.quick else 320_000)
    pair_source = PairSource(shards)
    zeros = sum(
        int((shard.tokens == 0).sum()) for shard in shards.shards
    )  # id 0 looks like padding: count it separately
    steps: dict[str, Callable[[], Counts]] = {OURS: regard(shards, tokenizers)}
    for name, make in PEERS.items():
        if importlib.util.find_spec(name.removeprefix("hf_")) is None:
            print(f"{name} is not installed and is left out.")
        else:
            steps[name] = make(pair_source, zeros)
    print_padding(shards, tokenizers)
    expected = len(shards), sum(shard.tokens.size for shard in shards.shards)
    print(f"{expected[0]:,} pairs, {expected[1]:,} tokens; torch {torch.__version__}, Python {sys.version.split()[0]}")
    for name, step in steps.items():
        if (counts := step()) != expected:
            raise SystemExit(f"{name} gave {counts[0]} pairs and {counts[1]} tokens.")
    CHECKING[0] = False
    times = race(steps, seconds=15 if options.quick else 240, warm_up=0)
    print(format_table(times, ours=OURS))
    for name, cpu_times in times.items():
        print(f"{name:<12}{1000 * expected[0] / float(np.median(cpu_times)):>12,.0f} pairs per CPU-second")
    command = [sys.executable, "-m", "bench.data", "--order"]
    completed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)  # noqa: S603
    order = json.loads(completed.stdout)
    print(f"\norder of 10M samples: {order['batches']:,} batches, {order['seconds']} CPU-s, {order['MB']} MB")
    print(f"{time.perf_counter() - start_time:.0f} s. Ratio: median over the rounds of their CPU time / ours.")
    print(json.dumps({f"pairs/{name}": round(ratio(times[name], times[OURS]), 3) for name in times if name != OURS}))
    return None


if __name__ == "__main__":
    main()
