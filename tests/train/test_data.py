"""From files to vocabularies and shards: found again whole, and never mixed up."""

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from regard.base.errors import DamagedError, RegardError
from regard.config.run import Run
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.held_out import train_validation_split
from regard.data.shards.prepare import prepare
from regard.store.run_folder import RunFolder
from regard.train import data as module
from regard.train.data import RunData, check_corpus, prepare_data
from regard.train.events import Event, Message, Stage
from tests.train.runs import make_small_run, write_corpus


def read_data(run: Run, folder: Path, events: list[Event] | None = None) -> RunData:
    folder.mkdir(exist_ok=True)
    return prepare_data(run, RunFolder(folder), (lambda _: None) if events is None else events.append)


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    run = make_small_run("translate", write_corpus(tmp_path / "corpus"))
    events: list[Event] = []
    first = read_data(run, tmp_path / "run", events)
    assert any(isinstance(event, Stage) for event in events)
    shutil.rmtree(tmp_path / "corpus")  # the text is not read again
    second_events: list[Event] = []
    second = read_data(run, tmp_path / "run", second_events)
    assert second_events == []
    assert second.examples == first.examples
    assert second.train.identity == first.train.identity


def test_a_corpus_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    run = make_small_run("translate", files)

    def interrupt(_: Event) -> None:
        raise KeyboardInterrupt  # learning the vocabulary

    (tmp_path / "run").mkdir()
    with pytest.raises(KeyboardInterrupt):
        prepare_data(run, RunFolder(tmp_path / "run"), interrupt)
    assert not (tmp_path / "run" / "tokenizer").exists()
    check_corpus(run, RunFolder(tmp_path / "run"))
    Path(files["all.en"]).write_text("something else\n" * 200)
    with pytest.raises(RegardError, match="other content"):
        check_corpus(run, RunFolder(tmp_path / "run"))


def test_vocabularies_are_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {
        "tokenizer.joint": False,
        "model.target": {"kind": "tokens", "vocabulary": 300},
        "model.head.tied": False,
    }
    run = make_small_run("translate", write_corpus(tmp_path / "corpus"), changes)
    with monkeypatch.context() as patched:
        from regard.text.tokenizer import Tokenizer

        original = Tokenizer.save

        def interrupt(self: Tokenizer, path: Path) -> None:
            if path.name == "target.json":
                raise KeyboardInterrupt
            original(self, path)

        patched.setattr(Tokenizer, "save", interrupt)
        with pytest.raises(KeyboardInterrupt):
            read_data(run, tmp_path / "run")
    assert read_data(run, tmp_path / "run").tokenizers.target.size == 300


def test_shards_of_another_vocabulary_are_refused(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    read_data(make_small_run("translate", files), tmp_path / "one")
    read_data(make_small_run("translate", files, {"tokenizer.specials.pad": "<nil>"}), tmp_path / "two")
    shutil.copy(tmp_path / "two" / "tokenizer" / "tokenizer.json", tmp_path / "one" / "tokenizer" / "tokenizer.json")
    with pytest.raises(RegardError, match="another vocabulary"):
        read_data(make_small_run("translate", files), tmp_path / "one")


def test_a_flipped_bit_in_a_shard_is_noticed_and_can_be_mended(tmp_path: Path) -> None:
    run = make_small_run("translate", write_corpus(tmp_path / "corpus"))
    before = read_data(run, tmp_path / "run").train.identity
    (path,) = (tmp_path / "run" / "shards" / "train").glob("*.bin")
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="other content") as caught:
        read_data(run, tmp_path / "run")
    assert "made again" in (caught.value.fix or "")
    shutil.rmtree(path.parent)
    assert read_data(run, tmp_path / "run").train.identity == before


def test_prepared_shards_are_used_with_the_weights_of_the_run(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    run = make_small_run("translate", files)
    run_data = read_data(run, tmp_path / "run")
    out = tmp_path / "out"
    for name, part in zip(("train", "validation"), train_validation_split(Corpus(run.data.train), 0.1, 1), strict=True):
        prepare(part, run_data.tokenizers, out / name, Defects())
    run_data.tokenizers.save(out)
    prepared = read_data(
        make_small_run("translate", files, {"data.prepared": str(out), "data.held_out": 0.0}), tmp_path / "other"
    )
    assert prepared.train.identity == run_data.train.identity
    assert [(pair.source, pair.target) for pair in prepared.examples] == [
        (pair.source, pair.target) for pair in run_data.examples
    ]
    heavy = {"data.prepared": str(out), "data.held_out": 0.0, "data.train.0.weight": 2.0}
    assert read_data(make_small_run("translate", files, heavy), tmp_path / "other").train.weights == (2.0,)
    heavy |= {"data.train.0.name": "another"}
    with pytest.raises(RegardError, match="no source 'another'"):
        read_data(make_small_run("translate", files, heavy), tmp_path / "third")


def test_only_the_start_of_a_long_text_is_kept_as_a_sample(tmp_path: Path) -> None:
    run = make_small_run("continue", write_corpus(tmp_path / "corpus", 5000))
    examples = read_data(run, tmp_path / "run").examples
    assert [len(example.source) for example in examples] == [10_000]
    pair_run = make_small_run("translate", write_corpus(tmp_path / "corpus"))
    assert all(example.target for example in read_data(pair_run, tmp_path / "pairs").examples)


def test_a_vocabulary_of_much_text_is_learned_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SAMPLE_CHARACTERS", 100)
    events: list[Event] = []
    texts = [f"{number:010}" for number in range(1000)]
    numbers = [int(text) for text in module._subsample(texts, events.append)]
    assert numbers[:10] == list(range(10))
    assert {later - number for number, later in pairwise(numbers)} >= {1, 2, 4, 8, 16}
    assert len(numbers) < 80
    assert numbers[-1] > 900
    assert [event.text for event in events if isinstance(event, Message)] == [
        "More than 100 characters: the vocabulary is learned from a sample of the rest."
    ]
    assert list(module._subsample(texts[:9], events.append)) == texts[:9]
    assert len(events) == 1


def test_defects_of_a_split_corpus_are_reported_once(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    path = Path(files["all.en"])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n", 3))
    events: list[Event] = []
    read_data(make_small_run("translate", files), tmp_path / "run", events)
    (message,) = [event.text for event in events if isinstance(event, Message) and event.text.startswith("Met in")]
    assert message.startswith("Met in train: ")
    assert "3" in message
