"""A corpus -> a folder of token shards, in parallel, and on from where it was killed.

One process reads; the text goes in chunks of about `size` characters to worker processes, each of which cuts its chunk
into tokens and writes one shard. What is in which shard depends on the text alone, not on the number of workers. A
shard records the sha256 of its text and of its vocabulary: a shard that is there already, was made from the same,
and is undamaged, is kept. So after any number of kills the folder is, byte for byte, what one quiet run makes, and a
text or vocabulary that changed meanwhile is noticed. `corpus.json`, written last, names all shards with their sha256.
"""

import contextlib
import hashlib
import json
import multiprocessing
import os
import re
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import groupby
from multiprocessing.connection import wait
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from regard.base.errors import DamagedError, RegardError
from regard.base.files import read_json, write_atomic
from regard.data.corpus import Corpus
from regard.data.example import CorpusError, Defects, Example
from regard.data.shards.shard import FORMAT, Shards, load_shard, save_shard
from regard.data.shards.tokenize import deserialize_examples, serialize_examples, tokenize_examples
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair

CORPUS_FILE = "corpus.json"
SHARD_CHARACTERS = 8_000_000  # characters of text a shard
_SHARD_FILE = re.compile(r"\d{3,}-\d{6,}\.(bin|idx|json)")


@dataclass(frozen=True)
class Chunk:
    """The text of one shard."""

    name: str
    source: str
    text: bytes  # as `packed_text` writes it

    @property
    def sha256(self) -> str:
        """The fingerprint of the text."""
        return hashlib.sha256(self.text).hexdigest()


class ShardDone(NamedTuple):
    """One shard that is finished: what was counted in it, and whether it was there already."""

    name: str
    sha256: str
    samples: int
    tokens: int
    bytes: int
    reused: bool


class WorkerFailure(NamedTuple):
    """An error in a worker, in words: exceptions do not travel well between processes."""

    what: str
    where: str | None
    fix: str | None


Report = Callable[[ShardDone], None]


def prepare(
    corpus: Corpus,
    tokenizers: TokenizerPair,
    folder: Path,
    defects: Defects,
    *,
    workers: int = 1,
    shard_size: int = SHARD_CHARACTERS,
    report: Report = lambda _: None,
) -> list[ShardDone]:
    """Write a corpus as shards into a folder, or finish what an earlier call began; `report` hears of each shard."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CORPUS_FILE).unlink(missing_ok=True)  # from here on the folder is unfinished
    for leftover in folder.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)
    done_shards = []
    for done in _write_shards(
        make_chunks(corpus.examples(defects), corpus.names, shard_size), tokenizers, folder, workers
    ):
        report(done)
        done_shards.append(done)
    write_corpus(folder, done_shards, dict(zip(corpus.names, corpus.weights, strict=True)))
    return done_shards


def write_corpus(folder: Path, done_shards: Iterable[ShardDone], weights: Mapping[str, float]) -> None:
    """Seal the folder: name its shards in `corpus.json`, and remove those of an earlier corpus."""
    shards = {done.name: done.sha256 for done in sorted(done_shards)}
    for path in folder.iterdir():
        if _SHARD_FILE.fullmatch(path.name) and path.stem not in shards:
            path.unlink()
    content = {"format": FORMAT, "shards": shards, "weights": dict(weights)}
    write_atomic(
        folder / CORPUS_FILE, (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
    )


def open_corpus(folder: Path, weights: Mapping[str, float] | None = None, *, verify: bool = False) -> Shards:
    """The shards of a folder; `weights` by source replace those that it was prepared with."""
    path = folder / CORPUS_FILE
    try:
        content = read_json(path, "Run `regard prepare` again.")
        shards = {str(name): str(digest) for name, digest in content["shards"].items()}
        stored_weights = {str(source): float(weight) for source, weight in content["weights"].items()}
    except FileNotFoundError:
        raise DamagedError(
            "The corpus was never finished.", where=str(path), fix="Run `regard prepare` again: it goes on."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError("The file is damaged.", where=str(path), fix="Run `regard prepare` again.") from error
    if unknown_sources := sorted((weights or {}).keys() - stored_weights.keys()):
        what = f"The shards have no source '{unknown_sources[0]}'; theirs are: {', '.join(sorted(stored_weights))}."
        raise RegardError(what, where=str(path), fix="Name the sources as when they were prepared.")
    shard_list = [
        load_shard(folder, name, expected_sha256=sha256, verify=verify) for name, sha256 in sorted(shards.items())
    ]
    return Shards(shard_list, {**stored_weights, **(weights or {})})


def prepare_in_memory(corpus: Corpus, tokenizers: TokenizerPair, defects: Defects) -> Shards:
    """A small corpus without files: the same samples in the same order as `prepare` would write, a shard a source."""
    shards = [
        tokenize_examples(
            [example for _, example in group],
            *_source_and_target(tokenizers),
            name=f"{index:03}",
            origin=corpus.names[index],
        )
        for index, group in groupby(corpus.examples(defects), key=itemgetter(0))
    ]
    return Shards(shards, dict(zip(corpus.names, corpus.weights, strict=True)))


def make_chunks(
    examples: Iterable[tuple[int, Example]], names: Sequence[str], shard_size: int = SHARD_CHARACTERS
) -> Iterator[Chunk]:
    """The text of examples that come with the index of their source, in pieces of `size` characters or a little more.

    No piece has text of two sources, and pieces are numbered within their source.
    """
    for index, group in groupby(examples, key=itemgetter(0)):
        batch: list[Example] = []
        number = n_characters = 0
        for _, example in group:
            batch.append(example)
            n_characters += len(example.source) + len(example.target or "")
            if n_characters >= shard_size:
                yield Chunk(f"{index:03}-{number:06}", names[index], serialize_examples(batch))
                batch, n_characters, number = [], 0, number + 1
        if batch:
            yield Chunk(f"{index:03}-{number:06}", names[index], serialize_examples(batch))


def write_shard(chunk: Chunk, tokenizers: TokenizerPair, folder: Path) -> ShardDone:
    """Cut a chunk into tokens and write it, unless that has been done."""
    if (done := _find_finished(chunk, tokenizers, folder)) is not None:
        return done
    return _tokenize_and_save(chunk, tokenizers, folder)


def _find_finished(chunk: Chunk, tokenizers: TokenizerPair, folder: Path) -> ShardDone | None:
    """The shard of this chunk, if it is there, whole and made from the same."""
    try:
        shard = load_shard(folder, chunk.name, verify=True)
    except DamagedError:
        return None
    made_from = {"source": tokenizers.source.fingerprint, "target": tokenizers.target.fingerprint}
    expected = {kind: fingerprint for kind, fingerprint in made_from.items() if kind in shard.streams} | {
        "text": chunk.sha256
    }
    if shard.made_from != expected or shard.source != chunk.source:
        return None
    return ShardDone(chunk.name, shard.sha256, len(shard), shard.tokens.size, len(chunk.text), reused=True)


def _tokenize_and_save(chunk: Chunk, tokenizers: TokenizerPair, folder: Path) -> ShardDone:
    shard = tokenize_examples(
        deserialize_examples(chunk.text),
        *_source_and_target(tokenizers),
        name=chunk.name,
        origin=chunk.source,
        text_sha256=chunk.sha256,
    )
    return ShardDone(
        chunk.name, save_shard(shard, folder), len(shard), shard.tokens.size, len(chunk.text), reused=False
    )


def _source_and_target(tokenizers: TokenizerPair) -> tuple[Tokenizer, Tokenizer]:
    return tokenizers.source, tokenizers.target


class WorkerError(RegardError):
    """A process that cut text into tokens is gone: memory ran out, or somebody ended it."""


def _write_shards(
    chunks: Iterator[Chunk], tokenizers: TokenizerPair, folder: Path, workers: int
) -> Iterator[ShardDone]:
    """Every chunk as a shard, in order; at most a few chunks are in memory."""
    with use_one_thread():
        if workers == 1:
            yield from (write_shard(chunk, tokenizers, folder) for chunk in chunks)
            return
        contents = tokenizers.source.content, tokenizers.target.content
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, context, _init_worker, (*contents, str(folder))) as pool:
            pending: deque[Future[ShardDone | WorkerFailure] | ShardDone] = deque()
            try:
                for chunk in chunks:
                    finished_shard = _find_finished(chunk, tokenizers, folder)
                    pending.append(finished_shard or pool.submit(_write_in_worker, chunk))
                    if len(pending) > workers + 1:
                        yield _unwrap(pending.popleft())
                while pending:
                    yield _unwrap(pending.popleft())
            except BrokenProcessPool as error:
                raise WorkerError(
                    "A worker process died; perhaps there was not enough memory.",
                    fix="Run it again: finished shards are kept. `regard prepare` can do with fewer --workers. "
                    'A script of your own must begin its work under `if __name__ == "__main__":`.',
                ) from error
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _unwrap(pending: Future[ShardDone | WorkerFailure] | ShardDone) -> ShardDone:
    result = pending if isinstance(pending, ShardDone) else pending.result()
    if isinstance(result, WorkerFailure):
        raise CorpusError(result.what, where=result.where, fix=result.fix)
    return result


@contextlib.contextmanager
def use_one_thread() -> Iterator[None]:
    """Keep `tokenizers` from starting threads of its own: our processes share the work already."""
    names = ("TOKENIZERS_PARALLELISM", "RAYON_NUM_THREADS")
    saved_environment = {name: os.environ.get(name) for name in names}
    os.environ.update({"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"})
    try:
        yield
    finally:
        for name, value in saved_environment.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


_worker_state: tuple[TokenizerPair, Path] | None = None  # a worker's own


def _init_worker(source: bytes, target: bytes, folder: str) -> None:
    global _worker_state
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all: the parent hears it, and decides for all
    source_tokenizer = Tokenizer(source)
    _worker_state = (
        TokenizerPair(source_tokenizer, source_tokenizer if target == source else Tokenizer(target)),
        Path(folder),
    )
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """A parent that is killed cannot tell its workers: they watch it, so that none is left behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _write_in_worker(chunk: Chunk) -> ShardDone | WorkerFailure:
    assert _worker_state is not None  # noqa: S101 - `_begin` ran
    try:
        return _tokenize_and_save(chunk, *_worker_state)
    except RegardError as error:
        return WorkerFailure(error.what, error.where, error.fix)
