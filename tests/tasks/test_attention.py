"""Recorded attention."""

from dataclasses import replace

import pytest
import torch

import regard
from regard.base.errors import RegardError
from regard.config.parts import attention_stack
from regard.tasks.translation.ensemble import EnsembleTranslator
from regard.tasks.translation.translator import Translator
from tests.tasks.factories import make_encoder_decoder, make_tokenizer, make_tokenizers, make_translator_settings


def test_attention_is_recorded_with_its_tokens(models: dict[str, str]) -> None:
    translator, text = regard.load_translator(models["translation"]), "Two young men"
    attention = translator.record(text, "Zwei junge")
    source, target = len(attention.source_tokens), len(attention.target_tokens)
    assert "".join(attention.source_tokens[:-1]) == text
    assert "".join(attention.target_tokens[1:]) == "Zwei junge"
    assert attention.names == ["encoder.0.self", "decoder.0.self", "decoder.0.cross"]
    heads = attention_stack(translator.settings.decoder).attention.heads
    assert attention.encoder.shape == (1, heads, source, source)
    assert attention.decoder.shape == (1, heads, target, target)
    assert attention.cross.shape == (1, heads, target, source)
    torch.testing.assert_close(attention.cross.sum(-1), torch.ones(1, heads, target))
    assert attention.decoder.triu(1).count_nonzero() == 0  # no token sees a later one
    assert torch.equal(attention["decoder.0.cross"], attention.cross[0])
    assert repr(attention).startswith(f"RecordedAttention({source} source tokens, {target} target tokens, encoder.0")
    translation = translator.translate(text, max_new_tokens=6)
    own = translator.record(text, translation)
    assert "".join(own.target_tokens[1:]) == "".join(translation.token_texts)
    assert translator.record(text).target_tokens == translator.record(text, translator.translate(text)).target_tokens
    with pytest.raises(RegardError, match="The text is empty"):
        translator.record(" ")
    with pytest.raises(RegardError, match="no attention of its own"):
        EnsembleTranslator([translator]).record(text)


def test_attention_of_the_other_families(models: dict[str, str]) -> None:
    decoder = regard.load_generator(models["causal_lm"]).record("Two men")
    assert decoder.source_tokens == ()
    assert decoder.decoder.shape[-2:] == (len(decoder.target_tokens), len(decoder.target_tokens))
    with pytest.raises(RegardError, match="This model has no cross-attention"):
        _ = decoder.cross
    fill_mask, classifier = (
        regard.load_fill_mask(models["masked_lm"]),
        regard.load_classifier(models["text_classification"]),
    )
    specials, names = make_tokenizer().specials, make_tokenizer().vocabulary
    assert names[specials.mask] in fill_mask.record("Two ___ are").source_tokens
    assert names[specials.mask] not in fill_mask.record("Two men are").source_tokens
    pair = classifier.record("Two men", "A girl")
    assert pair.source_tokens.count(names[specials.sep]) == 2
    assert pair.encoder.shape == (2, 4, len(pair.source_tokens), len(pair.source_tokens))
    assert regard.load_classifier(models["tagging"]).record("Two men").target_tokens == ()


def test_a_translation_that_fills_all_learned_positions_is_recorded() -> None:
    """It was cut off there: its last token is not read."""
    settings = make_translator_settings(**{"decoder.position": {"kind": "learned", "length": 6}})
    translator = Translator(make_encoder_decoder(settings), make_tokenizers(), settings)
    translation = translator.translate("Two young men.")
    tokens = (*translation.tokens, *translation.tokens)[:6]
    cut_off = replace(translation, tokens=tokens, logprobs=(0.0,) * 6, ended=False)
    assert len(translator.record("Two young men.", cut_off).target_tokens) == 6  # bos, and all but the last
