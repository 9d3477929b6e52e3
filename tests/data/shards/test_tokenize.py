"""Tags of words as labels of tokens."""

from dataclasses import replace

import pytest

from regard.config.tokenizers import ByteBpeConfig, ByteLevelConfig
from regard.data.example import CorpusError, Example, Location
from regard.data.shards.tokenize import _encode_tags, deserialize_examples, serialize_examples, store_examples
from regard.text.learn import learn
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair
from tests.text.factories import make_tokenizer

LABELS = ("O", "B-X")
WHERE = Location("words.conll", 1)


@pytest.mark.parametrize("word", ["\x01", "\u200d"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_word_without_tokens_has_no_label(word: str, place: int) -> None:
    """A normalizer may remove a whole word: the tags of all others stay at their words."""
    words, tags = ["a", "dog"], ["O", "B-X"]
    words.insert(place, word)
    tags.insert(place, "O")
    example = Example(WHERE, " ".join(words), tags=tuple(tags))
    assert _encode_tags(example, make_tokenizer(), LABELS) == [1, 2]


def test_words_that_share_a_token_are_refused() -> None:
    example = Example(WHERE, "a dog", tags=("O", "B-X"))
    with pytest.raises(CorpusError, match="share a token"):
        _encode_tags(example, make_tokenizer(pre_tokenizer=None), LABELS)


PAIRS = [
    Example(Location("a.en", 1), "a small house", "ein kleines Haus", languages=("en", "de")),
    Example(Location("a.en", 3), "", "nichts", languages=("en", "de")),
    Example(Location("b.en", 1), "the house", "la maison", languages=("en", "fr")),
]


TOKENIZER = learn([text for pair in PAIRS for text in (pair.source, pair.target or "")], ByteBpeConfig(vocabulary=300))


TOKENIZERS = TokenizerPair.joint(TOKENIZER)


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
        assert tokenized.locate(number) == pair.location
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
    assert caught.value.location == "a.en:3"
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
