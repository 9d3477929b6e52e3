# ruff: noqa: A005 - the module is run, never imported
"""Encoding sentence pairs: our `encode_ids` against bare `tokenizers` with the same file.

    python -m bench.tokenize            # some eight minutes
    python -m bench.tokenize --quick    # half a minute: 20,000 pairs

Byte-level BPE, 32,000 pieces for both languages, learned from the first 100,000 of the Europarl pairs (German and
English) in --data; then all pairs are encoded in batches of 1,000 sentences. Both must give the same ids. `tokenizers`
threads are off. A ratio is the median over all rounds of its CPU time / ours: above 1, Regard is faster. The last
line is JSON.
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

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # before the first use: it is read once

import tokenizers

from bench.timing import race, ratio, table
from regard.config.run import ByteBpe
from regard.text.learn import learn
from regard.text.sample import BpeDropout
from regard.text.tokenizer import Tokenizer

DATA = Path(__file__).parents[2] / "shared" / "data" / "europarl_deen"
OURS = "regard"
BATCH = 1000
Ids = list[list[int]]


def batches(folder: Path, pairs: int) -> list[list[str]]:
    """Sentences of both languages in turns."""
    sides = []
    for language in ("de", "en"):
        with gzip.open(folder / f"train.{language}.gz", "rt", encoding="utf-8", newline="\n") as file:
            sides.append([line.removesuffix("\n") for line in islice(file, pairs)])
    sentences = [sentence for pair in zip(*sides, strict=True) for sentence in pair]
    return [sentences[start : start + BATCH] for start in range(0, len(sentences), BATCH)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20,000 pairs instead of 320,000")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with train.de.gz and train.en.gz")
    options = parser.parse_args()
    pairs = 20_000 if options.quick else 320_000
    texts = batches(options.data, pairs)
    print(f"tokenizers {tokenizers.__version__}, Python {sys.version.split()[0]}, {pairs:,} pairs, 1 thread")

    began = time.process_time()
    sample = texts[: min(len(texts), 200_000 // BATCH)]
    ours = learn((text for batch in sample for text in batch), ByteBpe(vocabulary=32_000))
    print(f"learned {ours.size:,} pieces in {time.process_time() - began:.0f} CPU-s")
    bare = tokenizers.Tokenizer.from_buffer(ours.content)

    def theirs(batch: list[str]) -> Ids:
        return [encoding.ids for encoding in bare.encode_batch_fast(batch, add_special_tokens=False)]

    if any(theirs(batch) != ours.encode_ids(batch) for batch in texts[:20]):
        raise SystemExit("The two do not give the same ids.")

    def everything(encode: Callable[[list[str]], Ids]) -> Callable[[], None]:
        def step() -> None:
            for batch in texts:
                encode(batch)

        return step

    times = race(
        {OURS: everything(ours.encode_ids), "bare": everything(theirs)},
        seconds=15.0 if options.quick else 60.0,
        least_rounds=5 if options.quick else 3,
        warm_up=1,
    )
    print(table(times, ours=OURS))
    words = sum(text.count(" ") + 1 for batch in texts for text in batch)
    plain, noisy = words / min(times[OURS]) * 1000, dropout_speed(ours, texts)
    print(f"{plain:,.0f} words per CPU-second, {noisy:,.0f} with dropout 0.1")
    print(json.dumps({"bpe/bare": round(ratio(times["bare"], times[OURS]), 3)}))


def dropout_speed(tokenizer: Tokenizer, texts: list[list[str]]) -> float:
    """Words per CPU-second under BPE-dropout."""
    noise = BpeDropout(tokenizer, 0.1)
    some = [text for batch in texts[:5] for text in batch]
    began = time.process_time()
    for number, text in enumerate(some):
        noise.encode_ids(text, seed=1, epoch=1, sample=number)
    return sum(text.count(" ") + 1 for text in some) / (time.process_time() - began)


if __name__ == "__main__":
    main()
