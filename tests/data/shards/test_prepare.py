import gzip
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from regard.base.errors import DamagedError
from regard.config.sources import AnySourceConfig, DocumentsConfig, LinesConfig
from regard.config.tokenizers import ByteBpeConfig
from regard.data.corpus import Corpus
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.shards.prepare import (
    CORPUS_FILE,
    ShardChunk,
    ShardDone,
    WorkerError,
    _write_shards,
    make_chunks,
    open_corpus,
    prepare,
    prepare_in_memory,
)
from regard.data.shards.stored import INDEX_FILE
from regard.data.shards.tokenize import deserialize_examples, serialize_examples
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from tests.data.factories import SHARED
from tests.data.shards.factories import TOKENIZERS, WORDS, hash_files, run_prepare, write_corpus


def test_shards_hold_the_corpus(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 300)
    done = run_prepare(sources, tmp_path / "out")
    corpus = open_corpus(tmp_path / "out", verify=True)
    assert len(done) == len(corpus.shards) > 6
    assert len(corpus) == 600
    assert set(zip([shard.source for shard in corpus.shards], corpus.weights, strict=True)) == {("a", 2.0), ("b", 1.0)}
    expected = [
        (str(example.location), example.source, example.target) for _, example in Corpus(sources).examples(Defects())
    ]
    tokenizer = TOKENIZERS.source
    samples = []
    for shard in corpus.shards:
        offsets = shard.offsets()
        for number in range(len(shard)):
            middle = offsets[number] + shard.lengths[0, number]
            source, target = shard.tokens[offsets[number] : middle], shard.tokens[middle : offsets[number + 1]]
            texts = tokenizer.decode(source.tolist()), tokenizer.decode(target.tolist())
            samples.append((str(shard.locate(number)), *texts))
    assert samples == expected
    assert open_corpus(tmp_path / "out", {"a": 1.0}).weights == (1.0,) * len(done)


def test_a_small_corpus_needs_no_files(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 100)
    run_prepare(sources, tmp_path / "out", size=10**9)
    stored, memory = open_corpus(tmp_path / "out"), prepare_in_memory(Corpus(sources), TOKENIZERS, Defects())
    assert (memory.weights, memory.languages) == (stored.weights, stored.languages)
    for in_memory_shard, stored_shard in zip(memory.shards, stored.shards, strict=True):
        assert (in_memory_shard.tokens == stored_shard.tokens).all()
        assert (in_memory_shard.table == stored_shard.table).all()


def read_chunks(corpus: Corpus, folder: Path) -> Iterator[ShardChunk]:
    examples = ((folder, index, example) for index, example in corpus.examples(Defects()))
    return make_chunks(examples, corpus.names, 500)


def test_chunks_are_deterministic(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 50)
    corpus = Corpus(sources)
    chunk_list = list(read_chunks(corpus, tmp_path))
    assert [chunk.name for chunk in chunk_list if chunk.source == "b"][:2] == ["001-000000", "001-000001"]
    assert sum(len(deserialize_examples(chunk.text)) for chunk in chunk_list) == 100
    assert chunk_list == list(read_chunks(corpus, tmp_path))


def test_finished_shards_are_reused_and_others_rewritten(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 300)
    out = tmp_path / "out"
    count = len(run_prepare(sources, out))
    before = hash_files(out)
    assert [done.reused for done in run_prepare(sources, out)] == [True] * count

    (out / "000-000001.bin").write_bytes(b"damaged")
    (out / "001-000000.json").unlink()
    (out / ".000-000002.bin.x.tmp").write_bytes(b"left by a kill")
    (out / CORPUS_FILE).unlink()
    with pytest.raises(DamagedError, match="incomplete"):
        open_corpus(out)
    assert {done.name for done in run_prepare(sources, out) if not done.reused} == {"000-000001", "001-000000"}
    assert hash_files(out) == before

    changed = (tmp_path / "a.de").read_text().replace("tree", "bush", 1)  # a text that changed between two runs
    (tmp_path / "a.de").write_text(changed)
    again = run_prepare(sources, out)
    assert 0 < sum(not done.reused for done in again) < count
    uninterrupted = tmp_path / "uninterrupted"
    run_prepare(sources, uninterrupted)
    assert hash_files(out) == hash_files(uninterrupted)


def test_a_folder_is_unfinished_until_it_is_finished_again(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 100)
    run_prepare(sources, tmp_path / "out")

    def stop(_: ShardDone) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(Corpus(sources), TOKENIZERS, tmp_path / "out", Defects(), shard_size=500, report=stop)
    with pytest.raises(DamagedError, match="incomplete"):
        open_corpus(tmp_path / "out")


def test_another_vocabulary_or_size_removes_old_shards(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 100)
    out = tmp_path / "out"
    run_prepare(sources, out, size=1000)
    assert not any(done.reused for done in run_prepare(sources, out, size=4000))
    other_tokenizers = TokenizerPair.joint(learn([" ".join(WORDS)] * 3, ByteBpeConfig(vocabulary=280)))
    done = prepare(Corpus(sources), other_tokenizers, out, Defects(), shard_size=4000)
    assert not any(shard.reused for shard in done)
    assert len(list(out.glob("*.json"))) == len(done) + 1


def test_damage_is_found_when_it_is_opened(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 100)
    run_prepare(sources, tmp_path / "out")
    (tmp_path / "out" / "000-000000.json").write_text("{}")
    with pytest.raises(DamagedError, match=r"different content"):
        open_corpus(tmp_path / "out", verify=True)
    index = tmp_path / "out" / INDEX_FILE
    index.write_bytes(index.read_bytes().replace(b'"line', b'"LINE', 1) + b"{}\n")
    with pytest.raises(DamagedError, match=r"does not match corpus\.json"):
        open_corpus(tmp_path / "out")
    index.unlink()
    with pytest.raises(DamagedError, match="missing"):
        open_corpus(tmp_path / "out")


def test_corpus_of_an_earlier_version_is_the_same_corpus(tmp_path: Path) -> None:
    """It has no index and no statistics. Checkpoints store the identity."""
    run_prepare(write_corpus(tmp_path, 100), tmp_path / "out")
    new = open_corpus(tmp_path / "out")
    document = json.loads((tmp_path / "out" / CORPUS_FILE).read_text())
    for name in document["shards"]:
        path = tmp_path / "out" / f"{name}.json"
        content = json.loads(path.read_text())
        del content["statistics"]
        path.write_text(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        document["shards"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    del document["index"]
    (tmp_path / "out" / CORPUS_FILE).write_text(json.dumps(document))
    (tmp_path / "out" / INDEX_FILE).unlink()
    old = open_corpus(tmp_path / "out", verify=True)
    assert old.identity == new.identity
    assert [(shard.largest, shard.longest) for shard in old.shards] == [
        (shard.largest, shard.longest) for shard in new.shards
    ]
    assert all(shard.has_statistics for shard in new.shards)
    assert not any(shard.has_statistics for shard in old.shards)


def test_an_error_in_a_worker_keeps_its_location(tmp_path: Path) -> None:
    mixed = [Example(Location("x", 1), "a b", "c"), Example(Location("x", 2), "a b")]
    chunk_list = iter([ShardChunk(tmp_path, "000-000000", "x", serialize_examples(mixed))])
    with pytest.raises(CorpusError, match="has no target, unlike earlier examples") as caught:
        list(_write_shards(chunk_list, TOKENIZERS, workers=2))
    assert caught.value.location == "x:2"


SCRIPT = """
import sys, json
from pathlib import Path
from pydantic import TypeAdapter
from regard.config.run import Sources
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.shards.prepare import prepare
from regard.text.tokenizer_pair import TokenizerPair
if __name__ == "__main__":
    folder, workers, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    sources = TypeAdapter(Sources).validate_python(json.loads((folder / "sources.json").read_text()))
    prepare(Corpus(sources), TokenizerPair.load(folder), folder / "out", Defects(), workers=workers, shard_size=size)
    status = Path("/proc/self/status")  # the peak that `wait4` gives is also that of the process which began it
    if status.exists():
        (folder / "peak").write_text(status.read_text().partition("VmHWM:")[2].split()[0])
"""


def start_process(folder: Path, workers: int, size: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(folder / "script.py"), str(folder), str(workers), str(size)])  # noqa: S603


def write_script(folder: Path, sources: list[AnySourceConfig], tokenizers: TokenizerPair) -> None:
    (folder / "script.py").write_text(SCRIPT)
    (folder / "sources.json").write_text(json.dumps([source.model_dump(mode="json") for source in sources]))
    tokenizers.save(folder)


def test_a_script_without_a_main_guard_ends_with_an_error(tmp_path: Path) -> None:
    """Workers import the script, which must not start workers again: they die, and the pool must not wait for them."""
    write_script(tmp_path, write_corpus(tmp_path, 20_000), TOKENIZERS)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace('if __name__ == "__main__":', "if True:"))
    command = [sys.executable, str(script), str(tmp_path), "2", "500000"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)  # noqa: S603
    assert done.returncode == 1
    assert "A worker process died" in done.stderr


def list_children(parent: int) -> list[int]:
    processes = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            processes.append(int(path.parent.name))
    return processes


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_three_kills_leave_the_same_bytes(tmp_path: Path) -> None:
    """Killed after some shards, with 2 workers: no worker survives, and the result is that of an uninterrupted run."""
    sources = write_corpus(tmp_path, 6000)
    write_script(tmp_path, sources, TOKENIZERS)
    out = tmp_path / "out"
    for shards in (1, 5, 12):
        process = start_process(tmp_path, workers=2, size=8000)
        while len(list(out.glob("*.json"))) < shards and process.poll() is None:
            time.sleep(0.002)
        workers = list_children(process.pid)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert not (out / CORPUS_FILE).exists()
        deadline = time.monotonic() + 30
        while any(map(is_alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not any(map(is_alive, workers))
    finished = run_prepare(sources, out, size=8000)
    assert sum(done.reused for done in finished) >= 12
    run_prepare(sources, tmp_path / "uninterrupted", size=8000)
    assert hash_files(out) == hash_files(tmp_path / "uninterrupted")


def write_europarl_part(folder: Path, lines: int) -> list[AnySourceConfig]:
    for side in ("en", "de"):
        with gzip.open(SHARED / f"europarl_deen/train.{side}.gz") as file:
            kept_lines = [line for line, _ in zip(file, range(lines), strict=False)]
        (folder / f"{lines}.{side}").write_bytes(b"".join(kept_lines))
    return [LinesConfig(source=str(folder / f"{lines}.en"), target=str(folder / f"{lines}.de"))]


def learn_tokenizers(sources: list[AnySourceConfig], count: int = 2000, vocabulary: int = 8000) -> TokenizerPair:
    texts = []
    for (_, example), _ in zip(Corpus(sources).examples(Defects()), range(count), strict=False):
        texts += [example.source[:10_000], example.target or ""]
    return TokenizerPair.joint(learn(texts, ByteBpeConfig(vocabulary=vocabulary)))


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")
def test_twenty_kills_at_random_moments(tmp_path: Path) -> None:
    sources = write_europarl_part(tmp_path, 60_000)
    tokenizers = learn_tokenizers(sources)
    write_script(tmp_path, sources, tokenizers)
    began = time.monotonic()
    prepare(Corpus(sources), tokenizers, tmp_path / "uninterrupted", Defects(), shard_size=100_000)
    undisturbed_seconds = time.monotonic() - began
    rng = random.Random(0)
    killed = 0
    while killed < 20:
        process = start_process(tmp_path, workers=rng.choice((1, 2, 3)), size=100_000)
        time.sleep(rng.uniform(0.2, 2 + undisturbed_seconds / 10))
        process.kill()
        if process.wait() != -signal.SIGKILL:  # it was done: begin again with half of the shards
            for path in sorted((tmp_path / "out").glob("*.json"))[::2]:
                path.unlink()
            continue
        killed += 1
    process = start_process(tmp_path, workers=2, size=100_000)
    assert process.wait() == 0
    assert hash_files(tmp_path / "out") == hash_files(tmp_path / "uninterrupted")


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")
def test_memory_is_flat_as_the_corpus_grows(tmp_path: Path) -> None:
    peaks = []
    for lines in (10_000, 100_000):
        folder = tmp_path / str(lines)
        folder.mkdir()
        sources = write_europarl_part(folder, lines)
        write_script(folder, sources, learn_tokenizers(sources))
        assert start_process(folder, workers=1, size=1 << 20).wait() == 0
        peaks.append(int((folder / "lr").read_text()))
    assert peaks[1] < 1.1 * peaks[0], peaks


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")
def test_two_workers_cost_little_more_than_one(tmp_path: Path) -> None:
    """CPU seconds of all processes; wall time would depend on the load of the machine."""
    sources = write_europarl_part(tmp_path, 80_000)
    books = tmp_path / "books"
    books.mkdir()
    with gzip.open(SHARED / "books_en/valid.txt.gz", "rt", encoding="utf-8") as file:
        for number, book in enumerate(file.read().split("# Title: ")[1:]):
            (books / f"{number:03}.txt").write_text(book)
    tokenizers = learn_tokenizers(sources)
    kinds: list[list[AnySourceConfig]] = [sources, [DocumentsConfig(path=str(books))]]
    for kind in kinds:
        folder = tmp_path / kind[0].kind
        folder.mkdir()
        write_script(folder, kind, tokenizers)
        spent = []
        for workers in (1, 2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert start_process(folder, workers, 1 << 20).wait() == 0
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            for path in (folder / "out").iterdir():
                path.unlink()
        assert spent[1] < 1.1 * spent[0] + 1.5, (kind[0].kind, spent)  # 1.5 s: three more interpreters that start


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_killed_worker_is_reported(tmp_path: Path) -> None:
    corpus = Corpus(write_corpus(tmp_path, 300))
    (tmp_path / "out").mkdir()

    def kill_workers() -> Generator[ShardChunk, None, None]:
        for number, chunk in enumerate(read_chunks(corpus, tmp_path / "out")):
            if number == 2:
                for child in list_children(os.getpid()):
                    if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():  # no tracker of resources
                        os.kill(child, signal.SIGKILL)
            yield chunk

    with closing(kill_workers()) as chunk_stream, pytest.raises(WorkerError, match="worker process died"):
        list(_write_shards(chunk_stream, TOKENIZERS, workers=2))
