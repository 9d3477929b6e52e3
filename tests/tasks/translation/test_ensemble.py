"""Ensembles of translators."""

import pytest
import torch

from regard.base.errors import RegardError
from regard.tasks.search import Beam
from regard.tasks.translation.ensemble import EnsembleTranslator
from regard.tasks.translation.translator import Translator
from regard.text.tokenizer_pair import TokenizerPair
from tests.tasks.factories import (
    MAX_LENGTH,
    TEXTS,
    make_encoder_decoder,
    make_tokenizer,
    make_translator,
    make_translator_settings,
)


def test_ensemble_averages_its_members() -> None:
    first_translator, second_translator = make_translator(1), make_translator(2)
    alone = first_translator.translate(TEXTS, max_new_tokens=MAX_LENGTH)
    twice = EnsembleTranslator([first_translator, first_translator]).translate(TEXTS, max_new_tokens=MAX_LENGTH)
    assert [text.tokens for text in twice] == [text.tokens for text in alone]
    one_sided = EnsembleTranslator([first_translator, second_translator], weights=[1, 0], mean="logprobs").translate(
        TEXTS, max_new_tokens=MAX_LENGTH
    )
    assert [text.tokens for text in one_sided] == [text.tokens for text in alone]
    averaged = EnsembleTranslator([first_translator, second_translator]).translate(
        TEXTS, Beam(1), max_new_tokens=MAX_LENGTH
    )
    for text, translation in zip(TEXTS, averaged, strict=True):  # the mean of both, token by token
        source = torch.tensor([[*make_tokenizer().encode(text).ids, make_tokenizer().specials.eos]])
        target = torch.tensor([[make_tokenizer().specials.bos, *translation.tokens[:-1]]])
        with torch.no_grad():
            mean = (
                sum(member.model(source, target)[0].softmax(dim=-1) for member in (first_translator, second_translator))
                / 2
            )
        assert isinstance(mean, torch.Tensor)
        assert translation.logprobs == pytest.approx(
            mean.log().gather(1, torch.tensor(translation.tokens)[:, None])[:, 0], abs=1e-4
        )
    settings = make_translator_settings(**{"source.vocabulary": make_tokenizer("en", "de").size})
    stranger = Translator(make_encoder_decoder(settings), TokenizerPair.joint(make_tokenizer("en", "de")), settings)
    with pytest.raises(RegardError, match="Model 2 and model 1 have different vocabularies"):
        EnsembleTranslator([first_translator, stranger])
    with pytest.raises(RegardError, match="Unknown ensemble mean 'median'"):
        EnsembleTranslator([first_translator, second_translator], mean="median").translate(TEXTS)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="ensemble cannot score"):
        EnsembleTranslator([first_translator, second_translator]).make_scorer()
    with pytest.raises(RegardError, match="needs models, got none"):
        EnsembleTranslator([])
