"""Tags of words as labels of tokens, and the encoding of words."""

import random
from dataclasses import replace

import pytest

from regard.base.errors import RegardError
from regard.config.tokenizers import (
    AnyTokenizerConfig,
    BpeConfig,
    ByteBpeConfig,
    ByteLevelConfig,
    CharacterLevelConfig,
    NormalizeConfig,
    UnigramConfig,
    WordLevelConfig,
)
from regard.data.example import CorpusError, Example, Location
from regard.data.shards import tokenize as module
from regard.data.shards.tokenize import (
    WordEncoder,
    _encode_tags,
    deserialize_examples,
    serialize_examples,
    store_examples,
)
from regard.text.learn import learn
from regard.text.special_marks import MARK
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


LEARNED = ["the dog sees the cat", "the cats' dogs don't see 12 dogs, do they?", "über Straßen\t und Stege"] * 3
KINDS: list[AnyTokenizerConfig] = [
    ByteBpeConfig(vocabulary=300),
    ByteLevelConfig(),
    BpeConfig(vocabulary=80),
    UnigramConfig(vocabulary=60),
    CharacterLevelConfig(),
    WordLevelConfig(vocabulary=20),
    ByteBpeConfig(vocabulary=300, normalize=NormalizeConfig(form="nfkc", strip_accents=True)),
]
SPACES = [" ", "  ", "\t", "\n", "\u00a0", "\u3000"]
PARTS = [*SPACES, "\u0308", "\u00b4", "\u2581", "\u0120", "\u72ac", " dog", "the", "cat's", " 12", "<pad>", " und"]


def check_encoding(tokenizer: Tokenizer, encoder: WordEncoder, texts: list[str]) -> None:
    assert encoder.encode(texts) == tokenizer.encode_ids(texts)


@pytest.mark.parametrize("settings", KINDS, ids=lambda settings: settings.kind)
def test_word_encoder_equals_tokenizer_on_any_white_space(settings: AnyTokenizerConfig) -> None:
    tokenizer, rng = learn(LEARNED, settings), random.Random(1)
    encoder = WordEncoder(tokenizer)
    for _ in range(20):
        texts = ["".join(rng.choices(PARTS, k=rng.randrange(8))) for _ in range(50)]
        check_encoding(tokenizer, encoder, [*texts, *LEARNED])


def test_word_encoder_passes_each_word_to_the_tokenizer_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, passed = learn(LEARNED, ByteBpeConfig(vocabulary=300)), list[str]()
    encoder, encode_ids = WordEncoder(tokenizer), Tokenizer.encode_ids

    def record(self: Tokenizer, texts: list[str]) -> list[list[int]]:
        passed.extend(texts)
        return encode_ids(self, texts)

    monkeypatch.setattr(Tokenizer, "encode_ids", record)
    encoder.encode(["the dog and the dog", "the cat"])
    encoder.encode(["the dog"])
    assert sorted(passed) == [" and", " cat", " dog", " the", "the"]


def test_word_encoder_with_many_words_forgets_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WORD_CHARACTERS", 20)
    tokenizer = learn(LEARNED, ByteBpeConfig(vocabulary=300))
    encoder = WordEncoder(tokenizer)
    for number in range(10):
        check_encoding(tokenizer, encoder, [f"dog {number} of many", "the dogs"])
        assert encoder._characters <= 20


def test_word_encoder_keeps_marked_special_tokens() -> None:
    tokenizer = learn(LEARNED, ByteBpeConfig(vocabulary=300))
    check_encoding(tokenizer, WordEncoder(tokenizer), [f"the {MARK}<s> dog", "the <s> dog"])


def test_word_encoder_names_the_text_of_a_lone_surrogate() -> None:
    encoder = WordEncoder(learn(LEARNED, ByteBpeConfig(vocabulary=300)))
    with pytest.raises(RegardError, match=r"Character 4 of text 1 is a lone surrogate"):
        encoder.encode(["the dog", "the \ud800"])
