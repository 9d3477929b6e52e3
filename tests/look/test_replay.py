"""Replayed attention equals the attention of the search, and a long text's record equals a complete one."""

import numpy as np
import pytest
import torch

from regard.look.alignment import make_passage, read_cross
from regard.look.attention import make_groups, read_map
from regard.look.build import look_into
from regard.look.document import Blob, decode_blob
from regard.look.look import Look
from regard.look.masks import check_leak
from regard.look.record import LookRecord, spread
from regard.look.replay import Passage
from regard.look.statistics import divide, shrink
from regard.nn.masks import no_mask
from regard.nn.record import Record
from regard.pipeline.generator import TextGenerator
from regard.pipeline.inspect import translate_traced
from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator
from tests.look.conftest import SOURCE
from tests.pipeline.factories import make_decoder_only, make_generator_settings, make_tokenizers

LONG = 300  # tokens, more than MAX_COMPLETE_ROWS


@pytest.fixture(scope="module")
def long_passage() -> Passage:
    settings = make_generator_settings(**{"decoder.attention.key_value_heads": 2})
    ids = torch.randint(0, 250, (LONG,), generator=torch.Generator().manual_seed(1)).tolist()
    return Passage(make_decoder_only(settings), target=ids, rows=[LONG - 1], labels=[7])


def test_replayed_attention_equals_that_of_the_search(translator: Translator, translation_look: Look) -> None:
    traced = translate_traced(translator, SOURCE, Beam(3), n_best=2, max_length=8)
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
    translation = translator.translate(SOURCE, Beam(3), max_length=8)
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


@pytest.mark.parametrize("half", [False, True])
def test_the_record_of_a_long_text_keeps_enough(long_passage: Passage, half: bool) -> None:
    complete, record = Record(), LookRecord(half=half)
    outputs = [long_passage.replay(part) for part in (complete, record)]
    assert torch.equal(*outputs)
    expected = complete.weights("decoder.0.self")
    tolerance = 2e-2 if half else 0.0
    assert (record.weights("decoder.0.self") - expected).abs().max() <= tolerance
    assert (
        record.weights("decoder.0.self", [2], [5, 280]) - expected[:, 2:3, [5, 280]]
    ).abs().max() <= tolerance + 1e-6
    errors = record.head_errors("decoder.0.self")
    assert len(errors) == expected.size(1)
    assert max(errors) < (0.3 if half else 1e-5)
    assert (max(errors) > 1e-4) == half  # the error is that of what is kept, not of what was computed
    attention = complete.attention["decoder.0.self"]
    kept = attention.query.nbytes + attention.key.nbytes
    assert record.bytes <= kept / (2 if half else 1) + 16
    assert not record.residuals


def test_statistics_of_sampled_rows_are_near_those_of_all_rows(long_passage: Passage) -> None:
    record, blobs = LookRecord(), dict[str, Blob]()
    long_passage.replay(record)
    tokens = [{"id": 0, "text": "x", "role": "text", "word": 0}] * LONG
    (group,) = make_groups(record, {"target": tokens}, blobs, max_cells=LONG * LONG)  # type: ignore[dict-item]
    assert group["sampled_rows"] == 128
    assert list(group["maps"]) == [".".join(map(str, group["opening"]))]
    weights = record.weights("decoder.0.self")[0]  # (H, T, T)
    index = torch.arange(LONG)
    exact = {
        "entropy": -torch.special.xlogy(weights, weights).sum(-1)[:, 1:].mean(-1),
        "first": weights[:, 1:, 0].mean(-1),
        "previous": weights[:, index[1:], index[:-1]].mean(-1),
        "distance": (weights * (index[:, None] - index).abs()).sum(-1)[:, 1:].mean(-1),
    }
    for name, values in exact.items():
        sampled = torch.tensor(group["statistics"][name][0])  # type: ignore[index]
        assert torch.allclose(sampled, values, rtol=0.25, atol=0.02), name
    thumbnail = decode_blob(blobs[group["thumbnails"]])
    assert thumbnail.shape == (1, 4, 48, 48)
    layer, head = group["opening"]
    sampled_map = read_map(record, "decoder.self", layer, head)[spread(LONG, 128)]
    assert np.abs(thumbnail[layer, head] - shrink(sampled_map, divide(128), divide(LONG))).max() <= 1 / 255 + 1e-5


def test_shrinking_takes_maxima() -> None:
    weights = np.zeros((100, 7), dtype=np.float32)
    weights[63, 3] = 0.5
    small = shrink(weights, divide(100), divide(7))
    assert small.shape == (48, 7)
    assert shrink(weights.T, divide(7), divide(100)).shape == (7, 48)
    assert np.array_equal(shrink(weights.T, divide(7), divide(100)), small.T)
    assert small.max() == 0.5
    assert (small > 0).sum() == 1


def test_a_long_text_leaves_out_what_takes_too_long(generator: TextGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.look.build.MAX_FLOPS", 1.0)
    document = look_into(generator, "A little", max_length=3).document
    assert document["ablation"] is None
    assert document["masks"][0]["leak"] is None
    assert any("ablation=True" in note for note in document["notes"])
    assert any("leak test is left out" in note for note in document["notes"])
    assert look_into(generator, "A little", max_length=3, ablation=True).document["ablation"] is not None


def test_future_tokens_do_not_leak(looks: dict[str, Look]) -> None:
    for task in ("translate", "continue"):
        views = {view["group"]: view for view in looks[task].document["masks"]}
        leak = views["decoder.self"]["leak"]
        assert leak is not None
        assert leak["change"] == 0.0
        assert leak["later_change"] > 0.01
        assert views["decoder.self"]["terms"] == [{"kind": "causal"}]


def test_a_leak_is_found() -> None:
    model = make_decoder_only(make_generator_settings())
    model.mask = no_mask()
    leak = check_leak(Passage(model, target=make_tokenizers().source.encode("Two young men.").ids))
    assert leak is not None
    assert leak["change"] > 0.01


@pytest.mark.parametrize("length", [20, LONG])
@pytest.mark.parametrize(
    "changes",
    [
        {"decoder.position.kind": "rotary"},
        {"decoder.position.kind": "alibi"},
        {"decoder.position.kind": "relative"},
        {"decoder.window": 5},
        {"decoder.attention.score.kind": "additive", "decoder.attention.score.hidden": 8},
        {"decoder.attention.key_value_heads": 1},
    ],
    ids=lambda changes: "-".join(map(str, changes.values())),
)
def test_every_kind_of_attention_is_described(changes: dict[str, object], length: int) -> None:
    model = make_decoder_only(make_generator_settings(**changes))
    ids = torch.randint(0, 250, (length,), generator=torch.Generator().manual_seed(2)).tolist()
    complete, record, blobs = Record(), LookRecord(), dict[str, Blob]()
    for part in (complete, record):
        Passage(model, target=ids, rows=[0], labels=[0]).replay(part)
    tokens = [{"id": 0, "text": "x", "role": "text", "word": 0}] * length
    (group,) = make_groups(record, {"target": tokens}, blobs, max_cells=length * length)  # type: ignore[dict-item]
    rows = spread(length, 128 if length > 256 else length)
    with torch.no_grad():
        every_row = complete.weights("decoder.0.self")[0]  # (H, T, S)
    weights = every_row[:, rows][:, 1:]  # (H, t, S)
    entropy = -torch.special.xlogy(weights, weights).sum(-1).mean(-1)
    assert group["statistics"]["entropy"][0] == pytest.approx(entropy.tolist(), abs=1e-4)
    assert group["statistics"]["first"][0] == pytest.approx(weights[:, :, 0].mean(-1).tolist(), abs=1e-4)
    assert max(error or 0.0 for error in group["errors"][0]) < 1e-4
    layer, head = group["opening"]
    shown = decode_blob(blobs[group["maps"][f"{layer}.{head}"]])
    assert np.abs(shown - every_row[head].numpy()).max() <= 1 / 255 + 1e-4


def test_training_mode_and_low_precision() -> None:
    settings = make_generator_settings(**{"decoder.dropout.sublayer": 0.5})
    model = make_decoder_only(settings)
    generator = TextGenerator(model, make_tokenizers(), settings)
    expected = look_into(generator, "A little", max_length=3).document
    model.train()
    assert look_into(generator, "A little", max_length=3).document == expected
    assert all(module.training for module in model.modules())
    document = look_into(
        TextGenerator(model.bfloat16(), make_tokenizers(), settings), "A little", max_length=3
    ).document
    errors = [error or 0.0 for error in document["attention"][0]["errors"][0]]
    assert 1e-4 < max(errors) < 0.5  # the page shows how coarse the model's numbers are
