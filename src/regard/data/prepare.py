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
from regard.data.shards import FORMAT, Shards, load, save
from regard.data.tokenise import packed_text, tokenise, unpacked_text
from regard.text.tokenizer import Tokenizer
from regard.text.vocabularies import TokenizerPair

CORPUS = "corpus.json"
SIZE = 8_000_000  # characters of text a shard
_OURS = re.compile(r"\d{3,}-\d{6,}\.(bin|idx|json)")


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


class Done(NamedTuple):
    """One shard that is finished: what was counted in it, and whether it was there already."""

    name: str
    sha256: str
    samples: int
    tokens: int
    bytes: int
    kept: bool


class Failed(NamedTuple):
    """An error in a worker, in words: exceptions do not travel well between processes."""

    what: str
    where: str | None
    fix: str | None


Report = Callable[[Done], None]


def prepare(
    corpus: Corpus,
    vocabularies: TokenizerPair,
    folder: Path,
    defects: Defects,
    *,
    workers: int = 1,
    size: int = SIZE,
    report: Report = lambda _: None,
) -> list[Done]:
    """Write a corpus as shards into a folder, or finish what an earlier call began; `report` hears of each shard."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CORPUS).unlink(missing_ok=True)  # from here on the folder is unfinished
    for leftover in folder.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)
    finished = []
    for done in _made(chunks(corpus.examples(defects), corpus.names, size), vocabularies, folder, workers):
        report(done)
        finished.append(done)
    write_corpus(folder, finished, dict(zip(corpus.names, corpus.weights, strict=True)))
    return finished


def write_corpus(folder: Path, finished: Iterable[Done], weights: Mapping[str, float]) -> None:
    """Seal the folder: name its shards in `corpus.json`, and remove those of an earlier corpus."""
    shards = {done.name: done.sha256 for done in sorted(finished)}
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.stem not in shards:
            path.unlink()
    content = {"format": FORMAT, "shards": shards, "weights": dict(weights)}
    write_atomic(folder / CORPUS, (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode())


def open_corpus(folder: Path, weights: Mapping[str, float] | None = None, *, thorough: bool = False) -> Shards:
    """The shards of a folder; `weights` by source replace those that it was prepared with."""
    path = folder / CORPUS
    try:
        content = read_json(path, "Run `regard prepare` again.")
        shards = {str(name): str(digest) for name, digest in content["shards"].items()}
        known = {str(source): float(weight) for source, weight in content["weights"].items()}
    except FileNotFoundError:
        raise DamagedError(
            "The corpus was never finished.", where=str(path), fix="Run `regard prepare` again: it goes on."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError("The file is damaged.", where=str(path), fix="Run `regard prepare` again.") from error
    if unknown := sorted((weights or {}).keys() - known.keys()):
        what = f"The shards have no source '{unknown[0]}'; theirs are: {', '.join(sorted(known))}."
        raise RegardError(what, where=str(path), fix="Name the sources as when they were prepared.")
    loaded = [load(folder, name, expected=sha256, thorough=thorough) for name, sha256 in sorted(shards.items())]
    return Shards(loaded, {**known, **(weights or {})})


def in_memory(corpus: Corpus, vocabularies: TokenizerPair, defects: Defects) -> Shards:
    """A small corpus without files: the same samples in the same order as `prepare` would write, a shard a source."""
    shards = [
        tokenise(
            [example for _, example in group], *_both(vocabularies), name=f"{index:03}", origin=corpus.names[index]
        )
        for index, group in groupby(corpus.examples(defects), key=itemgetter(0))
    ]
    return Shards(shards, dict(zip(corpus.names, corpus.weights, strict=True)))


def chunks(examples: Iterable[tuple[int, Example]], names: Sequence[str], size: int = SIZE) -> Iterator[Chunk]:
    """The text of examples that come with the index of their source, in pieces of `size` characters or a little more.

    No piece has text of two sources, and pieces are numbered within their source.
    """
    for index, group in groupby(examples, key=itemgetter(0)):
        some: list[Example] = []
        number = held = 0
        for _, example in group:
            some.append(example)
            held += len(example.source) + len(example.target or "")
            if held >= size:
                yield Chunk(f"{index:03}-{number:06}", names[index], packed_text(some))
                some, held, number = [], 0, number + 1
        if some:
            yield Chunk(f"{index:03}-{number:06}", names[index], packed_text(some))


def write_shard(chunk: Chunk, vocabularies: TokenizerPair, folder: Path) -> Done:
    """Cut a chunk into tokens and write it, unless that has been done."""
    if (done := _kept(chunk, vocabularies, folder)) is not None:
        return done
    return _written(chunk, vocabularies, folder)


def _kept(chunk: Chunk, vocabularies: TokenizerPair, folder: Path) -> Done | None:
    """The shard of this chunk, if it is there, whole and made from the same."""
    try:
        shard = load(folder, chunk.name, thorough=True)
    except DamagedError:
        return None
    made_from = {"source": vocabularies.source.fingerprint, "target": vocabularies.target.fingerprint}
    wanted = {kind: known for kind, known in made_from.items() if kind in shard.streams} | {"text": chunk.sha256}
    if shard.made_from != wanted or shard.source != chunk.source:
        return None
    return Done(chunk.name, shard.sha256, len(shard), shard.tokens.size, len(chunk.text), kept=True)


def _written(chunk: Chunk, vocabularies: TokenizerPair, folder: Path) -> Done:
    shard = tokenise(
        unpacked_text(chunk.text),
        *_both(vocabularies),
        name=chunk.name,
        origin=chunk.source,
        text=chunk.sha256,
    )
    return Done(chunk.name, save(shard, folder), len(shard), shard.tokens.size, len(chunk.text), kept=False)


def _both(vocabularies: TokenizerPair) -> tuple[Tokenizer, Tokenizer]:
    return vocabularies.source, vocabularies.target


class WorkerError(RegardError):
    """A process that cut text into tokens is gone: memory ran out, or somebody ended it."""


def _made(some: Iterator[Chunk], vocabularies: TokenizerPair, folder: Path, workers: int) -> Iterator[Done]:
    """Every chunk as a shard, in order; at most a few chunks are in memory."""
    with one_thread():
        if workers == 1:
            yield from (write_shard(chunk, vocabularies, folder) for chunk in some)
            return
        contents = vocabularies.source.content, vocabularies.target.content
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, context, _begin, (*contents, str(folder))) as pool:
            pending: deque[Future[Done | Failed] | Done] = deque()
            try:
                for chunk in some:
                    kept = _kept(chunk, vocabularies, folder)
                    pending.append(kept or pool.submit(_work, chunk))
                    if len(pending) > workers + 1:
                        yield _result(pending.popleft())
                while pending:
                    yield _result(pending.popleft())
            except BrokenProcessPool as error:
                raise WorkerError(
                    "A worker process died; perhaps there was not enough memory.",
                    fix="Run it again: finished shards are kept. `regard prepare` can do with fewer --workers. "
                    'A script of your own must begin its work under `if __name__ == "__main__":`.',
                ) from error
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _result(one: Future[Done | Failed] | Done) -> Done:
    result = one if isinstance(one, Done) else one.result()
    if isinstance(result, Failed):
        raise CorpusError(result.what, where=result.where, fix=result.fix)
    return result


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep `tokenizers` from starting threads of its own: our processes share the work already."""
    names = ("TOKENIZERS_PARALLELISM", "RAYON_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update({"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


_here: tuple[TokenizerPair, Path] | None = None  # a worker's own


def _begin(source: bytes, target: bytes, folder: str) -> None:
    global _here
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all: the parent hears it, and decides for all
    first = Tokenizer(source)
    _here = TokenizerPair(first, first if target == source else Tokenizer(target)), Path(folder)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that is killed cannot tell its workers: they watch it, so that none is left behind."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _work(chunk: Chunk) -> Done | Failed:
    assert _here is not None  # noqa: S101 - `_begin` ran
    try:
        return _written(chunk, *_here)
    except RegardError as error:
        return Failed(error.what, error.where, error.fix)
