import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import DamagedError, RegardError
from regard.config.run import ByteBpeConfig, ByteLevelConfig
from regard.data.example import CorpusError, Example, Location
from regard.data.shards.shard import Shards, load_shard, save_shard, split_long
from regard.data.shards.tokenize import deserialize_examples, serialize_examples, store_examples
from regard.text.learn import learn
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair
from tests.data.factories import make_random_shards, make_shard

PAIRS = [
    Example(Location("a.en", 1), "a small house", "ein kleines Haus", languages=("en", "de")),
    Example(Location("a.en", 3), "", "nichts", languages=("en", "de")),
    Example(Location("b.en", 1), "the house", "la maison", languages=("en", "fr")),
]
TOKENIZER = learn([text for pair in PAIRS for text in (pair.source, pair.target or "")], ByteBpeConfig(vocabulary=300))
TOKENIZERS = TokenizerPair.joint(TOKENIZER)


def test_round_trip_on_disk(tmp_path: Path) -> None:
    written = replace(make_shard([([1, 2], [3]), ([], [4, 5, 6])], name="x"), made_from={"text": "t"})
    sha256 = save_shard(written, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.bin", "x.idx", "x.json"]
    read = load_shard(tmp_path, "x", expected_sha256=sha256, verify=True)
    assert read.tokens.tolist() == [1, 2, 3, 4, 5, 6]
    assert read.tokens.dtype == np.uint16
    assert (read.table == written.table).all()
    assert (read.streams, read.files, read.languages) == (written.streams, written.files, written.languages)
    assert (read.made_from, read.sha256) == ({"text": "t"}, sha256)
    assert read.offsets().tolist() == [0, 3, 6]
    assert str(read.locate(1)) == "made.txt:2"


def test_pairs_of_all_shards_one_after_the_other() -> None:
    samples = [([1, 2], [3]), ([], [4, 5, 6]), ([7], [8])]
    shards = Shards([make_shard(samples[:2], name="x"), make_shard([], name="y"), make_shard(samples[2:], name="z")])
    assert list(shards.iter_pairs()) == samples


def test_an_empty_shard(tmp_path: Path) -> None:
    save_shard(make_shard([], name="x"), tmp_path)
    assert len(load_shard(tmp_path, "x", verify=True)) == 0


@pytest.mark.parametrize("suffix", ["bin", "idx", "json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damage_is_found(tmp_path: Path, suffix: str, damage: str) -> None:
    sha256 = save_shard(make_shard([([1, 2], [3]), ([7], [4, 5, 6])], name="x"), tmp_path)
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
        load_shard(tmp_path, "x", expected_sha256=sha256, verify=True)
    if damage != "flip":  # sizes are checked without reading everything
        with pytest.raises(DamagedError):
            load_shard(tmp_path, "x", expected_sha256=sha256)


def test_another_format_is_rejected(tmp_path: Path) -> None:
    save_shard(make_shard([([1], [2])], name="x"), tmp_path)
    facts = json.loads((tmp_path / "x.json").read_text())
    (tmp_path / "x.json").write_text(json.dumps(facts | {"format": 2}))
    with pytest.raises(RegardError, match="format 2"):
        load_shard(tmp_path, "x")


def test_pairs_are_tokenized() -> None:
    tokenized = store_examples(PAIRS, TOKENIZERS, name="x", origin="some")
    assert tokenized.streams == ("source", "target")
    offsets = tokenized.offsets()
    for number, pair in enumerate(PAIRS):
        source_length, target_length = tokenized.lengths[:, number].tolist()
        tokens = tokenized.tokens[offsets[number] : offsets[number + 1]].tolist()
        assert len(tokens) == source_length + target_length
        assert TOKENIZER.decode(tokens[:source_length]) == pair.source
        assert TOKENIZER.decode(tokens[source_length:]) == pair.target
        assert tokenized.locate(number) == pair.where
        assert tokenized.languages[tokenized.column("languages")[number]] == pair.languages
    assert tokenized.made_from == {"source": TOKENIZER.fingerprint, "target": TOKENIZER.fingerprint, "text": ""}


def test_serialized_examples_round_trip() -> None:
    odd = Example(Location("x\u2028y", 9), 'a\n"\\\x00\u2028', None, "label", ("A", "B"), ())
    assert deserialize_examples(serialize_examples([*PAIRS, odd])) == [*PAIRS, odd]


def test_labels_and_tags_are_numbered() -> None:
    labeled = [Example(Location("f", n), "the house", label=label) for n, label in enumerate(("good", "bad", None))]
    tokenized = store_examples(labeled, TOKENIZERS)
    assert tokenized.labels == ("bad", "good")
    assert tokenized.column("label").tolist() == [2, 1, 0]
    tagged = [Example(Location("f", 1), "the  small house", tags=("D", "A", "N"))]
    tokenized = store_examples(tagged, TOKENIZERS)
    assert (tokenized.streams, tokenized.labels) == (("source", "tags"), ("A", "D", "N"))
    n_tokens = tokenized.lengths[0, 0]
    ids, tags = tokenized.tokens[:n_tokens].tolist(), tokenized.tokens[n_tokens:].tolist()
    starts = [place for place, tag in enumerate(tags) if tag]
    assert [tags[start] for start in starts] == [2, 1, 3]
    ends = [*starts[1:], len(ids)]
    words = [TOKENIZER.decode(ids[start:end]).strip() for start, end in zip(starts, ends, strict=True)]
    assert words == ["the", "small", "house"]


def test_a_token_that_is_only_a_space_begins_no_word() -> None:
    byte_tokenizer = learn([], ByteLevelConfig())
    tokenized = store_examples(
        [Example(Location("f", 1), "ab  c", tags=("X", "Y"))], TokenizerPair.joint(byte_tokenizer)
    )
    assert tokenized.tokens[5:].tolist() == [1, 0, 0, 0, 2]


def test_errors_name_the_example() -> None:
    with pytest.raises(CorpusError, match="has no target") as caught:
        store_examples([PAIRS[0], remove_target(PAIRS[1])], TOKENIZERS)
    assert caught.value.where == "a.en:3"
    with pytest.raises(CorpusError, match="2 words, but 1 tags"):
        store_examples([Example(Location("f", 1), "the house", tags=("D",))], TOKENIZERS)


def remove_target(example: Example) -> Example:
    return replace(example, target=None)


def test_large_vocabularies_take_four_bytes() -> None:
    large = Tokenizer(TOKENIZER.content)
    for size, width in ((65_536, 2), (65_537, 4)):
        large.size = size
        assert store_examples(PAIRS, TokenizerPair(large, TOKENIZER)).tokens.itemsize == width
        assert store_examples(PAIRS, TokenizerPair(TOKENIZER, large)).tokens.itemsize == width


def test_samples_are_numbered_across_shards() -> None:
    corpus = make_random_shards([4, 0, 3], weights={"s2": 2.5})
    assert (len(corpus), corpus.counts, corpus.weights) == (7, [4, 0, 3], (1.0, 1.0, 2.5))
    assert [str(corpus.locate(number)) for number in (0, 3, 4, 6)] == [f"made.txt:{n}" for n in (1, 4, 1, 3)]


def test_the_identity_of_a_corpus_is_its_content() -> None:
    same, again = make_random_shards([4, 3]), make_random_shards([4, 3])
    assert same.identity == again.identity
    assert make_random_shards([4, 3], seed=1).identity != same.identity
    assert Shards([*same.shards[::-1]]).identity != same.identity


def test_shards_of_different_kinds_are_rejected() -> None:
    with pytest.raises(RegardError, match="but tags has source and tags"):
        Shards([make_shard([([1], [2])]), make_shard([([1], [1])], ("source", "tags"), source="tags")])
    with pytest.raises(RegardError, match="no samples"):
        Shards([])


def test_long_documents_are_split() -> None:
    text = make_shard([(list(range(10)),), ([],), ([50, 51],), (list(range(20, 28)),)], ("source",))
    pieces = split_long(text, 4)
    assert pieces.lengths.tolist() == [[4, 4, 2, 0, 2, 4, 4]]
    assert pieces.tokens.tolist() == text.tokens.tolist()
    assert [pieces.locate(number).line for number in range(len(pieces))] == [1, 1, 1, 2, 3, 4, 4]
    assert Shards([pieces]).identity not in (Shards([text]).identity, Shards([split_long(text, 5)]).identity)
    with pytest.raises(RegardError, match="Only samples with a single stream"):
        split_long(make_shard([([1], [2])]), 4)


def test_shards_of_two_tokenizers_are_rejected() -> None:
    first, second = (
        make_shard([([1], [2])], made_from={"source": "a"}),
        make_shard([([1], [2])], made_from={"source": "b"}),
    )
    with pytest.raises(RegardError, match="different tokenizers"):
        Shards([first, second])
