"""Compression bombs, and texts and shards with wrong content."""

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from regard.base.files import sha256
from regard.data.shards.stored import INDEX_FILE
from tests.hostile.attack import attack
from tests.hostile.doors import Place

DAMAGED = "damaged|bytes, not|does not match"


def _edit_shard(place: Place, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the description of a shard and update its hash in corpus.json."""
    name = find_description(place).name
    place.edit(name, change)
    _update_digest(place, name)


def find_description(place: Place) -> Path:
    """Return the description of a shard, in a corpus without an index: it would be read instead of the description."""
    place.edit("corpus.json", lambda corpus: corpus.pop("index") and None)
    return next(path for path in place.folder.glob("*.json") if path.name != "corpus.json")


def _update_digest(place: Place, name: str) -> None:
    digest = sha256(place.folder / name)
    place.edit("corpus.json", lambda corpus: corpus["shards"].update({name.removesuffix(".json"): digest}))


def _write_index(place: Place, text: str) -> None:
    """Write the index of all shards and update its hash in corpus.json."""
    index = place.folder / INDEX_FILE
    index.write_text(text, encoding="utf-8")
    place.edit("corpus.json", lambda corpus: corpus.update(index=sha256(index)))


def _edit_index(place: Place, **changes: object) -> None:
    lines = (place.folder / INDEX_FILE).read_text(encoding="utf-8").splitlines()
    _write_index(place, "".join(json.dumps(json.loads(line) | changes) + "\n" for line in lines))


@attack("prepared", DAMAGED)
def index_of_strange_width(place: Place) -> None:
    """An index with tokens of a billion bytes each."""
    _edit_index(place, width=10**9)


@attack("prepared", DAMAGED)
def index_of_endless_samples(place: Place) -> None:
    """An index with a shard of 10^18 samples."""
    _edit_index(place, samples=10**18)


@attack("prepared", DAMAGED)
def index_of_wrong_types(place: Place) -> None:
    """An index whose streams, files and hashes are numbers."""
    _edit_index(place, streams=[1, 2], files=3, sha256=4, languages=5)


@attack("prepared", DAMAGED)
def index_of_shards_outside(place: Place) -> None:
    """An index whose shards leave the folder."""
    _edit_index(place, name="../outside/victim")


@attack("prepared", DAMAGED)
def deep_index(place: Place) -> None:
    """An index of 100,000 nested lists."""
    _write_index(place, "[" * 100_000 + "]" * 100_000 + "\n")


@attack("prepared", "shard")
def shard_outside(place: Place) -> None:
    """A shard whose name leaves the folder."""
    for path in place.folder.glob("*.*"):
        (place.outside / path.name).write_bytes(path.read_bytes())

    def change(corpus: dict[str, Any]) -> None:
        corpus["shards"] = {f"../outside/{name}": digest for name, digest in corpus["shards"].items()}

    place.edit("corpus.json", change)


@attack("prepared", DAMAGED)
def shard_of_strange_width(place: Place) -> None:
    """Tokens of a billion bytes each."""
    _edit_shard(place, lambda facts: facts.update(width=10**9))


@attack("prepared", DAMAGED)
def shard_of_negative_size(place: Place) -> None:
    """A shard of -1 samples."""
    _edit_shard(place, lambda facts: facts.update(samples=-1))


@attack("prepared", DAMAGED)
def shard_of_endless_samples(place: Place) -> None:
    """A shard of 10^18 samples."""
    _edit_shard(place, lambda facts: facts.update(samples=10**18))


@attack("prepared", DAMAGED)
def shard_of_wrong_types(place: Place) -> None:
    """Streams, files and hashes that are numbers."""
    _edit_shard(place, lambda facts: facts.update(streams=[1, 2], files=3, sha256=4, languages=5))


@attack("prepared", DAMAGED)
def deep_shard(place: Place) -> None:
    """A description of 100,000 nested lists."""
    path = find_description(place)
    path.write_text("[" * 100_000 + "]" * 100_000)
    _update_digest(place, path.name)


@attack("prepared", DAMAGED)
def samples_beyond_the_tokens(place: Place) -> None:
    """Lengths whose sum exceeds the number of tokens, and file numbers without a name."""
    path = next(place.folder.glob("*.idx"))
    table = np.fromfile(path, dtype="<u4")
    table[:] = 4_000_000_000
    table.tofile(path)


@attack("prepared", "damaged")
def deep_corpus(place: Place) -> None:
    """corpus.json with 100,000 nested lists."""
    (place.folder / "corpus.json").write_text("[" * 100_000 + "]" * 100_000)


@attack("prepared", "damaged")
def corpus_of_wrong_types(place: Place) -> None:
    """corpus.json whose shards are a list and whose weights are a string."""
    place.edit("corpus.json", lambda corpus: corpus.update(shards=[1], weights="heavy"))


@attack("corpus", "file grows")
def gzip_bomb(place: Place) -> Path:
    """A .gz of 100 KB that unpacks to 100 MB without a line break."""
    path = place.folder / "bomb.txt.gz"
    path.write_bytes(gzip.compress(bytes(1 << 22), 6) * 25)  # readers join the members
    return path


@attack("corpus", "file grows")
def xz_bomb(place: Place) -> Path:
    """A .xz of 15 KB that unpacks to 100 MB."""
    path = place.folder / "bomb.txt.xz"
    path.write_bytes(lzma.compress(bytes(1 << 22), preset=0) * 25)  # readers join the streams
    return path


@attack("corpus", "file grows")
def zstandard_bomb(place: Place) -> Path:
    """A .zst of 30 KB that unpacks to a gigabyte."""
    import zstandard

    path = place.folder / "bomb.txt.zst"
    packer, zeros = zstandard.ZstdCompressor().compressobj(), bytes(1 << 22)
    with path.open("wb") as file:
        for _ in range(256):
            file.write(packer.compress(zeros))
        file.write(packer.flush())
    return path


@attack("corpus", "Not JSON")
def deep_line(place: Place) -> Path:
    """A line of 100,000 nested lists."""
    path = place.folder / "deep.jsonl"
    path.write_text('{"source": "good"}\n' + "[" * 100_000 + "]" * 100_000 + "\n")
    return path


@attack("corpus", "defines an entity")
def billion_laughs(place: Place) -> Path:
    """A translation memory with exponential entity expansion ("billion laughs")."""
    path = place.folder / "laughs.tmx"
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    path.write_text(f'<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY l0 "ha">{entities}]><tmx>&l9;</tmx>')
    return path


@attack("corpus", "Not JSON|not a JSON")
def line_of_no_json(place: Place) -> Path:
    """A number of 100,000 digits where an object must be."""
    path = place.folder / "digits.jsonl"
    path.write_text(json.dumps({"source": "good"}) + "\n" + "9" * 100_000 + "\n")
    return path
