"""Tokenizers, shards and validation examples of a run: complete, reused, never mixed up, and read few times."""

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from regard.base.errors import DamagedError, RegardError
from regard.base.extras import import_optional
from regard.base.files import sha256
from regard.config.codec import RUN_FILES
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.held_out import train_validation_split
from regard.data.readers import text_files
from regard.data.shards import stored
from regard.data.shards.prepare import prepare
from regard.data.shards.remote import RemoteShards
from regard.data.stats import collect_stats
from regard.store.run_folder import RunFolder
from regard.training.api import preview_run
from regard.training.data import check_corpus, prepare_data
from regard.training.events import Event, Message, Stage
from regard.training.options import TrainOptions
from regard.training.run import fit
from tests.commands import run_command
from tests.training.runs import make_small_run, read_data, write_corpus


def test_a_second_start_reuses_tokenizers_and_shards(tmp_path: Path) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"))
    events: list[Event] = []
    first = read_data(run, tmp_path / "run", events)
    assert any(isinstance(event, Stage) for event in events)
    shutil.rmtree(tmp_path / "corpus")  # the text is not read again
    second_events: list[Event] = []
    second = read_data(run, tmp_path / "run", second_events)
    assert second_events == []
    assert second.examples == first.examples
    assert second.train.identity == first.train.identity


@pytest.mark.parametrize("has_statistics", [True, False])
def test_a_corpus_that_changes_while_it_is_read_is_detected(tmp_path: Path, has_statistics: bool) -> None:
    """The checksums are saved before the text is used, whether the statistics computed them or not."""
    files = write_corpus(tmp_path / "corpus")
    run = make_small_run("translation", files)

    def interrupt(_: Event) -> None:
        raise KeyboardInterrupt  # learning the vocabulary

    (tmp_path / "run").mkdir()
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        prepare_data(run, folder, interrupt, collect_stats(run.data.train).file_infos if has_statistics else None)
    assert not folder.tokenizer.exists()
    check_corpus(run, folder)
    Path(files["all.en"]).write_text("something else\n" * 200)
    with pytest.raises(RegardError, match="different content"):
        check_corpus(run, folder)


def test_book_is_reported_as_a_document_with_its_tokens(tmp_path: Path) -> None:
    events: list[Event] = []
    run = make_small_run("causal_lm", write_corpus(tmp_path / "corpus"))
    data = read_data(run, tmp_path / "run", events)
    lines = {event.name: event.progress for event in events if isinstance(event, Stage)}
    tokens = sum(int(shard.lengths.sum()) for shard in data.train.shards)
    assert (
        lines["tokenizing the train corpus"]
        == f"{len(data.train)} document{'s' * (len(data.train) > 1)}, {tokens:,} tokens"
    )


def test_shards_of_another_vocabulary_are_rejected(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    read_data(make_small_run("translation", files), tmp_path / "one")
    read_data(make_small_run("translation", files, {"tokenizer.specials.pad": "<nil>"}), tmp_path / "two")
    shutil.copy(tmp_path / "two" / "tokenizer" / "tokenizer.json", tmp_path / "one" / "tokenizer" / "tokenizer.json")
    with pytest.raises(RegardError, match="another source tokenizer"):
        read_data(make_small_run("translation", files), tmp_path / "one")


def test_a_flipped_bit_in_a_shard_is_detected_and_repaired(tmp_path: Path) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"))
    before = read_data(run, tmp_path / "run").train.identity
    (path,) = (tmp_path / "run" / "shards" / "train").glob("*.bin")
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="different content") as caught:
        read_data(run, tmp_path / "run")
    assert "is then rewritten" in (caught.value.hint or "")
    shutil.rmtree(path.parent)
    assert read_data(run, tmp_path / "run").train.identity == before


def test_shards_are_read_only_by_the_first_rank_of_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"))
    before = read_data(run, tmp_path / "run").train.identity
    hashed: list[str] = []

    def hash_and_count(path: Path) -> str:
        hashed.append(path.suffix)
        return sha256(path)

    monkeypatch.setattr(stored, "sha256", hash_and_count)
    folder = RunFolder(tmp_path / "run")
    other = prepare_data(run, folder, lambda _: None, verify=False)
    assert (other.train.identity, hashed) == (before, [])
    prepare_data(run, folder, lambda _: None)
    assert sorted(hashed) == [".bin", ".bin", ".idx", ".idx", ".json", ".json"]  # of training and validation


def test_prepared_shards_are_used_with_the_weights_of_the_run(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    run = make_small_run("translation", files)
    run_data = read_data(run, tmp_path / "run")
    out = tmp_path / "out"
    for name, part in zip(("train", "validation"), train_validation_split(Corpus(run.data.train), 0.1, 1), strict=True):
        prepare(part, run_data.tokenizers, out / name, Defects())
    run_data.tokenizers.save(out)
    prepared = read_data(
        make_small_run("translation", files, {"data.prepared": str(out), "data.held_out": 0.0}), tmp_path / "other"
    )
    assert prepared.train.identity == run_data.train.identity
    assert [(pair.source, pair.target) for pair in prepared.examples] == [
        (pair.source, pair.target) for pair in run_data.examples
    ]
    heavy = {"data.prepared": str(out), "data.held_out": 0.0, "data.train.0.weight": 2.0}
    assert read_data(make_small_run("translation", files, heavy), tmp_path / "other").train.weights == (2.0,)
    heavy |= {"data.train.0.name": "another"}
    with pytest.raises(RegardError, match="no source 'another'"):
        read_data(make_small_run("translation", files, heavy), tmp_path / "third")


def test_only_the_start_of_a_long_text_is_kept_as_a_sample(tmp_path: Path) -> None:
    run = make_small_run("causal_lm", write_corpus(tmp_path / "corpus", 5000))
    examples = read_data(run, tmp_path / "run").examples
    assert [len(example.source) for example in examples] == [10_000]
    pair_run = make_small_run("translation", write_corpus(tmp_path / "corpus"))
    assert all(example.target for example in read_data(pair_run, tmp_path / "pairs").examples)


def test_defects_of_a_split_corpus_are_reported_once(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    path = Path(files["all.en"])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n", 3))
    events: list[Event] = []
    read_data(make_small_run("translation", files), tmp_path / "run", events)
    (message,) = [event.text for event in events if isinstance(event, Message) and event.text.startswith("Defects")]
    assert message.startswith("Defects in the train corpus: ")
    assert "3" in message


@contextmanager
def count_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count the bytes that are read of each corpus file."""
    counts: Counter[str] = Counter()
    read_chunk = text_files.read_chunk

    def count(file: BinaryIO, path: str) -> bytes:
        chunk = read_chunk(file, path)
        counts[path] += len(chunk)
        return chunk

    with monkeypatch.context() as patched:
        for reader in ("regard.data.readers.text_files", "regard.data.corpus"):
            patched.setattr(f"{reader}.read_chunk", count)
        yield counts


LARGE = 15_000  # pairs: each file is larger than several chunks of `text_files.READ_BYTES`


def count_passes(counts: Counter[str], files: dict[str, str], sniffed: int = 0) -> dict[str, float]:
    """Divide the bytes read by the size of the file, without the first chunks, read for the preview or to find NUL."""
    passes = {}
    for name in ("all.en", "all.de"):
        size = Path(files[name]).stat().st_size
        assert size > 4 * text_files.READ_BYTES
        passes[name] = (counts[files[name]] - sniffed) / size
    return passes


TINY_OPTIONS = (  # a model of a few thousand weights, and nothing left to autotune
    "device.name=cpu", "device.threads=1", "device.logit_rows=0", "device.attention=autocast",
    "model.encoder.layers=1", "model.decoder.layers=1", "model.d_model=16", "tokenizer.vocabulary=300",
    "train.average=1", "validation.sentences=4",
)  # fmt: skip
TWO_VOCABULARIES = ("tokenizer.joint=false", 'model.target={kind="tokens", vocabulary=300}', "model.head.tied=false")


@pytest.mark.parametrize("joint", [True, False])
def test_regard_train_reads_a_corpus_three_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joint: bool) -> None:
    """Statistics and checksums, one or two tokenizers, shards with validation examples."""
    files = write_corpus(tmp_path / "corpus", LARGE)
    settings = [f"--set={setting}" for setting in (*TINY_OPTIONS, *(() if joint else TWO_VOCABULARIES))]
    pair = ("--source", files["all.en"], "--target", files["all.de"])
    folder = RunFolder(tmp_path / "run")
    with count_reads(monkeypatch) as counts:
        done = run_command("train", *pair, "--preset", "tiny", "--steps", "1", "--out", str(folder.path), *settings)
    assert done.code == 0, done.errors
    run = RUN_FILES.load(folder.run)
    assert run.tokenizer.joint is joint
    assert (folder.shards / "validation").is_dir()
    assert folder.examples.is_file()
    passes = count_passes(counts, files, sniffed=2 * text_files.READ_BYTES)
    assert all(2.99 < number <= 3 for number in passes.values()), passes
    check_corpus(run, folder)


@pytest.mark.parametrize("joint", [True, False])
def test_a_run_file_reads_a_corpus_three_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, joint: bool) -> None:
    """Checksums, one or two tokenizers, shards with validation examples."""
    files = write_corpus(tmp_path / "corpus", LARGE)
    changes: dict[str, object] = {"tokenizer.joint": joint}
    if not joint:
        changes |= {"model.target": {"kind": "tokens", "vocabulary": 300}, "model.head.tied": False}
    run = make_small_run("translation", files, changes)
    with count_reads(monkeypatch) as counts:
        read_data(run, tmp_path / "run")
    assert all(number == 3 for number in count_passes(counts, files).values()), counts
    check_corpus(run, RunFolder(tmp_path / "run"))
    with count_reads(monkeypatch) as counts:
        read_data(run, tmp_path / "run")
    assert not counts


def test_a_checked_run_file_reads_a_corpus_three_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checksums and the corpus check, tokenizer, shards: asking the doctor takes no pass of its own."""
    files = write_corpus(tmp_path / "corpus", LARGE)
    RUN_FILES.save(make_small_run("translation", files), tmp_path / "run.toml")
    (tmp_path / "run").mkdir()
    with count_reads(monkeypatch) as counts:
        plan = preview_run(TrainOptions(run=tmp_path / "run.toml"))
        prepare_data(plan.run, RunFolder(tmp_path / "run"), lambda _: None, plan.file_infos)
    passes = count_passes(counts, files, sniffed=text_files.READ_BYTES)
    assert all(number == 3 for number in passes.values()), counts


def test_one_pass_writes_what_two_passes_write(tmp_path: Path) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"))
    run_data = read_data(run, tmp_path / "run")
    for name, part in zip(("train", "validation"), train_validation_split(Corpus(run.data.train), 0.1, 1), strict=True):
        prepare(part, run_data.tokenizers, tmp_path / "apart" / name, Defects())
        pairs = [(example.source, example.target) for _, example in part.examples(Defects())]
        if name == "validation":
            assert [(example.source, example.target) for example in run_data.examples] == pairs
        paths = sorted((tmp_path / "apart" / name).iterdir())
        assert [path.name for path in paths] == sorted(
            path.name for path in (tmp_path / "run" / "shards" / name).iterdir()
        )
        assert all(path.read_bytes() == (tmp_path / "run" / "shards" / name / path.name).read_bytes() for path in paths)


def test_a_part_that_is_missing_is_written_alone(tmp_path: Path) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"))
    before = read_data(run, tmp_path / "run")
    assert before.validation is not None
    train_corpus_file = tmp_path / "run" / "shards" / "train" / "corpus.json"
    modified = train_corpus_file.stat().st_mtime_ns
    shutil.rmtree(tmp_path / "run" / "shards" / "validation")
    RunFolder(tmp_path / "run").examples.unlink()
    after = read_data(run, tmp_path / "run")
    assert after.validation is not None
    assert after.validation.identity == before.validation.identity
    assert after.examples == before.examples
    assert train_corpus_file.stat().st_mtime_ns == modified


@pytest.mark.parametrize("task", ["translation", "masked_lm"])
def test_training_reads_remote_shards_through_the_cache(tmp_path: Path, task: str) -> None:
    """`data.prepared` is a URL: tokenizers and shards are downloaded, and training is that of a local folder."""
    store = import_optional("fsspec", "formats", "Opening a URL").filesystem("memory")
    files = write_corpus(tmp_path / "corpus")
    run = make_small_run(task, files)
    run_data = read_data(run, tmp_path / "made")
    out = tmp_path / "out"
    shutil.copytree(tmp_path / "made" / "shards", out)
    run_data.tokenizers.save(out)
    for path in out.rglob("*"):
        if path.is_file():
            store.pipe_file(f"/{task}/{path.relative_to(out).as_posix()}", path.read_bytes())
    changes = {"data.prepared": str(out), "data.held_out": 0.0, "train.steps": 6}
    remote_run = make_small_run(task, files, {**changes, "data.prepared": f"memory://{task}"})
    fit(make_small_run(task, files, changes), tmp_path / "local")
    fit(remote_run, tmp_path / "remote")
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("local", "remote")]
    assert metrics[0] == metrics[1]
    remote_data = read_data(remote_run, tmp_path / "remote")
    assert isinstance(remote_data.train, RemoteShards)
    assert isinstance(remote_data.validation, RemoteShards)
    assert list((tmp_path / "remote" / "shards" / "train").glob("*.bin"))
    assert [example.source for example in remote_data.examples] == [example.source for example in run_data.examples]
