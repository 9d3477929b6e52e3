"""The document: every pipeline fills its types, blobs keep their precision, and no string can leave its place."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.base.blobs import decode_blob, encode_f32, encode_i8, encode_sqrt
from regard.look.document import Document, to_json
from regard.look.look import Look
from tests.look.schema import check
from tests.look.synthetic import make_document

SAMPLE = Path(__file__).parent / "fixtures" / "sample.json"


def find_blob_names(document: Document) -> set[str]:
    names = {group["thumbnails"] for group in document["attention"]}
    names |= {name for group in document["attention"] for name in group["maps"].values()}
    names |= {hypothesis["cross"] for hypothesis in document["hypotheses"]}
    names |= {step["logits"] for step in (document["sampling"] or {"steps": []})["steps"] if step["logits"]}
    names |= {str(part[key]) for part in document["positions"] for key in ("vectors", "curves") if key in part}
    names |= {document["reads"]["weights"]} if "reads" in document else set()
    names |= set(document["attribution"]["methods"].values()) if document["attribution"] else set()
    names |= set(document["ablation"].get("token_deltas", {}).values()) if document["ablation"] else set()
    return names


@pytest.mark.parametrize("task", ["translation", "causal_lm", "masked_lm", "text_classification", "tagging"])
def test_every_task_fills_the_types_of_a_document(task: str, looks: dict[str, Look]) -> None:
    document = json.loads(to_json(looks[task].document))
    check(document, Document)
    assert document["model"]["task"] == task
    assert find_blob_names(document) == set(document["blobs"])
    for blob in document["blobs"].values():
        decode_blob(blob)
    for group in document["attention"]:
        rows = document["sequences"][group["rows"]][group["row_start"] : group["row_start"] + group["row_count"]]
        assert len(rows) == group["row_count"]
        assert len(document["sequences"][group["columns"]]) >= group["column_count"]


def test_the_sample_and_synthetic_documents_fill_the_types() -> None:
    for document in (json.loads(SAMPLE.read_text()), make_document(), make_document(tokens=300, layers=1, max_maps=1)):
        check(document, Document)
        assert find_blob_names(document) == set(document["blobs"])
    assert SAMPLE.stat().st_size < 60_000


def test_square_root_keeps_weights_within_the_quantisation_step() -> None:
    weights = np.random.default_rng(0).dirichlet([0.1] * 40, size=200).astype(np.float32)
    decoded = decode_blob(encode_sqrt(weights))
    assert (np.abs(decoded - weights) <= np.sqrt(weights) / 255 + 1 / 510**2 + 1e-7).all()
    assert decoded[weights == 0].sum() == 0
    linear = np.rint(weights * 255) / 255
    assert np.abs(decoded - weights)[weights < 0.01].mean() < 0.2 * np.abs(linear - weights)[weights < 0.01].mean()


def test_other_blobs_keep_numbers() -> None:
    numbers = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
    numbers[0, 0] = -np.inf
    assert np.array_equal(decode_blob(encode_f32(numbers)), numbers)
    finite = numbers[1:]
    assert np.abs(decode_blob(encode_i8(finite)) - finite).max() <= np.abs(finite).max() / 254 + 1e-6
