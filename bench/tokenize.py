# ruff: noqa: A005 - the module is run, never imported
"""Benchmark encoding: Regard's `encode_ids` against the `tokenizers` library with the same tokenizer file.

    python -m bench.tokenize            # about eight minutes
    python -m bench.tokenize --quick    # about half a minute: 20,000 pairs

A byte-level BPE with a joint vocabulary of 32,000 is learned from the first 100,000 Europarl pairs (German and English)
in --data; then all pairs are encoded in batches of 1,000 sentences. Both must return the same ids. `tokenizers` runs
without parallelism. A ratio is the median over all rounds of its CPU time / ours: above 1, Regard is faster. The last
output line is JSON.
"""

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # before the first use, because it is read once

import tokenizers

from bench.corpora import DATA, require
from bench.timing import format_table, race, ratio
from regard.config.tokenizers import ByteBpeConfig
from regard.text.learn import learn
from regard.text.subword_regularization import BpeDropout
from regard.text.tokenizer import Tokenizer

OURS = "regard"
BATCH_SIZE = 1000
Ids = list[list[int]]


def read_batches(folder: Path, pairs: int) -> list[list[str]]:
    """Batches of sentences that alternate between the languages."""
    sides = []
    for language in ("de", "en"):
        with gzip.open(folder / f"train.{language}.gz", "rt", encoding="utf-8", newline="\n") as file:
            sides.append([line.removesuffix("\n") for line in islice(file, pairs)])
    sentences = [sentence for pair in zip(*sides, strict=True) for sentence in pair]
    return [sentences[start : start + BATCH_SIZE] for start in range(0, len(sentences), BATCH_SIZE)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20,000 pairs instead of 320,000")
    parser.add_argument(
        "--data", type=Path, default=DATA / "europarl_deen", help="the folder with train.de.gz and train.en.gz"
    )
    options = parser.parse_args()
    if options.data == DATA / "europarl_deen":
        require("europarl_deen")
    pairs = 20_000 if options.quick else 320_000
    texts = read_batches(options.data, pairs)
    print(f"tokenizers {tokenizers.__version__}, Python {sys.version.split()[0]}, {pairs:,} pairs, 1 thread")

    start_time = time.process_time()
    sample = texts[: min(len(texts), 200_000 // BATCH_SIZE)]
    ours = learn((text for batch in sample for text in batch), ByteBpeConfig(vocabulary=32_000))
    print(f"learned {ours.size:,} tokens in {time.process_time() - start_time:.0f} CPU-s")
    bare_tokenizer = tokenizers.Tokenizer.from_buffer(ours.content)

    def encode_bare(batch: list[str]) -> Ids:
        return [encoding.ids for encoding in bare_tokenizer.encode_batch_fast(batch, add_special_tokens=False)]

    if any(encode_bare(batch) != ours.encode_ids(batch) for batch in texts[:20]):
        raise SystemExit("Regard and tokenizers return different ids.")

    def encode_all(encode: Callable[[list[str]], Ids]) -> Callable[[], None]:
        def step() -> None:
            for batch in texts:
                encode(batch)

        return step

    times = race(
        {OURS: encode_all(ours.encode_ids), "bare": encode_all(encode_bare)},
        seconds=15.0 if options.quick else 60.0,
        min_rounds=5 if options.quick else 3,
        warm_up=1,
    )
    print(format_table(times, ours=OURS))
    words = sum(text.count(" ") + 1 for batch in texts for text in batch)
    speed, dropout_speed = words / min(times[OURS]) * 1000, measure_dropout_speed(ours, texts)
    print(f"{speed:,.0f} words per CPU-second, {dropout_speed:,.0f} with BPE-dropout 0.1")
    print(json.dumps({"bpe/bare": round(ratio(times["bare"], times[OURS]), 3)}))


def measure_dropout_speed(tokenizer: Tokenizer, texts: list[list[str]]) -> float:
    """Words per CPU-second with BPE-dropout."""
    sampler = BpeDropout(tokenizer, 0.1)
    sample_texts = [text for batch in texts[:5] for text in batch]
    start_time = time.process_time()
    for number, text in enumerate(sample_texts):
        sampler.encode_ids(text, seed=1, epoch=1, sample=number)
    return sum(text.count(" ") + 1 for text in sample_texts) / (time.process_time() - start_time)


if __name__ == "__main__":
    main()
