"""Tokenizers of two languages."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.tokenizers import WordLevelConfig
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from tests.text.factories import TEXTS, get_tokenizer


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


def test_tokenizer_pair_folders(tmp_path: Path) -> None:
    joint, separate = (
        TokenizerPair.joint(get_tokenizer("bpe")),
        TokenizerPair(get_tokenizer("bpe"), get_tokenizer("byte")),
    )
    for number, pair in enumerate((joint, separate)):
        folder = tmp_path / str(number)
        folder.mkdir()
        pair.save(folder)
        loaded = TokenizerPair.load(folder)
        assert loaded == pair
        assert loaded.is_joint == pair.is_joint
        assert loaded.fingerprint == pair.fingerprint
    assert joint.fingerprint != separate.fingerprint
    assert sorted(path.name for path in tmp_path.rglob("*.json")) == ["source.json", "target.json", "tokenizer.json"]
    with pytest.raises(RegardError, match=r"no tokenizer\.json"):
        TokenizerPair.load(tmp_path)
    joint.source.save(tmp_path / "1" / "tokenizer.json")
    with pytest.raises(RegardError, match="both"):
        TokenizerPair.load(tmp_path / "1")
    (tmp_path / "1" / "tokenizer.json").unlink()
    (tmp_path / "1" / "target.json").unlink()
    with pytest.raises(RegardError, match="not the other side"):
        TokenizerPair.load(tmp_path / "1")
