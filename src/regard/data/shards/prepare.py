"""Write a corpus as a folder of token shards, with several processes; an interrupted run can be resumed.

One process reads the text and passes it in chunks of about `shard_size` characters to worker processes. A worker
tokenizes its chunk and writes one shard. The content of each shard depends only on the text, not on the number of
workers. A shard records the sha256 of its text and of its tokenizers; an existing shard is reused if it was made from
the same text and tokenizers and is undamaged. After interruptions, the folder is therefore byte-identical to the result
of an uninterrupted run, and a changed text or tokenizer is detected. `corpus.json`, written last, names all shards with
their sha256.
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
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from multiprocessing.connection import wait
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.files import read_json, read_regular_file, write_atomic
from regard.data.corpus import Corpus
from regard.data.example import CorpusError, Defects, Example
from regard.data.shards.open_arrays import REWRITE_HINT
from regard.data.shards.shard import Shard, Shards
from regard.data.shards.stored import FORMAT, INDEX_FILE, StoredShard, load_shard, parse_index, save_shard, write_index
from regard.data.shards.tokenize import deserialize_examples, find_word_encoder, serialize_examples, store_examples
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair

CORPUS_FILE = "corpus.json"
SHARD_CHARACTERS = 8_000_000  # characters of text, or values of images, per shard
_SHARD_FILE = re.compile(r"\d{3,}-\d{6,}\.(bin|idx|json)")


@dataclass(frozen=True)
class ShardChunk:
    """The text of one shard, and the folder that the shard is written to."""

    folder: Path
    name: str
    source: str
    text: bytes  # as `serialize_examples` returns it
    examples: tuple[Example, ...] = ()  # of the text; empty in a worker process, which reads the text

    @cached_property
    def sha256(self) -> str:
        """The sha256 of the text."""
        return hashlib.sha256(self.text).hexdigest()


class ShardDone(NamedTuple):
    """A finished shard: its path, its counts, and whether it was reused from an earlier run."""

    folder: Path
    name: str
    sha256: str
    samples: int
    tokens: int
    bytes: int
    reused: bool


class WorkerFailure(NamedTuple):
    """The fields of a RegardError in a worker, because exceptions with several arguments cannot be unpickled."""

    message: str
    location: str | None
    hint: str | None


Report = Callable[[ShardDone], None]


def prepare(
    corpus: Corpus,
    tokenizers: TokenizerPair | None,
    folder: Path,
    defects: Defects,
    *,
    workers: int = 1,
    shard_size: int = SHARD_CHARACTERS,
    report: Report = lambda _: None,
) -> list[ShardDone]:
    """Write a corpus as shards into a folder, or finish an interrupted call.

    Args:
        corpus: The text; its files are read once.
        tokenizers: Tokenizers of source and target; None for images.
        folder: Created if missing. Undamaged shards of the same text and tokenizers are reused.
        defects: Counts the defects that the readers tolerate.
        workers: Number of processes that tokenize; 1 tokenizes in this process.
        shard_size: Characters of text per shard.
        report: Called with every finished shard, in order.
    """
    examples = ((folder, index, example) for index, example in corpus.examples(defects))
    return prepare_parts(examples, corpus, tokenizers, [folder], workers=workers, shard_size=shard_size, report=report)


def prepare_parts(
    examples: Iterable[tuple[Path, int, Example]],
    corpus: Corpus,
    tokenizers: TokenizerPair | None,
    folders: Sequence[Path],
    *,
    workers: int = 1,
    shard_size: int = SHARD_CHARACTERS,
    report: Report = lambda _: None,
) -> list[ShardDone]:
    """Write several parts of a corpus in one pass, with the same result as `prepare` for each part.

    Args:
        examples: Each with the folder of its part (one of `folders`) and the index of its source in `corpus`.
        corpus: The corpus of the examples; only names and weights of its sources are used.
        folders: One per part; a part may be without examples.
        tokenizers, workers, shard_size, report: As in `prepare`.
    """
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CORPUS_FILE).unlink(missing_ok=True)  # from here on the folder is unfinished
        for leftover in folder.glob(".*.tmp"):
            leftover.unlink(missing_ok=True)
    done_shards = []
    for done in _write_shards(make_chunks(examples, corpus.names, shard_size), tokenizers, workers):
        report(done)
        done_shards.append(done)
    find_word_encoder.cache_clear()
    for folder in folders:
        shards = {done.name: done.sha256 for done in done_shards if done.folder == folder}
        write_corpus(folder, shards, dict(zip(corpus.names, corpus.weights, strict=True)))
    return done_shards


def write_corpus(folder: Path, shards: Mapping[str, str], weights: Mapping[str, float]) -> None:
    """Write the index and `corpus.json` (sha256 by shard, weight by source), which finishes a folder.

    Older shards are removed.
    """
    for path in folder.iterdir():
        if _SHARD_FILE.fullmatch(path.name) and path.stem not in shards:
            path.unlink()
    index = write_index(folder, shards)
    content = {"format": FORMAT, "index": index, "shards": dict(shards), "weights": dict(weights)}
    write_atomic(
        folder / CORPUS_FILE, (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
    )


def open_corpus(folder: Path, weights: Mapping[str, float] | None = None, *, verify: bool = False) -> Shards:
    """Open the shards of a folder.

    Args:
        folder: A folder that `prepare` finished.
        weights: Weights by source name; they replace the stored ones.
        verify: Read everything and compare the sha256, instead of sizes only.

    Raises:
        DamagedError: If the folder is unfinished or damaged.
    """
    path = folder / CORPUS_FILE
    try:
        content = read_json(path, "Run `regard prepare` again.")
        shards = {str(name): str(digest) for name, digest in content["shards"].items()}
        stored_weights = {str(source): float(weight) for source, weight in content["weights"].items()}
    except FileNotFoundError:
        raise DamagedError(
            "The corpus is incomplete.", location=str(path), hint="Run `regard prepare` again to continue."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError("The file is damaged.", location=str(path), hint="Run `regard prepare` again.") from error
    weights = replace_weights(stored_weights, weights or {}, location=str(path))
    if "index" not in content:  # written by an earlier version
        return Shards(
            [load_shard(folder, name, expected_sha256=shards[name], verify=verify) for name in sorted(shards)], weights
        )
    stored = _read_index(folder, shards, str(content["index"]))
    for shard in stored:
        shard.check_sizes()
        if verify:
            shard.verify()
    return Shards(stored, weights)


def _read_index(folder: Path, shards: Mapping[str, str], expected_sha256: str) -> list[StoredShard]:
    path = folder / INDEX_FILE
    try:
        content = read_regular_file(path, limits.INDEX)
    except FileNotFoundError:
        raise DamagedError("The file is missing.", location=str(path), hint=REWRITE_HINT) from None
    if hashlib.sha256(content).hexdigest() != expected_sha256:
        raise DamagedError(
            "The file does not match corpus.json (sha256 differs).", location=str(path), hint=REWRITE_HINT
        )
    return parse_index(content, folder, shards, location=str(path))


def replace_weights(stored: Mapping[str, float], new: Mapping[str, float], *, location: str) -> dict[str, float]:
    """Return the sources' weights with changes applied; raise an error for unknown sources."""
    if unknown_sources := sorted(new.keys() - stored.keys()):
        message = f"The shards have no source '{unknown_sources[0]}', only: {', '.join(sorted(stored))}."
        raise RegardError(message, location=location, hint="Use the source names from when the corpus was prepared.")
    return {**stored, **new}


def prepare_in_memory(corpus: Corpus, tokenizers: TokenizerPair | None, defects: Defects) -> Shards:
    """Tokenize a small corpus without writing files: the samples and order of `prepare`, one shard per source."""
    shards = [
        store_examples(
            [example for _, example in group],
            tokenizers,
            name=f"{index:03}",
            origin=corpus.names[index],
        )
        for index, group in groupby(corpus.examples(defects), key=itemgetter(0))
    ]
    return Shards(shards, dict(zip(corpus.names, corpus.weights, strict=True)))


def make_chunks(
    examples: Iterable[tuple[Path, int, Example]], names: Sequence[str], shard_size: int = SHARD_CHARACTERS
) -> Iterator[ShardChunk]:
    """Collect examples into chunks of `shard_size` characters or a little more.

    Every chunk has text of one part (folder) and one source only; chunks are numbered within part and source. The
    chunks of a part do not depend on the examples of other parts.
    """
    for index, group in groupby(examples, key=itemgetter(1)):
        buffers: dict[Path, _Buffer] = {}
        for folder, _, example in group:
            if (buffer := buffers.get(folder)) is None:
                buffer = buffers[folder] = _Buffer()
            buffer.examples.append(example)
            buffer.characters += example.size
            if buffer.characters >= shard_size:
                yield buffer.make_chunk(folder, index, names[index])
                buffers[folder] = _Buffer(number=buffer.number + 1)
        for folder, buffer in buffers.items():
            if buffer.examples:
                yield buffer.make_chunk(folder, index, names[index])


@dataclass
class _Buffer:
    """The examples of a chunk that is not full yet."""

    number: int = 0
    characters: int = 0
    examples: list[Example] = field(default_factory=list)

    def make_chunk(self, folder: Path, index: int, source: str) -> ShardChunk:
        name, text = f"{index:03}-{self.number:06}", serialize_examples(self.examples)
        return ShardChunk(folder, name, source, text, tuple(self.examples))


def write_shard(chunk: ShardChunk, tokenizers: TokenizerPair | None) -> ShardDone:
    """Tokenize a chunk and write its shard, unless the shard already exists."""
    return _find_finished(chunk, tokenizers) or _tokenize_and_save(chunk, tokenizers)


def _find_finished(chunk: ShardChunk, tokenizers: TokenizerPair | None) -> ShardDone | None:
    """Return the existing shard of this chunk if it is undamaged and made from the same text and tokenizers."""
    try:
        shard = load_shard(chunk.folder, chunk.name, verify=True)
    except DamagedError:
        return None
    fingerprints = dict[str, str]()
    if tokenizers is not None:
        fingerprints = {"source": tokenizers.source.fingerprint, "target": tokenizers.target.fingerprint}
    expected = {kind: fingerprint for kind, fingerprint in fingerprints.items() if kind in shard.streams}
    if shard.made_from != {**expected, "text": chunk.sha256} or shard.source != chunk.source:
        return None
    return _describe_shard(chunk, shard, shard.sha256, reused=True)


def _tokenize_and_save(chunk: ShardChunk, tokenizers: TokenizerPair | None) -> ShardDone:
    shard = store_examples(
        chunk.examples or deserialize_examples(chunk.text),
        tokenizers,
        name=chunk.name,
        origin=chunk.source,
        text_sha256=chunk.sha256,
    )
    return _describe_shard(chunk, shard, save_shard(shard, chunk.folder), reused=False)


def _describe_shard(chunk: ShardChunk, shard: Shard, sha256: str, *, reused: bool) -> ShardDone:
    return ShardDone(chunk.folder, chunk.name, sha256, len(shard), shard.tokens.size, len(chunk.text), reused)


class WorkerError(RegardError):
    """A worker process died: it ran out of memory, or was killed."""


def _write_shards(chunks: Iterator[ShardChunk], tokenizers: TokenizerPair | None, workers: int) -> Iterator[ShardDone]:
    """Write every chunk as a shard, in order. At most `workers + 2` chunks are in memory."""
    with use_one_thread():
        if workers == 1:
            yield from (write_shard(chunk, tokenizers) for chunk in chunks)
            return
        contents = () if tokenizers is None else (tokenizers.source.content, tokenizers.target.content)
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, context, _init_worker, contents) as pool:
            pending: deque[Future[ShardDone | WorkerFailure] | ShardDone] = deque()
            try:
                # A worker that cannot start must fail before a chunk is sent to it; otherwise the pool hangs.
                pool.submit(os.getpid).result()
                for chunk in chunks:
                    finished = _find_finished(chunk, tokenizers)
                    pending.append(finished or pool.submit(_write_in_worker, replace(chunk, examples=())))
                    if len(pending) > workers + 1:
                        yield _unwrap(pending.popleft())
                while pending:
                    yield _unwrap(pending.popleft())
            except BrokenProcessPool as error:
                raise WorkerError(
                    "A worker process died, possibly because memory ran out.",
                    hint="Run it again, perhaps with `regard prepare` and fewer --workers: finished shards are "
                    'reused. In your own script, start the work under `if __name__ == "__main__":`.',
                ) from error
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _unwrap(pending: Future[ShardDone | WorkerFailure] | ShardDone) -> ShardDone:
    result = pending if isinstance(pending, ShardDone) else pending.result()
    if isinstance(result, WorkerFailure):
        raise CorpusError(result.message, location=result.location, hint=result.hint)
    return result


@contextlib.contextmanager
def use_one_thread() -> Iterator[None]:
    """Keep the `tokenizers` library from starting threads: the worker processes already share the work."""
    names = ("TOKENIZERS_PARALLELISM", "RAYON_NUM_THREADS")
    saved_environment = {name: os.environ.get(name) for name in names}
    os.environ.update({"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"})
    try:
        yield
    finally:
        for name, value in saved_environment.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


_worker_tokenizers: TokenizerPair | None = None  # set in worker processes only, and only for texts


def _init_worker(*contents: bytes) -> None:
    global _worker_tokenizers
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent handles it
    if contents:
        source, target = contents
        tokenizer = Tokenizer(source)
        _worker_tokenizers = TokenizerPair(tokenizer, tokenizer if target == source else Tokenizer(target))
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Exit when the parent process ends, because a killed parent cannot stop its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _write_in_worker(chunk: ShardChunk) -> ShardDone | WorkerFailure:
    try:
        return _tokenize_and_save(chunk, _worker_tokenizers)
    except RegardError as error:
        return WorkerFailure(error.message, error.location, error.hint)
