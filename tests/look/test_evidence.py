"""What a page states about a model is computed by hand from its logits and attention weights."""

import pytest
import torch

from regard.decode.protocol import Hypothesis
from regard.look.alignment import make_hypothesis
from regard.look.attention import make_groups
from regard.look.build import look_into
from regard.look.document import Blob, decode_blob
from regard.look.masks import check_leak
from regard.look.record import LookRecord
from regard.look.replay import Passage
from regard.nn.masks import same_document
from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator
from regard.pipeline.word_alignment import sum_subwords
from tests.pipeline.factories import TEXTS, make_decoder_only, make_generator_settings

IDS = [20, 41, 62, 83, 104, 125]


def test_suppressed_tokens_have_no_probability_and_the_rest_sums_to_one() -> None:
    model, suppressed = make_decoder_only(make_generator_settings()), [0, 3, 7]
    passage = Passage(model, target=IDS, rows=[4, 5], labels=[3, 50], suppressed=suppressed)
    with torch.no_grad():
        logits = model(torch.tensor([IDS]))[0, [4, 5]]  # (2, V)
    logits[:, suppressed] = float("-inf")
    expected = logits.log_softmax(-1)
    distributions = passage.distributions(IDS, [4, 5])
    assert distributions.exp()[:, suppressed].tolist() == [[0.0] * 3] * 2
    assert torch.allclose(distributions.exp(), expected.exp(), atol=1e-6)
    (values,) = passage.replay().tolist()
    assert values == [float("-inf"), pytest.approx(expected[1, 50].item(), abs=1e-5)]


def test_leak_of_a_single_row_is_found() -> None:
    """Rows 0 and 1 see their own document only; row 2, the last one before the change, sees the future."""
    model = make_decoder_only(make_generator_settings())
    model.mask = same_document(torch.tensor([[0, 0, 1, 1, 1, 1]]))
    leak = check_leak(Passage(model, target=IDS))
    assert leak is not None
    assert (leak["prefix"], leak["replaced"]) == (3, 3)
    with torch.no_grad():
        before, after = (
            model(torch.tensor([ids]))[0].log_softmax(-1) for ids in (IDS, IDS[:3] + [token - 1 for token in IDS[3:]])
        )
    changes = (before - after).abs().amax(dim=1)
    assert changes[:2].max() == 0
    assert changes[2] > 0.01
    assert leak["change"] == pytest.approx(changes[2].item(), abs=1e-5)
    assert leak["later_change"] == pytest.approx(changes[3:].max().item(), abs=1e-5)


def test_statistics_of_each_layer_are_means_of_its_own_weights() -> None:
    """Also where each row attends: to the token before it, and how far."""
    model, record = make_decoder_only(make_generator_settings(**{"decoder.layers": 2})), LookRecord()
    Passage(model, target=IDS, rows=[0], labels=[0]).replay(record)
    tokens = [{"id": 0, "text": "x", "role": "text", "word": 0}] * len(IDS)
    (group,) = make_groups(record, {"target": tokens}, dict[str, Blob](), max_cells=0)  # type: ignore[dict-item]
    row = torch.arange(len(IDS))
    seen = []
    for layer in range(2):
        weights = record.weights(f"decoder.{layer}.self")[0][:, 1:]  # (H, T - 1, T)
        expected = {
            "previous": weights[:, row[1:] - 1, row[1:] - 1].mean(-1),
            "first": weights[:, :, 0].mean(-1),
            "distance": (weights * (row[1:, None] - row).abs()).sum(-1).mean(-1),
        }
        for name, values in expected.items():
            assert group["statistics"][name][layer] == pytest.approx(values.tolist(), abs=2e-5), name  # type: ignore[index]
            seen.append(tuple(values.tolist()))
        own = weights[:, row[1:] - 1, row[1:]].mean(-1)
        assert (own - expected["previous"]).abs().max() > 0.01
    assert len(set(seen)) == len(seen)


def test_word_alignment_comes_from_the_last_layer(translator: Translator) -> None:
    look = look_into(translator, TEXTS[0], search=Beam(1), max_length=2, ablation=False)
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
