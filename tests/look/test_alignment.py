"""Word alignment in a look."""

import torch

from regard.decode.protocol import Hypothesis
from regard.look.alignment import make_hypothesis
from regard.look.build import look_into
from regard.look.document import Blob, decode_blob
from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator
from regard.pipeline.word_alignment import sum_subwords
from tests.pipeline.factories import TEXTS


def test_word_alignment_comes_from_the_last_layer(translator: Translator) -> None:
    look = look_into(translator, TEXTS[0], search=Beam(1), max_new_tokens=2, ablation=False)
    generation, blobs = look.reading.generation, dict[str, Blob]()
    assert generation is not None
    tokenizers, ids = translator.tokenizers, translator.tokenizers.target.encode(TEXTS[2]).ids
    tokens = Hypothesis(tuple(ids), (-0.1,) * len(ids), -0.1, ended=False)
    hypothesis = make_hypothesis(generation, tokens, 0, "h", blobs)
    links = []
    for layer in torch.from_numpy(decode_blob(blobs["h"])).mean(dim=1):  # (T, S)
        by_source = sum_subwords(layer.T, tokenizers.source.word_ids(generation.input.source))
        by_pair = sum_subwords(by_source.T, tokenizers.target.word_ids(ids))
        links.append([[source, target] for target, source in enumerate(by_pair.argmax(dim=1).tolist())])
    assert (hypothesis["links"], hypothesis["link_layer"]) == (links[1], 1)
    assert links[0] != links[1]
