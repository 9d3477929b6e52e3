"""The report of `regard train RUN --without LIST`: what was removed, the hashes before and after, and what may remain.

The report names lines, never their text or its hash: short texts could be guessed from a hash.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.base.files import read_json, sha256, write_atomic
from regard.base.formatting import pluralize
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.data.batches.tombstones import Tombstones
from regard.data.shards.shard import Shards, select_first_stream
from regard.store.export_folder import hash_of_weights
from regard.store.run_folder import RunFolder
from regard.training.data import prepare_data

STATEMENT = "Trained without the removed samples: the new model's weights do not depend on their text. Not certified."


def begin_report(original: RunFolder, new: RunFolder) -> None:
    """Write the hashes of the original run; `finish_report` adds the new ones."""
    _write(new, {"statement": STATEMENT, "original": _hash_run(original)})


def finish_report(folder: RunFolder) -> None:
    """Complete the report of a run that has ended."""
    run = RUN_FILES.load(folder.run)
    shards = prepare_data(run, folder, lambda _: None, verify=False).train
    removed = {file: list(lines) for file, lines in run.data.removed.items()}
    counts = {} if not run.has_tokenizer else count_exclusive_tokens(shards, removed)
    content = {"new": _hash_run(folder), "removed": removed, "tokens_in_removed_samples_only": counts}
    _write(folder, {**read_json(folder.removal), **content, "may_remain": _list_remains(run, counts)})


def count_exclusive_tokens(shards: Shards, removed: Mapping[str, list[int]]) -> dict[str, int]:
    """Return how many token ids of each stream occur in removed samples and in no other."""
    samples = Tombstones(shards, removed).samples
    seen: dict[str, list[set[int]]] = {stream: [set(), set()] for stream in shards.streams}  # kept, removed
    for number, (shard, first) in enumerate(zip(shards.shards, shards.sample_offsets.tolist(), strict=False)):
        lengths = shard.lengths.astype(np.int64)
        tokens = shards.load_tokens(number)[: shard.offsets()[-1]]
        is_removed = np.isin(np.arange(first, first + len(shard)), samples)
        is_removed = np.repeat(is_removed, lengths.sum(axis=0))  # (tokens)
        is_first = select_first_stream(lengths) if len(lengths) == 2 else np.ones(tokens.size, np.bool_)
        for stream, mask in zip(shards.streams, (is_first, ~is_first), strict=False):
            for ids, part in zip(seen[stream], (mask & ~is_removed, mask & is_removed), strict=True):
                ids |= set(np.unique(tokens[part]).tolist())
    return {stream: len(gone - kept) for stream, (kept, gone) in seen.items() if stream in ("source", "target")}


def _list_remains(run: RunConfig, counts: Mapping[str, int]) -> list[str]:
    """Return what may still show something of the removed samples."""
    remains = ["lengths: the number of samples and the length of each one shaped the batches"]
    remains.append("settings: those that Regard chose came from the statistics of the whole corpus")
    if counts:
        exclusive = " and ".join(pluralize(count, f"{stream} token") for stream, count in counts.items())
        remains.append(f"vocabulary: learned from the whole corpus; {exclusive} occur in removed samples only")
    if run.finetune is not None:
        remains.append(f"parent: {run.finetune.parent} may have been trained on them")
    if run.data.prepared is None:
        remains.append("this folder: shards/ still has their tokens; best/, the model, does not")
    remains.append("other copies of them: similar samples in the corpus, the original run, its exports and backups")
    return remains


def _hash_run(folder: RunFolder) -> dict[str, Any]:
    """Return the sha256 of a run's corpus list, settings and weights."""
    files = {"corpus": folder.corpus, "settings": folder.run}
    hashes = {name: sha256(path) for name, path in files.items() if path.is_file()}
    weights = {"weights": hash_of_weights(folder.best)} if folder.best.is_dir() else {}
    return {"run": str(folder.path)} | hashes | weights


def _write(folder: RunFolder, content: Mapping[str, Any]) -> None:
    write_atomic(folder.removal, json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n")
