"""What the model read for each output."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.base.blobs import decode_blob
from regard.look.attention import attention_name
from regard.look.build import look_into
from regard.look.look import Look
from tests.tasks.media_models import make_png, write_captioning_model, write_image_model


def expected_rows(look: Look) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the mean weights of the heads, one row per output."""
    reads, rows = look.document["reads"], look.run.input.rows
    heads = [look.record.weights(attention_name(reads["group"], layer))[0, head] for layer, head in reads["heads"]]
    return np.mean([head.double().numpy()[list(rows)] for head in heads], axis=0)


@pytest.mark.parametrize(
    ("task", "group"),
    [
        ("translation", "decoder.cross"),
        ("causal_lm", "decoder.self"),
        ("masked_lm", "encoder.self"),
        ("text_classification", "encoder.self"),
        ("tagging", "encoder.self"),
    ],
)
def test_reads_are_the_rows_of_the_outputs(task: str, group: str, looks: dict[str, Look]) -> None:
    look = looks[task]
    reads, hypotheses = look.document["reads"], look.document["hypotheses"]
    assert reads["group"] == group
    (shown,) = [item for item in look.document["attention"] if item["name"] == group]
    assert reads["heads"] == (hypotheses[0]["link_heads"] if hypotheses else [shown["default_head"]])
    assert decode_blob(look.document["blobs"][reads["weights"]]) == pytest.approx(expected_rows(look), abs=1e-6)


@pytest.mark.parametrize("pool", ["first", "mean", "last"])
def test_reads_of_a_label_follow_the_pooling(pool: str, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(make_png())
    changes: dict[str, Any] = {"head.pool": pool}
    look = look_into(write_image_model(tmp_path / "model", **changes), str(tmp_path / "a.png"))
    layer, head = look.document["reads"]["heads"][0]
    weights = look.record.weights(f"encoder.{layer}.self")[0, head].numpy()
    expected = {"first": weights[0], "mean": weights.mean(axis=0), "last": weights[-1]}[pool]
    assert decode_blob(look.document["blobs"]["reads"])[0] == pytest.approx(expected, abs=1e-6)


def test_reads_of_a_caption_are_patches_and_large_ones_have_8_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.look.reads.MAX_EXACT_CELLS", 10)
    (tmp_path / "a.png").write_bytes(make_png())
    look = look_into(write_captioning_model(tmp_path / "model"), str(tmp_path / "a.png"), max_new_tokens=4)
    assert look.document["reads"]["group"] == "decoder.cross"
    assert look.document["blobs"]["reads"]["dtype"] == "u8"
    assert decode_blob(look.document["blobs"]["reads"]) == pytest.approx(expected_rows(look), abs=0.006)
