"""Replayed attention equals the attention of the search, and a long text's record equals a complete one."""

import numpy as np
import pytest
import torch

from regard.look.alignment import make_passage, read_cross
from regard.look.document import decode_blob
from regard.look.look import Look
from regard.look.record import LookRecord
from regard.look.replay import ReplayInput
from regard.pipeline.inspect import translate_traced
from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator
from tests.look.conftest import SOURCE
from tests.look.factories import IDS
from tests.pipeline.factories import make_decoder_only, make_generator_settings


def test_replayed_attention_equals_that_of_the_search(translator: Translator, translation_look: Look) -> None:
    traced = translate_traced(translator, SOURCE, Beam(3), n_best=2, max_new_tokens=8)
    generation, generated = translation_look.reading.generation, translation_look.reading.generated
    assert generation is not None
    assert generated is not None
    assert generated.trace is not None
    assert generated.trace.winners == traced.trace.winners
    for number, hypothesis in zip(traced.trace.winners[0], generated.hypotheses, strict=True):
        record = LookRecord()
        logprobs = make_passage(generation, hypothesis).replay(record)[0]
        searched = traced.trace.attention(number)  # (tokens, layers, heads, source)
        replayed = read_cross(record).permute(2, 0, 1, 3).numpy()
        assert np.abs(searched - replayed).max() <= 8e-7
        assert logprobs.tolist() == pytest.approx(hypothesis.logprobs, abs=5e-6)


def test_a_look_shows_the_attention_that_the_pipeline_records(translator: Translator, translation_look: Look) -> None:
    translation = translator.translate(SOURCE, Beam(3), max_new_tokens=8)
    recorded = translator.record(SOURCE, translation)
    document = translation_look.document
    assert document["output"] == translation.text
    for group, weights in zip(document["attention"], (recorded.encoder, recorded.decoder, recorded.cross), strict=True):
        for key, name in group["maps"].items():
            layer, head = map(int, key.split("."))
            exact = weights[layer, head][: group["row_count"], : group["column_count"]].numpy()
            shown = decode_blob(document["blobs"][name])
            assert np.abs(shown - exact).max() <= 1 / 255 + 1e-5
        assert max(error for row in group["errors"] for error in row if error is not None) < 3e-6


def test_cross_rows_carry_the_token_that_they_generate(translation_look: Look) -> None:
    document = translation_look.document
    self_attention, cross = document["attention"][1:]
    target = document["sequences"]["target"]
    assert (self_attention["row_start"], cross["row_start"]) == (0, 1)
    assert target[0]["role"] == "special"
    assert [token["id"] for token in target[1:]] == [token["id"] for token in document["hypotheses"][0]["tokens"]]


def test_future_tokens_do_not_leak(looks: dict[str, Look]) -> None:
    for task in ("translate", "causal_lm"):
        views = {view["group"]: view for view in looks[task].document["masks"]}
        leak = views["decoder.self"]["leak"]
        assert leak is not None
        assert leak["change"] == 0.0
        assert leak["later_change"] > 0.01
        assert views["decoder.self"]["terms"] == [{"kind": "causal"}]


def test_suppressed_tokens_have_no_probability_and_the_rest_sums_to_one() -> None:
    model, suppressed = make_decoder_only(make_generator_settings()), [0, 3, 7]
    passage = ReplayInput(model, target=IDS, rows=[4, 5], labels=[3, 50], suppressed=suppressed)
    with torch.no_grad():
        logits = model(torch.tensor([IDS]))[0, [4, 5]]  # (2, V)
    logits[:, suppressed] = float("-inf")
    expected = logits.log_softmax(-1)
    distributions = passage.distributions(IDS, [4, 5])
    assert distributions.exp()[:, suppressed].tolist() == [[0.0] * 3] * 2
    assert torch.allclose(distributions.exp(), expected.exp(), atol=1e-6)
    (values,) = passage.replay().tolist()
    assert values == [float("-inf"), pytest.approx(expected[1, 50].item(), abs=1e-5)]
