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
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from regard.base.errors import DamagedError
from regard.config.run import AnySource, ByteBpe, Documents, Lines
from regard.data.corpus import Corpus
from regard.data.example import CorpusError, Defects, Example, Where
from regard.data.prepare import CORPUS, Chunk, Done, WorkerError, _made, chunks, in_memory, open_corpus, prepare
from regard.data.tokenise import packed_text, unpacked_text
from regard.text.learn import learn
from regard.text.vocabularies import TokenizerPair
from tests.data.made import SHARED

WORDS = ("the", "a", "small", "large", "house", "tree", "of", "and", "sees", "finds", "under", "red", "old")


def write_corpus(folder: Path, lines: int, seed: int = 0) -> list[AnySource]:
    """Pairs, and a file without a target elsewhere would be another corpus: here two sources of pairs."""
    draw = random.Random(seed)
    for name in ("a.en", "a.de", "b.en", "b.de"):
        text = "".join(" ".join(draw.choices(WORDS, k=draw.randrange(1, 12))) + "\n" for _ in range(lines))
        (folder / name).write_text(text)
    return [
        Lines(source=str(folder / "a.en"), target=str(folder / "a.de"), name="a", languages=("en", "de"), weight=2.0),
        Lines(source=str(folder / "b.en"), target=str(folder / "b.de"), name="b", languages=("en", "de")),
    ]


VOCABULARIES = TokenizerPair.joint(learn([" ".join(WORDS)] * 3, ByteBpe(vocabulary=290)))


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def made(sources: list[AnySource], folder: Path, *, workers: int = 1, size: int = 4000) -> list[Done]:
    return prepare(Corpus(sources), VOCABULARIES, folder, Defects(), workers=workers, size=size)


def test_shards_hold_the_corpus(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 300)
    done = made(sources, tmp_path / "out")
    corpus = open_corpus(tmp_path / "out", thorough=True)
    assert len(done) == len(corpus.shards) > 6
    assert len(corpus) == 600
    assert set(zip([shard.source for shard in corpus.shards], corpus.weights, strict=True)) == {("a", 2.0), ("b", 1.0)}
    expected = [
        (str(example.where), example.source, example.target) for _, example in Corpus(sources).examples(Defects())
    ]
    tokenizer = VOCABULARIES.source
    found = []
    for shard in corpus.shards:
        begins = shard.begins()
        for number in range(len(shard)):
            middle = begins[number] + shard.lengths[0, number]
            source, target = shard.tokens[begins[number] : middle], shard.tokens[middle : begins[number + 1]]
            texts = tokenizer.decode(source.tolist()), tokenizer.decode(target.tolist())
            found.append((str(shard.where(number)), *texts))
    assert found == expected
    assert open_corpus(tmp_path / "out", {"a": 1.0}).weights == (1.0,) * len(done)


def test_a_small_corpus_needs_no_files(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 100)
    made(sources, tmp_path / "out", size=10**9)
    stored, memory = open_corpus(tmp_path / "out"), in_memory(Corpus(sources), VOCABULARIES, Defects())
    assert (memory.weights, memory.languages) == (stored.weights, stored.languages)
    for one, other in zip(memory.shards, stored.shards, strict=True):
        assert (one.tokens == other.tokens).all()
        assert (one.table == other.table).all()


def test_chunks_do_not_depend_on_who_reads_them(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 50)
    corpus = Corpus(sources)
    some = list(chunks(corpus.examples(Defects()), corpus.names, 500))
    assert [chunk.name for chunk in some if chunk.source == "b"][:2] == ["001-000000", "001-000001"]
    assert sum(len(unpacked_text(chunk.text)) for chunk in some) == 100
    assert some == list(chunks(corpus.examples(Defects()), corpus.names, 500))


def test_finished_shards_are_kept_and_others_made_anew(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 300)
    out = tmp_path / "out"
    count = len(made(sources, out))
    before = hashes(out)
    assert [done.kept for done in made(sources, out)] == [True] * count

    (out / "000-000001.bin").write_bytes(b"damaged")
    (out / "001-000000.json").unlink()
    (out / ".000-000002.bin.x.tmp").write_bytes(b"left by a kill")
    (out / CORPUS).unlink()
    with pytest.raises(DamagedError, match="never finished"):
        open_corpus(out)
    assert {done.name for done in made(sources, out) if not done.kept} == {"000-000001", "001-000000"}
    assert hashes(out) == before

    changed = (tmp_path / "a.de").read_text().replace("tree", "bush", 1)  # a text that changed between two runs
    (tmp_path / "a.de").write_text(changed)
    again = made(sources, out)
    assert 0 < sum(not done.kept for done in again) < count
    quiet = tmp_path / "quiet"
    made(sources, quiet)
    assert hashes(out) == hashes(quiet)


def test_a_folder_is_unfinished_until_it_is_finished_again(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 100)
    made(sources, tmp_path / "out")

    def stop(_: Done) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(Corpus(sources), VOCABULARIES, tmp_path / "out", Defects(), size=500, report=stop)
    with pytest.raises(DamagedError, match="never finished"):
        open_corpus(tmp_path / "out")


def test_another_vocabulary_or_size_leaves_nothing_old(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 100)
    out = tmp_path / "out"
    made(sources, out, size=1000)
    assert not any(done.kept for done in made(sources, out, size=4000))
    other = TokenizerPair.joint(learn([" ".join(WORDS)] * 3, ByteBpe(vocabulary=280)))
    done = prepare(Corpus(sources), other, out, Defects(), size=4000)
    assert not any(one.kept for one in done)
    assert len(list(out.glob("*.json"))) == len(done) + 1


def test_damage_is_found_when_it_is_opened(tmp_path: Path) -> None:
    sources = write_corpus(tmp_path, 100)
    made(sources, tmp_path / "out")
    (tmp_path / "out" / "000-000000.json").write_text("{}")
    with pytest.raises(DamagedError, match="not the one that the corpus names"):
        open_corpus(tmp_path / "out")


def test_an_error_in_a_worker_arrives_whole(tmp_path: Path) -> None:
    mixed = [Example(Where("x", 1), "a b", "c"), Example(Where("x", 2), "a b")]
    some = iter([Chunk("000-000000", "x", packed_text(mixed))])
    with pytest.raises(CorpusError, match="has no target, unlike those before it") as caught:
        list(_made(some, VOCABULARIES, tmp_path, workers=2))
    assert caught.value.where == "x:2"


SCRIPT = """
import sys, json
from pathlib import Path
from pydantic import TypeAdapter
from regard.config.run import Sources
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.prepare import prepare
from regard.text.vocabularies import Vocabularies
if __name__ == "__main__":
    folder, workers, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    sources = TypeAdapter(Sources).validate_python(json.loads((folder / "sources.json").read_text()))
    prepare(Corpus(sources), Vocabularies.load(folder), folder / "out", Defects(), workers=workers, size=size)
    status = Path("/proc/self/status")  # the peak that `wait4` gives is also that of the process which began it
    if status.exists():
        (folder / "peak").write_text(status.read_text().partition("VmHWM:")[2].split()[0])
"""


def start(folder: Path, workers: int, size: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(folder / "script.py"), str(folder), str(workers), str(size)])  # noqa: S603


def ready(folder: Path, sources: list[AnySource], vocabularies: TokenizerPair) -> None:
    (folder / "script.py").write_text(SCRIPT)
    (folder / "sources.json").write_text(json.dumps([source.model_dump(mode="json") for source in sources]))
    vocabularies.save(folder)


def children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_three_kills_leave_the_same_bytes(tmp_path: Path) -> None:
    """Killed after some shards, with 2 workers: none of them is left behind, and the end is that of a quiet run."""
    sources = write_corpus(tmp_path, 6000)
    ready(tmp_path, sources, VOCABULARIES)
    out = tmp_path / "out"
    for shards in (1, 5, 12):
        process = start(tmp_path, workers=2, size=8000)
        while len(list(out.glob("*.json"))) < shards and process.poll() is None:
            time.sleep(0.002)
        workers = children(process.pid)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert not (out / CORPUS).exists()
        deadline = time.monotonic() + 30
        while any(map(alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not any(map(alive, workers))
    finished = made(sources, out, size=8000)
    assert sum(done.kept for done in finished) >= 12
    made(sources, tmp_path / "quiet", size=8000)
    assert hashes(out) == hashes(tmp_path / "quiet")


def part_of_europarl(folder: Path, lines: int) -> list[AnySource]:
    for side in ("en", "de"):
        with gzip.open(SHARED / f"europarl_deen/train.{side}.gz") as file:
            some = [line for line, _ in zip(file, range(lines), strict=False)]
        (folder / f"{lines}.{side}").write_bytes(b"".join(some))
    return [Lines(source=str(folder / f"{lines}.en"), target=str(folder / f"{lines}.de"))]


def some_words(sources: list[AnySource], count: int = 2000, vocabulary: int = 8000) -> TokenizerPair:
    texts = []
    for (_, example), _ in zip(Corpus(sources).examples(Defects()), range(count), strict=False):
        texts += [example.source[:10_000], example.target or ""]
    return TokenizerPair.joint(learn(texts, ByteBpe(vocabulary=vocabulary)))


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")
def test_twenty_kills_at_random_moments(tmp_path: Path) -> None:
    sources = part_of_europarl(tmp_path, 60_000)
    vocabularies = some_words(sources)
    ready(tmp_path, sources, vocabularies)
    began = time.monotonic()
    prepare(Corpus(sources), vocabularies, tmp_path / "quiet", Defects(), size=100_000)
    usual = time.monotonic() - began
    draw = random.Random(0)
    killed = 0
    while killed < 20:
        process = start(tmp_path, workers=draw.choice((1, 2, 3)), size=100_000)
        time.sleep(draw.uniform(0.2, 2 + usual / 10))
        process.kill()
        if process.wait() != -signal.SIGKILL:  # it was done: begin again with half of the shards
            for path in sorted((tmp_path / "out").glob("*.json"))[::2]:
                path.unlink()
            continue
        killed += 1
    process = start(tmp_path, workers=2, size=100_000)
    assert process.wait() == 0
    assert hashes(tmp_path / "out") == hashes(tmp_path / "quiet")


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")
def test_memory_is_flat_as_the_corpus_grows(tmp_path: Path) -> None:
    peaks = []
    for lines in (10_000, 100_000):
        folder = tmp_path / str(lines)
        folder.mkdir()
        sources = part_of_europarl(folder, lines)
        ready(folder, sources, some_words(sources))
        assert start(folder, workers=1, size=1 << 20).wait() == 0
        peaks.append(int((folder / "peak").read_text()))
    assert peaks[1] < 1.1 * peaks[0], peaks


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared data")
def test_two_workers_cost_little_more_than_one(tmp_path: Path) -> None:
    """CPU seconds of the whole family of processes; wall time is a matter of how quiet the machine is."""
    sources = part_of_europarl(tmp_path, 80_000)
    books = tmp_path / "books"
    books.mkdir()
    with gzip.open(SHARED / "books_en/valid.txt.gz", "rt", encoding="utf-8") as file:
        for number, book in enumerate(file.read().split("# Title: ")[1:]):
            (books / f"{number:03}.txt").write_text(book)
    vocabularies = some_words(sources)
    kinds: list[list[AnySource]] = [sources, [Documents(path=str(books))]]
    for kind in kinds:
        folder = tmp_path / kind[0].kind
        folder.mkdir()
        ready(folder, kind, vocabularies)
        spent = []
        for workers in (1, 2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert start(folder, workers, 1 << 20).wait() == 0
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            for path in (folder / "out").iterdir():
                path.unlink()
        assert spent[1] < 1.1 * spent[0] + 1.5, (kind[0].kind, spent)  # 1.5 s: three more interpreters that start


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_worker_that_is_killed_is_said(tmp_path: Path) -> None:
    corpus = Corpus(write_corpus(tmp_path, 300))
    (tmp_path / "out").mkdir()

    def killing() -> Generator[Chunk, None, None]:
        for number, chunk in enumerate(chunks(corpus.examples(Defects()), corpus.names, 500)):
            if number == 2:
                for child in children(os.getpid()):
                    if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():  # no tracker of resources
                        os.kill(child, signal.SIGKILL)
            yield chunk

    with closing(killing()) as some, pytest.raises(WorkerError, match="worker process died"):
        list(_made(some, VOCABULARIES, tmp_path / "out", workers=2))
