import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import DamagedError, RegardError
from regard.config.run import ByteBpe, ByteLevel
from regard.data.example import CorpusError, Example, Where
from regard.data.shards import Shards, cut, load, save
from regard.data.tokenise import packed_text, tokenise, unpacked_text
from regard.text.learn import learn
from regard.text.tokenizer import Tokenizer
from tests.data.made import random_shards, shard

PAIRS = [
    Example(Where("a.en", 1), "a small house", "ein kleines Haus", languages=("en", "de")),
    Example(Where("a.en", 3), "", "nichts", languages=("en", "de")),
    Example(Where("b.en", 1), "the house", "la maison", languages=("en", "fr")),
]
WORDS = learn([text for pair in PAIRS for text in (pair.source, pair.target or "")], ByteBpe(vocabulary=300))


def test_round_trip_on_disk(tmp_path: Path) -> None:
    made = replace(shard([([1, 2], [3]), ([], [4, 5, 6])], name="x"), made_from={"text": "t"})
    sha256 = save(made, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.bin", "x.idx", "x.json"]
    read = load(tmp_path, "x", expected=sha256, thorough=True)
    assert read.tokens.tolist() == [1, 2, 3, 4, 5, 6]
    assert read.tokens.dtype == np.uint16
    assert (read.table == made.table).all()
    assert (read.streams, read.files, read.languages) == (made.streams, made.files, made.languages)
    assert (read.made_from, read.sha256) == ({"text": "t"}, sha256)
    assert read.begins().tolist() == [0, 3, 6]
    assert str(read.where(1)) == "made.txt:2"


def test_pairs_of_all_shards_one_after_the_other() -> None:
    samples = [([1, 2], [3]), ([], [4, 5, 6]), ([7], [8])]
    shards = Shards([shard(samples[:2], name="x"), shard([], name="y"), shard(samples[2:], name="z")])
    assert list(shards.pairs()) == samples


def test_an_empty_shard(tmp_path: Path) -> None:
    save(shard([], name="x"), tmp_path)
    assert len(load(tmp_path, "x", thorough=True)) == 0


@pytest.mark.parametrize("suffix", ["bin", "idx", "json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damage_is_found(tmp_path: Path, suffix: str, damage: str) -> None:
    sha256 = save(shard([([1, 2], [3]), ([7], [4, 5, 6])], name="x"), tmp_path)
    path = tmp_path / f"x.{suffix}"
    content = path.read_bytes()
    match damage:
        case "flip":
            path.write_bytes(content[:3] + bytes([content[3] ^ 4]) + content[4:])
        case "cut":
            path.write_bytes(content[:-1])
        case _:
            path.unlink()
    with pytest.raises(DamagedError):
        load(tmp_path, "x", expected=sha256, thorough=True)
    if damage != "flip":  # sizes are checked without reading everything
        with pytest.raises(DamagedError):
            load(tmp_path, "x", expected=sha256)


def test_another_format_is_refused(tmp_path: Path) -> None:
    save(shard([([1], [2])], name="x"), tmp_path)
    facts = json.loads((tmp_path / "x.json").read_text())
    (tmp_path / "x.json").write_text(json.dumps(facts | {"format": 2}))
    with pytest.raises(RegardError, match="format 2"):
        load(tmp_path, "x")


def test_pairs_become_tokens() -> None:
    made = tokenise(PAIRS, WORDS, WORDS, name="x", origin="some")
    assert made.streams == ("source", "target")
    begins = made.begins()
    for number, pair in enumerate(PAIRS):
        first, second = made.lengths[:, number].tolist()
        tokens = made.tokens[begins[number] : begins[number + 1]].tolist()
        assert len(tokens) == first + second
        assert WORDS.decode(tokens[:first]) == pair.source
        assert WORDS.decode(tokens[first:]) == pair.target
        assert made.where(number) == pair.where
        assert made.languages[made.column("languages")[number]] == pair.languages
    assert made.made_from == {"source": WORDS.fingerprint, "target": WORDS.fingerprint, "text": ""}


def test_text_that_is_sent_to_workers_comes_back() -> None:
    odd = Example(Where("x\u2028y", 9), 'a\n"\\\x00\u2028', None, "label", ("A", "B"), ())
    assert unpacked_text(packed_text([*PAIRS, odd])) == [*PAIRS, odd]


def test_labels_and_tags_are_numbered() -> None:
    labelled = [Example(Where("f", n), "the house", label=label) for n, label in enumerate(("good", "bad", None))]
    made = tokenise(labelled, WORDS, WORDS)
    assert made.labels == ("bad", "good")
    assert made.column("label").tolist() == [2, 1, 0]
    tagged = [Example(Where("f", 1), "the  small house", tags=("D", "A", "N"))]
    made = tokenise(tagged, WORDS, WORDS)
    assert (made.streams, made.labels) == (("source", "tags"), ("A", "D", "N"))
    pieces = made.lengths[0, 0]
    ids, tags = made.tokens[:pieces].tolist(), made.tokens[pieces:].tolist()
    starts = [place for place, tag in enumerate(tags) if tag]
    assert [tags[start] for start in starts] == [2, 1, 3]
    ends = [*starts[1:], len(ids)]
    words = [WORDS.decode(ids[start:end]).strip() for start, end in zip(starts, ends, strict=True)]
    assert words == ["the", "small", "house"]


def test_a_piece_that_is_only_a_space_begins_no_word() -> None:
    letters = learn([], ByteLevel())
    made = tokenise([Example(Where("f", 1), "ab  c", tags=("X", "Y"))], letters, letters)
    assert made.tokens[5:].tolist() == [1, 0, 0, 0, 2]


def test_faults_of_a_corpus_are_named() -> None:
    with pytest.raises(CorpusError, match="has no target") as caught:
        tokenise([PAIRS[0], replace_target(PAIRS[1])], WORDS, WORDS)
    assert caught.value.where == "a.en:3"
    with pytest.raises(CorpusError, match="2 words, but 1 tags"):
        tokenise([Example(Where("f", 1), "the house", tags=("D",))], WORDS, WORDS)


def replace_target(example: Example) -> Example:
    return replace(example, target=None)


def test_large_vocabularies_take_four_bytes() -> None:
    large = Tokenizer(WORDS.content)
    for size, width in ((65_536, 2), (65_537, 4)):
        large.size = size
        assert tokenise(PAIRS, large, WORDS).tokens.itemsize == width
        assert tokenise(PAIRS, WORDS, large).tokens.itemsize == width


def test_a_corpus_numbers_samples_through() -> None:
    corpus = random_shards([4, 0, 3], weights={"s2": 2.5})
    assert (len(corpus), corpus.counts, corpus.weights) == (7, [4, 0, 3], (1.0, 1.0, 2.5))
    assert [str(corpus.where(number)) for number in (0, 3, 4, 6)] == [f"made.txt:{n}" for n in (1, 4, 1, 3)]


def test_a_corpus_is_known_by_what_it_holds() -> None:
    same, again = random_shards([4, 3]), random_shards([4, 3])
    assert same.identity == again.identity
    assert random_shards([4, 3], seed=1).identity != same.identity
    assert Shards([*same.shards[::-1]]).identity != same.identity


def test_unlike_shards_do_not_mix() -> None:
    with pytest.raises(RegardError, match="but tags has source and tags"):
        Shards([shard([([1], [2])]), shard([([1], [1])], ("source", "tags"), source="tags")])
    with pytest.raises(RegardError, match="no samples"):
        Shards([])


def test_long_documents_can_be_cut() -> None:
    text = shard([(list(range(10)),), ([],), ([50, 51],), (list(range(20, 28)),)], ("source",))
    pieces = cut(text, 4)
    assert pieces.lengths.tolist() == [[4, 4, 2, 0, 2, 4, 4]]
    assert pieces.tokens.tolist() == text.tokens.tolist()
    assert [pieces.where(number).line for number in range(len(pieces))] == [1, 1, 1, 2, 3, 4, 4]
    assert Shards([pieces]).identity not in (Shards([text]).identity, Shards([cut(text, 5)]).identity)
    with pytest.raises(RegardError, match="Only running text"):
        cut(shard([([1], [2])]), 4)


def test_shards_of_two_vocabularies_do_not_mix() -> None:
    one, other = shard([([1], [2])], made_from={"source": "a"}), shard([([1], [2])], made_from={"source": "b"})
    with pytest.raises(RegardError, match="different vocabularies"):
        Shards([one, other])
