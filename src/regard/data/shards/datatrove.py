"""The same preparation on many machines: steps for a datatrove pipeline (extra `cluster`).

A task of the pipeline reads some of the sources and writes their shards; tasks know nothing of each other, so they run
as processes here, or as a Slurm array or on Ray elsewhere. Between `Read` and `Write` any of datatrove's filters may
stand. Shards are named after their source, so the folder is, byte for byte, what `regard prepare` makes, whatever the
number of tasks. `Seal` runs once at the end, when every source has its receipt.

Steps are plain callables, which datatrove takes as well as its own; only `Read` imports it, to make its documents.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.config.run import AnySource
from regard.data.corpus import Corpus
from regard.data.example import Defects, Example, Location
from regard.data.readers import read
from regard.data.shards.prepare import (
    SHARD_CHARACTERS,
    ShardDone,
    make_chunks,
    use_one_thread,
    write_corpus,
    write_shard,
)
from regard.text.tokenizer_pair import TokenizerPair

Documents = Iterable[Any]  # of datatrove


@dataclass(frozen=True)
class ReadSources:
    """The examples of every `world_size`-th source, as documents."""

    sources: tuple[AnySource, ...]
    name = "Regard: read"

    def __call__(self, data: Documents | None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """What came before, if anything, then the sources of this task."""
        yield from data or ()
        document = _import_datatrove().Document
        for index in range(rank, len(self.sources), world_size):
            for example in read(self.sources[index], Defects()):
                fields = asdict(example)
                text = fields.pop("source")
                yield document(text=text, id=str(example.where), metadata={"regard": {**fields, "index": index}})


@dataclass(frozen=True)
class WriteShards:
    """Documents of `Read` -> shards, and a receipt for every source of this task."""

    sources: tuple[AnySource, ...]
    tokenizer_folder: str  # a folder with tokenizer.json, or source.json and target.json
    folder: str
    shard_size: int = SHARD_CHARACTERS
    name = "Regard: write shards"

    def __call__(self, data: Documents, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Nothing comes after."""
        names, folder = Corpus(self.sources).names, Path(self.folder)
        tokenizers = TokenizerPair.load(Path(self.tokenizer_folder))
        folder.mkdir(parents=True, exist_ok=True)
        receipts: dict[int, dict[str, str]] = {index: {} for index in range(rank, len(names), world_size)}
        with use_one_thread():
            for chunk in make_chunks(map(_to_example, data), names, self.shard_size):
                done = write_shard(chunk, tokenizers, folder)
                receipts[names.index(chunk.source)][done.name] = done.sha256
        for index, shards in receipts.items():
            write_atomic(_receipt_path(folder, index), json.dumps(shards, sort_keys=True).encode())
        yield from ()


@dataclass(frozen=True)
class SealCorpus:
    """When all tasks are done: name all shards in `corpus.json`. One task."""

    sources: tuple[AnySource, ...]
    folder: str
    name = "Regard: seal the corpus"

    def __call__(
        self,
        data: Documents | None = None,
        rank: int = 0,  # noqa: ARG002 - the signature of all steps
        world_size: int = 1,  # noqa: ARG002
    ) -> Iterator[Any]:
        """What came before goes on as it is."""
        corpus, folder = Corpus(self.sources), Path(self.folder)
        receipts = [_receipt_path(folder, index) for index in range(len(corpus.names))]
        if missing := [name for name, path in zip(corpus.names, receipts, strict=True) if not path.is_file()]:
            raise RegardError(
                f"{len(missing)} of {len(receipts)} sources are not written yet; the first is {missing[0]}.",
                where=self.folder,
                fix="Run the tasks that failed again: finished ones are skipped.",
            )
        shards = {name: sha256 for path in receipts for name, sha256 in json.loads(path.read_bytes()).items()}
        done_shards = [ShardDone(name, sha256, 0, 0, 0, reused=True) for name, sha256 in shards.items()]
        write_corpus(folder, done_shards, dict(zip(corpus.names, corpus.weights, strict=True)))
        for path in receipts:
            path.unlink()
        yield from data or ()


def _to_example(document: Any) -> tuple[int, Example]:
    fields = dict(document.metadata["regard"])
    index, tags = fields.pop("index"), fields.pop("tags")
    return index, Example(
        where=Location(**fields.pop("where")),
        source=document.text,
        tags=None if tags is None else tuple(tags),
        languages=tuple(fields.pop("languages")),
        **fields,
    )


def _receipt_path(folder: Path, index: int) -> Path:
    return folder / f"receipt-{index:06}.json"


def _import_datatrove() -> Any:
    try:
        return import_module("datatrove.data")
    except ImportError as error:
        raise RegardError("The cluster step needs datatrove.", fix="pip install 'regard[cluster]'") from error
