"""A translation does not depend on its company: 1,000 sentences one by one, and 64 at a time, in float32."""

import random

import pytest

from regard.pipeline.translator import Translator
from tests.pipeline.made import TEXTS, translating_model, translator_settings, vocabularies

WORDS = " ".join(TEXTS).split()


@pytest.mark.parametrize("beam", [1, 4])
def test_batch_1_is_batch_64(beam: int) -> None:
    chance = random.Random(1)
    sentences = [" ".join(chance.choices(WORDS, k=chance.randrange(1, 9))) for _ in range(1000)]
    settings = translator_settings(**{"encoder.layers": 2, "decoder.layers": 2})
    translator = Translator(translating_model(settings), vocabularies(), settings)
    tokens = max(len(source) for source in translator.sources(sentences, None))
    alone = translator.translate(sentences, beam=beam, longest=6, batch_tokens=1)
    together = translator.translate(sentences, beam=beam, longest=6, batch_tokens=64 * beam * tokens)
    different = [n for n, (one, other) in enumerate(zip(alone, together, strict=True)) if one.tokens != other.tokens]
    assert not different
    assert len({one.tokens for one in alone}) > 100  # they are not all alike
