"""Prepare a corpus on many machines: steps for a datatrove pipeline (extra `cluster`).

Each task of the pipeline reads some of the sources and writes their shards. Tasks are independent: they run as local
processes, as a Slurm array, or on Ray. Any of datatrove's filters can be placed between `ReadSources` and
`WriteShards`. Shards are named after their source, so the folder is byte-identical to the output of `regard prepare`
for any number of tasks. For every finished source, `WriteShards` leaves a file `receipt-N.json` that lists its shards.
`SealCorpus` runs once at the end: it checks that every source has its receipt and writes `corpus.json`.

Steps are callables, which datatrove accepts like its own classes. Only `ReadSources` imports datatrove, for its
document class.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.files import write_atomic
from regard.config.sources import AnySourceConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects, Example, Location
from regard.data.readers import read
from regard.data.shards.prepare import (
    SHARD_CHARACTERS,
    make_chunks,
    use_one_thread,
    write_corpus,
    write_shard,
)
from regard.text.tokenizer_pair import TokenizerPair

Documents = Iterable[Any]  # datatrove's documents


@dataclass(frozen=True)
class ReadSources:
    """Read every `world_size`-th source and yield its examples as documents."""

    sources: tuple[AnySourceConfig, ...]
    name = "Regard: read"

    def __call__(self, data: Documents | None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Yield the incoming documents, if any, then the documents of this task's sources."""
        yield from data or ()
        document = import_optional("datatrove.data", "cluster", "Preparing a corpus on a cluster").Document
        for index in range(rank, len(self.sources), world_size):
            for example in read(self.sources[index], Defects()):
                fields = asdict(example)
                text = fields.pop("source")
                yield document(text=text, id=str(example.location), metadata={"regard": {**fields, "index": index}})


@dataclass(frozen=True)
class WriteShards:
    """Write the documents of `ReadSources` as shards, and a receipt for every source of this task."""

    sources: tuple[AnySourceConfig, ...]
    tokenizer_folder: str  # a folder with tokenizer.json, or source.json and target.json
    folder: str
    shard_size: int = SHARD_CHARACTERS
    name = "Regard: write shards"

    def __call__(self, data: Documents, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Write the shards. Yields no documents, because this is the last step of its pipeline."""
        names, folder = Corpus(self.sources).names, Path(self.folder)
        tokenizers = TokenizerPair.load(Path(self.tokenizer_folder))
        folder.mkdir(parents=True, exist_ok=True)
        receipts: dict[int, dict[str, str]] = {index: {} for index in range(rank, len(names), world_size)}
        with use_one_thread():
            examples = ((folder, *_to_example(document)) for document in data)
            for chunk in make_chunks(examples, names, self.shard_size):
                done = write_shard(chunk, tokenizers)
                receipts[names.index(chunk.source)][done.name] = done.sha256
        for index, shards in receipts.items():
            write_atomic(_receipt_path(folder, index), json.dumps(shards, sort_keys=True).encode())
        yield from ()


@dataclass(frozen=True)
class SealCorpus:
    """Write `corpus.json` with the names of all shards. Run it as one task, after all others."""

    sources: tuple[AnySourceConfig, ...]
    folder: str
    name = "Regard: seal the corpus"

    def __call__(
        self,
        data: Documents | None = None,
        rank: int = 0,  # noqa: ARG002 - datatrove calls every step with these
        world_size: int = 1,  # noqa: ARG002
    ) -> Iterator[Any]:
        """Finish the folder, then yield the incoming documents unchanged."""
        corpus, folder = Corpus(self.sources), Path(self.folder)
        receipts = [_receipt_path(folder, index) for index in range(len(corpus.names))]
        if missing := [name for name, path in zip(corpus.names, receipts, strict=True) if not path.is_file()]:
            raise RegardError(
                f"{len(missing)} of {len(receipts)} sources are not finished; the first one is {missing[0]}.",
                location=self.folder,
                hint="Rerun the failed tasks; datatrove skips finished tasks.",
            )
        shards = {name: sha256 for path in receipts for name, sha256 in json.loads(path.read_bytes()).items()}
        write_corpus(folder, shards, dict(zip(corpus.names, corpus.weights, strict=True)))
        for path in receipts:
            path.unlink()
        yield from data or ()


def _to_example(document: Any) -> tuple[int, Example]:
    fields = dict(document.metadata["regard"])
    index, tags = fields.pop("index"), fields.pop("tags")
    return index, Example(
        location=Location(**fields.pop("location")),
        source=document.text,
        tags=None if tags is None else tuple(tags),
        languages=tuple(fields.pop("languages")),
        **fields,
    )


def _receipt_path(folder: Path, index: int) -> Path:
    return folder / f"receipt-{index:06}.json"
