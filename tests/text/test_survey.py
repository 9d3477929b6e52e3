"""What `check` and `show` count."""

from regard.text.survey import MANY, readable, survey
from tests.text.corpora import TEXT, vocabulary


def test_every_line_comes_back() -> None:
    texts = TEXT * 300
    result = survey(vocabulary("byte_bpe"), enumerate(texts))
    assert result.sound
    assert result.lines == len(texts) > MANY
    assert result.characters == sum(map(len, texts))
    assert result.bytes == sum(len(text.encode()) for text in texts)
    assert result.tokens == sum(map(len, vocabulary("byte_bpe").encode_ids(texts)))


def test_faults_are_counted_with_their_first_place() -> None:
    result = survey(vocabulary("unigram"), enumerate(["peck", "snow ☃ and ☃", "a▁c", "☃", "a▁c"]))
    assert not result.sound
    assert (result.unknown.first, result.unknown.lines, result.unknown.tokens) == (1, 2, 3)
    assert (result.changed.first, result.changed.lines, result.changed.example) == (2, 2, ("a▁c", "a c"))
    normal = survey(vocabulary("byte_bpe normal"), enumerate(["a", "É <url>", "E"]))
    assert normal.sound
    assert (normal.normalised.first, normal.normalised.lines) == (1, 2)


def test_pieces_for_people() -> None:
    shown = {name: [readable(vocabulary(name), token) for token in vocabulary(name).encode("a ☃").ids] for name in KIND}
    assert shown == KIND
    tagged = vocabulary("byte_bpe tagged")
    assert [readable(tagged, token) for token in tagged.encode("<url>").ids] == ["<url>"]
    assert readable(tagged, tagged.specials.pad) == "<pad>"


KIND = {
    "byte": ["a", "␣", "\\xe2", "\\x98", "\\x83"],
    "bpe": ["a</w>", "<unk>", "</w>"],
    "character": ["a", "␣", "<unk>"],
    "word": ["a", "<unk>"],
}
