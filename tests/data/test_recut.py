"""Cutting samples by chance: the same text, other pieces, the same ones after any stop."""

from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.config.run import ByteBpe, Conll, Lines
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.loader import Loader
from regard.data.order import Position, Rules
from regard.data.prepare import in_memory
from regard.data.recut import recut
from regard.data.rows import Records
from regard.data.tasks import task_for
from regard.text.learn import learn
from regard.text.vocabularies import TokenizerPair
from tests.train.runs import sentences, translated

SETTINGS = ByteBpe(vocabulary=330, dropout=0.3)


@pytest.fixture(scope="module")
def vocabularies() -> TokenizerPair:
    some = sentences(200)
    return TokenizerPair.joint(learn([*some, *map(translated, some)], SETTINGS))


def loader(folder: Path, vocabularies: TokenizerPair, *, longest: int = 64) -> Loader:
    some = sentences(60)
    (folder / "a.en").write_text("".join(f"{one}\n" for one in some))
    (folder / "a.de").write_text("".join(f"{translated(one)}\n" for one in some))
    corpus = Corpus([Lines(source=str(folder / "a.en"), target=str(folder / "a.de"))])
    shards = in_memory(corpus, vocabularies, Defects())
    noise = recut(vocabularies, SETTINGS, seed=1, longest=longest)
    return Loader(shards, task_for("translate", vocabularies), Rules(budget=512, longest=longest), recut=noise)


def texts(made: Loader, vocabularies: TokenizerPair, epoch: int) -> dict[int, tuple[list[int], str, str]]:
    """By sample: the ids of its target, and both texts."""
    found = {}
    for batch in made.epoch(epoch):
        assert batch.source is not None
        for sample, source, labels in zip(
            batch.samples.tolist(), batch.source.tolist(), batch.labels.tolist(), strict=True
        ):
            target = [token for token in labels if token >= 0]
            found[sample] = (target, vocabularies.source.decode(source), vocabularies.target.decode(target))
    return found


def test_the_text_stays_and_the_cut_changes_every_epoch(tmp_path: Path, vocabularies: TokenizerPair) -> None:
    made = loader(tmp_path, vocabularies)
    first, second = (texts(made, vocabularies, epoch) for epoch in (0, 1))
    assert len(first) == 60
    for sample, (_, source, target) in first.items():
        assert translated(source) == target
        assert second[sample][1:] == (source, target)
    assert sum(first[sample][0] != second[sample][0] for sample in first) > 30
    assert first == texts(made, vocabularies, 0)


def test_a_stop_changes_no_cut(tmp_path: Path, vocabularies: TokenizerPair) -> None:
    made = loader(tmp_path, vocabularies)
    updates = made.updates()
    some = [next(updates) for _ in range(5)]
    again = next(loader(tmp_path, vocabularies).updates(some[2].after))
    assert isinstance(some[2].after, Position)
    assert again.batches[0].labels.tolist() == some[3].batches[0].labels.tolist()


def test_a_cut_that_is_too_long_gives_way_to_the_plain_one(tmp_path: Path, vocabularies: TokenizerPair) -> None:
    made = loader(tmp_path, vocabularies, longest=14)
    lengths = [batch.labels.size(1) for batch in made.epoch(0)]
    assert max(lengths) <= 14


def test_a_text_that_is_read_in_part_is_cut_by_chance_too(vocabularies: TokenizerPair) -> None:
    noise = recut(vocabularies, SETTINGS, seed=1, longest=16)
    assert noise is not None
    (plain,) = vocabularies.source.encode_ids([" ".join(sentences(20))])
    assert len(plain) > 16
    zero = np.zeros(1, np.int64)
    stored = Records(np.array(plain), np.array([[len(plain)]]), zero, zero, zero, zero)
    made = noise(stored)
    assert made.lengths[0, 0] == made.tokens.size > len(plain)
    task = task_for("classify", vocabularies, longest=16)
    assert task.rows(made).source[0, 1:-1].tolist() == made.tokens[:14].tolist()  # type: ignore[index]


def test_running_text_cannot_be_cut_by_chance(tmp_path: Path, vocabularies: TokenizerPair) -> None:
    made = loader(tmp_path, vocabularies)
    noise = recut(vocabularies, SETTINGS, seed=1, longest=64)
    with pytest.raises(RegardError, match="cannot be cut by chance"):
        Loader(made.shards, task_for("continue", vocabularies), Rules(longest=64, packed=True), recut=noise)


def test_tagged_text_cannot_be_cut_by_chance(tmp_path: Path, vocabularies: TokenizerPair) -> None:
    (tmp_path / "a.conll").write_text("the\tDET\ndog\tNOUN\n\na\tDET\ncat\tNOUN\n\n")
    shards = in_memory(Corpus([Conll(path=str(tmp_path / "a.conll"))]), vocabularies, Defects())
    noise = recut(vocabularies, SETTINGS, seed=1, longest=64)
    with pytest.raises(RegardError, match="cannot be cut by chance"):
        Loader(shards, task_for("tag", vocabularies), Rules(longest=64), recut=noise)


def test_half_a_character_stays_as_it_is(vocabularies: TokenizerPair) -> None:
    noise = recut(vocabularies, SETTINGS, seed=1, longest=64)
    assert noise is not None
    tokens = vocabularies.source.encode_ids(["the dog sees a \N{SNOWMAN}"])[0][:-1]  # cut inside the last one
    one = np.zeros(1, np.int64)
    records = Records(np.array(tokens), np.array([[len(tokens)]]), one, one, one, one - 1)
    assert noise(records).tokens.tolist() == tokens


def test_without_noise_there_is_nothing_to_do(vocabularies: TokenizerPair) -> None:
    assert recut(vocabularies, ByteBpe(), seed=1, longest=64) is None
