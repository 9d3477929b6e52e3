"""A translation does not depend on its batch: 1,000 sentences one by one and 64 at a time, in float32."""

import random

import pytest

from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator
from tests.pipeline.factories import TEXTS, make_encoder_decoder, make_tokenizers, make_translator_settings

WORDS = " ".join(TEXTS).split()


@pytest.mark.parametrize("beam", [1, 4])
def test_batch_1_is_batch_64(beam: int) -> None:
    rng = random.Random(1)
    sentences = [" ".join(rng.choices(WORDS, k=rng.randrange(1, 9))) for _ in range(1000)]
    settings = make_translator_settings(**{"encoder.layers": 2, "decoder.layers": 2})
    translator = Translator(make_encoder_decoder(settings), make_tokenizers(), settings)
    max_source_length = max(len(source) for source in translator.encode_sources(sentences, None))
    alone = translator.translate(sentences, Beam(beam), max_length=6, batch_tokens=1)
    batched = translator.translate(sentences, Beam(beam), max_length=6, batch_tokens=64 * beam * max_source_length)
    different = [
        n
        for n, (single, batch_result) in enumerate(zip(alone, batched, strict=True))
        if single.tokens != batch_result.tokens
    ]
    assert not different
    assert len({single.tokens for single in alone}) > 100  # the outputs differ
