"""Word alignment in a look."""

import torch

from regard.base.blobs import Blob, decode_blob
from regard.decode.protocol import Hypothesis
from regard.look.alignment import find_aligning_heads, make_hypothesis
from regard.look.build import look_into
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator
from regard.tasks.translation.word_alignment import sum_subwords
from tests.tasks.factories import TEXTS


def test_find_aligning_heads_prefers_heads_that_read_every_source_token() -> None:
    diagonal, sink = torch.eye(4), torch.zeros(4, 4)
    sink[:, 3] = 1.0
    blurred = 0.95 * diagonal + 0.05 / 4
    uniform = torch.full((4, 4), 0.25)
    weights = torch.stack([torch.stack([sink, blurred]), torch.stack([uniform, diagonal])])
    assert find_aligning_heads(weights) == [(1, 1), (0, 1)]
    assert find_aligning_heads(weights[:, :, :0]) == [(1, 0)]


def test_word_alignment_comes_from_the_heads_that_align_best(translator: Translator) -> None:
    look = look_into(translator, TEXTS[0], search=Beam(1), max_new_tokens=2, ablation=False)
    assert look.run.generated is not None
    generation, blobs = look.run.generated.generation, dict[str, Blob]()
    tokenizers, ids = translator.tokenizers, translator.tokenizers.target.encode(TEXTS[2]).ids
    tokens = Hypothesis(tuple(ids), (-0.1,) * len(ids), -0.1, ended=False)
    hypothesis = make_hypothesis(generation, tokens, 0, "h", blobs)
    cross, heads = torch.from_numpy(decode_blob(blobs["h"])), hypothesis["link_heads"]
    assert 1 <= len(heads) <= 6
    mean = torch.stack([cross[layer, head] for layer, head in heads]).mean(dim=0)  # (T, S)
    by_source = sum_subwords(mean.T, tokenizers.source.word_ids(generation.input.source))
    by_pair = sum_subwords(by_source.T, tokenizers.target.word_ids(ids))
    assert hypothesis["links"] == [[source, target] for target, source in enumerate(by_pair.argmax(dim=1).tolist())]
