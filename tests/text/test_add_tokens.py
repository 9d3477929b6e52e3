"""New tokens of a tokenizer: always one token, in every kind of tokenizer."""

import pytest

from regard.base.errors import RegardError
from regard.config.run import (
    AnyTokenizerConfig,
    BpeConfig,
    ByteBpeConfig,
    ByteLevelConfig,
    CharacterLevelConfig,
    UnigramConfig,
    WordLevelConfig,
)
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair

TEXTS = ["the old dog sees a cat", "a cat sees the <b> dog", "dogs and cats and dogs"] * 4
KINDS: list[AnyTokenizerConfig] = [
    *(ByteBpeConfig(vocabulary=290), BpeConfig(vocabulary=40), UnigramConfig(vocabulary=40)),
    *(WordLevelConfig(vocabulary=20), CharacterLevelConfig(), ByteLevelConfig()),
]


@pytest.mark.parametrize("settings", KINDS, ids=lambda settings: settings.kind)
def test_a_new_token_is_always_one_token(settings: AnyTokenizerConfig) -> None:
    before = learn(TEXTS, settings)
    tokenizer = before.add_tokens(["<zebra>", "a cat", "<zebra>"])
    assert tokenizer.size == before.size + 2
    assert tokenizer.specials.extra == before.specials.extra | {"<zebra>": before.size, "a cat": before.size + 1}
    text = "the <zebra> sees a cat and the dog"
    ids = tokenizer.encode_ids([text])[0]
    assert [ids.count(token) for token in (before.size, before.size + 1)] == [1, 1]
    assert tokenizer.decode(ids) == text
    assert tokenizer.encode_ids(["the dog sees"]) == before.encode_ids(["the dog sees"])
    assert tokenizer.add_tokens(["a cat"]) is tokenizer


def test_texts_that_cannot_be_tokens_are_refused() -> None:
    tokenizer = learn(TEXTS, ByteBpeConfig(vocabulary=290))
    for text, message in (("<pad>", "special token"), ("x", "too short")):
        with pytest.raises(RegardError, match=message):
            tokenizer.add_tokens([text])


def test_each_side_gets_the_tokens_that_it_lacks() -> None:
    source, target = (
        learn(TEXTS, WordLevelConfig(vocabulary=20)),
        learn(["ein Hund"] * 9, WordLevelConfig(vocabulary=20)),
    )
    pair = TokenizerPair(source, target).add_tokens(["Hund", "cat"])
    assert (pair.source.size, pair.target.size) == (source.size + 1, target.size + 1)
    joint = TokenizerPair.joint(source).add_tokens(["Hund", "cat"])
    assert joint.is_joint
    assert joint.source.size == source.size + 1
