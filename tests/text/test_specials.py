"""Special tokens and their roles."""

import pytest

from regard.base.errors import RegardError
from regard.config.tokenizers import ByteBpeConfig, SpecialsConfig
from regard.text.learn import learn
from regard.text.specials import ROLES
from tests.text.factories import TEXT, get_tokenizer


def test_roles_are_kept_under_any_text() -> None:
    settings = SpecialsConfig(pad="[PAD]", bos="[BOS]", eos="[EOS]", unk="[UNK]", mask="[MASK]", cls="[CLS]")
    tokenizer = learn(TEXT, ByteBpeConfig(vocabulary=300, specials=settings))
    for role in ROLES:
        assert tokenizer.vocabulary[getattr(tokenizer.specials, role)] == getattr(settings, role)
    shared = learn(TEXT, ByteBpeConfig(vocabulary=300, specials=SpecialsConfig(pad="<eos>", eos="<eos>", bos="<eos>")))
    assert shared.specials.pad == shared.specials.eos == shared.specials.bos
    assert shared.size == 300


def test_languages_have_tags() -> None:
    tokenizer = get_tokenizer("byte_bpe tagged")
    assert tokenizer.vocabulary[tokenizer.specials.language_id("de")] == "<2de>"
    assert tokenizer.decode([tokenizer.specials.language_id("en")]) == ""
    with pytest.raises(RegardError, match=r"'fr' .it has: de, en"):
        tokenizer.specials.language_id("fr")
