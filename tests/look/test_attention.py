"""Attention of each layer and head."""

import numpy as np
import pytest
import torch

from regard.base.blobs import Blob, decode_blob
from regard.look.attention import make_groups
from regard.look.look import Look
from regard.look.record import LookRecord, spread
from regard.nn.record import Record
from regard.tasks.replay import ReplayInput
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator
from tests.look.conftest import SOURCE
from tests.look.factories import IDS, LONG
from tests.tasks.factories import make_decoder_only, make_generator_settings


def test_statistics_of_each_layer_are_means_of_its_own_weights() -> None:
    """Also where each row attends: to the token before it, and how far."""
    model, record = make_decoder_only(make_generator_settings(**{"decoder.layers": 2})), LookRecord()
    ReplayInput(model, target=IDS, rows=[0], labels=[0]).replay(record)
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
        ReplayInput(model, target=ids, rows=[0], labels=[0]).replay(part)
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
    layer, head = group["default_head"]
    shown = decode_blob(blobs[group["maps"][f"{layer}.{head}"]])
    assert np.abs(shown - every_row[head].numpy()).max() <= 1 / 255 + 1e-4


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
