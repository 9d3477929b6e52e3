"""Open a corpus of many small shards with few file descriptors, and train a few steps on it.

    python -m bench.scale.shards                 # 40,000 shards, at most 256 open files: a few minutes
    python -m bench.scale.shards --shards 2000

Prints the time to open the corpus, the share of the shard files that is resident afterwards (`RssFile` of Linux),
whether batches equal the batches of the same shards in memory, and the training steps. The last line is JSON.
"""

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.config.codec import RUN_FILES
from regard.config.tokenizers import ByteBpeConfig
from regard.data.batches.loader import Loader
from regard.data.batches.order import OrderSettings
from regard.data.shards.prepare import open_corpus, write_corpus
from regard.data.shards.shard import Shard, Shards
from regard.data.shards.stored import describe_shard
from regard.tasks.causal_lm.rows import CausalLMRows
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair

SAMPLES, LENGTH = 8, 120  # documents of a shard, and tokens of a document
STEPS, BATCHES, IN_MEMORY = 5, 50, 2000
MAX_RESIDENT, MAX_FILES = 0.05, 256


def make_shard(number: int, vocabulary: int) -> Shard:
    """Make a shard of random tokens."""
    rng = np.random.default_rng(number)
    lengths = rng.integers(LENGTH // 2, LENGTH * 3 // 2, SAMPLES)
    table = np.zeros((5, SAMPLES), np.uint32)
    table[0], table[2] = lengths, np.arange(SAMPLES)
    tokens = rng.integers(0, vocabulary, lengths.sum()).astype(np.uint16)
    name = f"000-{number:06}"
    return Shard(name, "made", ("source",), tokens, table, ("made.txt",), ((),), made_from={"text": str(number)})


def write_shards(folder: Path, count: int, vocabulary: int) -> None:
    """Write a prepared corpus, without flushing each file to the disk."""
    folder.mkdir()
    shards = {}
    for number in range(count):
        shard = make_shard(number, vocabulary)
        parts = {"bin": shard.tokens.tobytes(), "idx": shard.table.tobytes()}
        description = describe_shard(shard, {key: hashlib.sha256(part).hexdigest() for key, part in parts.items()})
        parts["json"] = json.dumps(description, sort_keys=True).encode()
        for suffix, part in parts.items():
            (folder / f"{shard.name}.{suffix}").write_bytes(part)
        shards[shard.name] = hashlib.sha256(parts["json"]).hexdigest()
    write_corpus(folder, shards, {"made": 1.0})


def read_resident_bytes() -> int:
    """Return the bytes of mapped files in the memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))


def hash_batches(shards: Shards, specials: Any) -> str:
    """Return the sha256 of the first batches of an epoch."""
    settings = OrderSettings(max_tokens=4096, max_length=512, packs_sequences=True)
    digest = hashlib.sha256()
    for batch in islice(Loader(shards, CausalLMRows(specials), settings).iter_epoch(), BATCHES):
        assert batch.target is not None  # noqa: S101
        digest.update(batch.target.numpy().tobytes() + batch.labels.numpy().tobytes() + batch.samples.numpy().tobytes())
    return digest.hexdigest()


def copy_to_memory(shard: Shard) -> Shard:
    """Return a shard in memory with the content of a stored one."""
    values: dict[str, Any] = {field.name: getattr(shard, field.name) for field in fields(Shard)}
    return Shard(**values | {name: np.array(values[name]) for name in ("tokens", "table")})


def open_shards(folder: Path) -> dict[str, Any]:
    """Open the corpus as training does, and compare batches with shards in memory."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_FILES, MAX_FILES))
    specials = TokenizerPair.load(folder).source.specials
    resident, start = read_resident_bytes(), time.process_time()
    shards = open_corpus(folder / "train")
    largest = max(shard.largest[0] for shard in shards.shards)
    seconds, resident = time.process_time() - start, read_resident_bytes() - resident
    total = sum(path.stat().st_size for path in (folder / "train").glob("*.???"))
    figures = {"open_seconds": round(seconds, 2), "bytes": total, "resident_share": round(resident / total, 4)}
    figures |= {"largest_id": largest, "samples": len(shards)}
    few = shards.shards[:IN_MEMORY]
    in_memory = Shards([copy_to_memory(shard) for shard in few])
    return {**figures, "batches_equal": hash_batches(Shards(few), specials) == hash_batches(in_memory, specials)}


def train(folder: Path) -> float:
    """Train a few steps with few file descriptors; return the CPU-seconds."""
    settings: dict[str, Any] = {
        "data": {
            "train": [{"kind": "documents", "path": "made.txt", "name": "made"}],
            "prepared": str(folder),
            "batch_tokens": 1024,
            "max_length": 128,
        },
        "model": {"preset": "gpt2"},
        "train": {"steps": STEPS, "step_tokens": 1024, "schedule": {"kind": "constant", "lr": 1e-3}, "save_every": 5},
        "device": {"name": "cpu", "threads": 1, "attention": "autocast", "logit_rows": 256},
    }
    small = {"d_model": 16, "decoder.layers": 1, "decoder.attention.heads": 2, "decoder.feedforward.d_ff": 32}
    path = folder / "run.toml"
    RUN_FILES.save(RUN_FILES.parse(settings, {f"model.{name}": value for name, value in small.items()}), path)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(  # noqa: S603
        [sys.executable, "-m", "regard", "train", str(path), "--out", str(folder / "run"), "--force"],
        check=True,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_FILES, MAX_FILES)),
    )
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=40_000)
    parser.add_argument("--quick", action="store_true", help="2,000 shards")
    options = parser.parse_args()
    count = 2000 if options.quick else options.shards
    tokenizers = TokenizerPair.joint(learn(["a few words"], ByteBpeConfig(vocabulary=264)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizers.save(folder)
        write_shards(folder / "train", count, tokenizers.source.size)
        figures = {"shards": count, "train_cpu_seconds": round(train(folder), 2), **open_shards(folder)}
    print(f"{count:,} shards, at most {MAX_FILES} open files: {STEPS} steps trained; goals: resident share below")
    print(f"{MAX_RESIDENT}, batches equal.")
    print(json.dumps(figures))
    if figures["resident_share"] > MAX_RESIDENT or not figures["batches_equal"]:
        raise SystemExit("A goal is missed.")


if __name__ == "__main__":
    main()
