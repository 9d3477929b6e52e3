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
from regard.data.prepare import prepare
from regard.store.run_folder import RunFolder
from regard.train import corpora as module
from regard.train.corpora import Corpora, check_corpus, corpora
from regard.train.events import Event, Said, Working
from tests.train.runs import corpus, small_run


def read(run: Run, folder: Path, heard: list[Event] | None = None) -> Corpora:
    folder.mkdir(exist_ok=True)
    return corpora(run, RunFolder(folder), (lambda _: None) if heard is None else heard.append)


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    run = small_run("translate", corpus(tmp_path / "corpus"))
    heard: list[Event] = []
    first = read(run, tmp_path / "run", heard)
    assert any(isinstance(event, Working) for event in heard)
    shutil.rmtree(tmp_path / "corpus")  # the text is not read again
    again: list[Event] = []
    second = read(run, tmp_path / "run", again)
    assert again == []
    assert second.examples == first.examples
    assert second.train.identity == first.train.identity


def test_a_corpus_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    files = corpus(tmp_path / "corpus")
    run = small_run("translate", files)

    def killed(_: Event) -> None:
        raise KeyboardInterrupt  # learning the vocabulary

    (tmp_path / "run").mkdir()
    with pytest.raises(KeyboardInterrupt):
        corpora(run, RunFolder(tmp_path / "run"), killed)
    assert not (tmp_path / "run" / "vocabulary").exists()
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
    run = small_run("translate", corpus(tmp_path / "corpus"), changes)
    with monkeypatch.context() as patched:
        from regard.text.tokenizer import Tokenizer

        real = Tokenizer.save

        def killed(self: Tokenizer, path: Path) -> None:
            if path.name == "target.json":
                raise KeyboardInterrupt
            real(self, path)

        patched.setattr(Tokenizer, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            read(run, tmp_path / "run")
    assert read(run, tmp_path / "run").vocabularies.target.size == 300


def test_shards_of_another_vocabulary_are_refused(tmp_path: Path) -> None:
    files = corpus(tmp_path / "corpus")
    read(small_run("translate", files), tmp_path / "one")
    read(small_run("translate", files, {"tokenizer.specials.pad": "<nil>"}), tmp_path / "two")
    shutil.copy(tmp_path / "two" / "vocabulary" / "tokenizer.json", tmp_path / "one" / "vocabulary" / "tokenizer.json")
    with pytest.raises(RegardError, match="another vocabulary"):
        read(small_run("translate", files), tmp_path / "one")


def test_a_flipped_bit_in_a_shard_is_noticed_and_can_be_mended(tmp_path: Path) -> None:
    run = small_run("translate", corpus(tmp_path / "corpus"))
    before = read(run, tmp_path / "run").train.identity
    (path,) = (tmp_path / "run" / "shards" / "train").glob("*.bin")
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="other content") as caught:
        read(run, tmp_path / "run")
    assert "made again" in (caught.value.fix or "")
    shutil.rmtree(path.parent)
    assert read(run, tmp_path / "run").train.identity == before


def test_prepared_shards_are_used_with_the_weights_of_the_run(tmp_path: Path) -> None:
    files = corpus(tmp_path / "corpus")
    run = small_run("translate", files)
    own = read(run, tmp_path / "run")
    out = tmp_path / "out"
    for name, part in zip(("train", "validation"), train_validation_split(Corpus(run.data.train), 0.1, 1), strict=True):
        prepare(part, own.vocabularies, out / name, Defects())
    own.vocabularies.save(out)
    given = read(small_run("translate", files, {"data.prepared": str(out), "data.held_out": 0.0}), tmp_path / "other")
    assert given.train.identity == own.train.identity
    assert [(pair.source, pair.target) for pair in given.examples] == [
        (pair.source, pair.target) for pair in own.examples
    ]
    heavy = {"data.prepared": str(out), "data.held_out": 0.0, "data.train.0.weight": 2.0}
    assert read(small_run("translate", files, heavy), tmp_path / "other").train.weights == (2.0,)
    heavy |= {"data.train.0.name": "another"}
    with pytest.raises(RegardError, match="no source 'another'"):
        read(small_run("translate", files, heavy), tmp_path / "third")


def test_of_a_long_text_only_the_beginning_is_kept_to_be_shown(tmp_path: Path) -> None:
    run = small_run("continue", corpus(tmp_path / "corpus", 5000))
    examples = read(run, tmp_path / "run").examples
    assert [len(one.source) for one in examples] == [10_000]
    pairs = small_run("translate", corpus(tmp_path / "corpus"))
    assert all(one.target for one in read(pairs, tmp_path / "pairs").examples)


def test_a_vocabulary_of_much_text_is_learned_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLENTY", 100)
    heard: list[Event] = []
    texts = [f"{number:010}" for number in range(1000)]
    found = [int(text) for text in module._thinned(texts, heard.append)]
    assert found[:10] == list(range(10))
    assert {later - number for number, later in pairwise(found)} >= {1, 2, 4, 8, 16}
    assert len(found) < 80
    assert found[-1] > 900
    assert [event.text for event in heard if isinstance(event, Said)] == [
        "More than 100 characters: the vocabulary is learned from a sample of the rest."
    ]
    assert list(module._thinned(texts[:9], heard.append)) == texts[:9]
    assert len(heard) == 1


def test_defects_of_a_corpus_that_is_split_are_told_once(tmp_path: Path) -> None:
    files = corpus(tmp_path / "corpus")
    path = Path(files["all.en"])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n", 3))
    heard: list[Event] = []
    read(small_run("translate", files), tmp_path / "run", heard)
    (told,) = [event.text for event in heard if isinstance(event, Said) and event.text.startswith("Met in")]
    assert told.startswith("Met in train: ")
    assert "3" in told
