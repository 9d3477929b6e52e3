"""Counts of `check_round_trip` and display of tokens."""

from regard.text.round_trip import BATCH_SIZE, check_round_trip, show_token
from tests.text.factories import TEXT, get_tokenizer


def test_lossless_tokenizer() -> None:
    texts = TEXT * 300
    result = check_round_trip(get_tokenizer("byte_bpe"), enumerate(texts))
    assert result.is_lossless
    assert result.lines == len(texts) > BATCH_SIZE
    assert result.characters == sum(map(len, texts))
    assert result.bytes == sum(len(text.encode()) for text in texts)
    assert result.tokens == sum(map(len, get_tokenizer("byte_bpe").encode_ids(texts)))


def test_changed_lines_are_counted_with_their_first_location() -> None:
    result = check_round_trip(get_tokenizer("unigram"), enumerate(["peck", "snow ☃ and ☃", "a▁c", "☃", "a▁c"]))
    assert not result.is_lossless
    assert (result.unknown.first_location, result.unknown.lines, result.unknown.tokens) == (1, 2, 3)
    assert (result.changed.first_location, result.changed.lines, result.changed.example) == (2, 2, ("a▁c", "a c"))
    normal = check_round_trip(get_tokenizer("byte_bpe normal"), enumerate(["a", "É <url>", "E"]))
    assert normal.is_lossless
    assert (normal.normalized.first_location, normal.normalized.lines) == (1, 2)


def test_show_token() -> None:
    shown = {
        name: [show_token(get_tokenizer(name), token) for token in get_tokenizer(name).encode("a ☃").ids]
        for name in EXPECTED
    }
    assert shown == EXPECTED
    tagged = get_tokenizer("byte_bpe tagged")
    assert [show_token(tagged, token) for token in tagged.encode("<url>").ids] == ["<url>"]
    assert show_token(tagged, tagged.specials.pad) == "<pad>"


EXPECTED = {
    "byte": ["a", "␣", "\\xe2", "\\x98", "\\x83"],
    "bpe": ["a</w>", "<unk>", "</w>"],
    "character": ["a", "␣", "<unk>"],
    "word": ["a", "<unk>"],
}
