"""Pairs of texts: an imported BERT reads the second text with its token type, as `transformers` does."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.exchange.export import ExportOptions, export_model
from regard.exchange.importer import import_model
from regard.tasks.load import load_classifier
from tests.exchange.folders import load_theirs
from tests.exchange.huggingface.bert_folders import write_theirs

FIRST = ["A man sleeps.", "The old dogs run.", "", "He is a dog"]
SECOND = ["He is awake.", "A dog is the old man he is.", "awake", ""]
TOLERANCE = 2e-5


def compute_theirs(model: Any, tokenizer: Any, first: list[str], second: list[str] | None) -> torch.Tensor:
    with torch.no_grad():
        return model(**tokenizer(first, second, padding=True, return_tensors="pt")).logits.softmax(dim=-1)


@pytest.mark.parametrize("second", [SECOND, None])
def test_pairs_get_the_probabilities_of_transformers(second: list[str] | None, tmp_path: Path) -> None:
    model, tokenizer = write_theirs(tmp_path / "theirs", types=2)
    import_model(tmp_path / "theirs", tmp_path / "ours")
    classifier = load_classifier(tmp_path / "ours")
    expected = compute_theirs(model, tokenizer, FIRST, second)
    got = classifier.classify(FIRST, second)
    probabilities = torch.tensor([list(result.probabilities.values()) for result in got])
    assert (probabilities - expected).abs().max() < TOLERANCE
    if second is None:
        return
    rows = tokenizer(FIRST, second, padding=True, return_tensors="pt")
    rows["token_type_ids"] = torch.zeros_like(rows["token_type_ids"])
    with torch.no_grad():
        without_types = model(**rows).logits.softmax(dim=-1)
    assert (without_types - expected).abs().max() > 100 * TOLERANCE  # the test would notice types that are lost


def test_exported_tokenizers_give_the_types(tmp_path: Path) -> None:
    model, tokenizer = write_theirs(tmp_path / "theirs", types=2)
    import_model(tmp_path / "theirs", tmp_path / "ours")
    folder, _ = export_model(tmp_path / "ours", "huggingface", tmp_path / "again", options=ExportOptions())
    transformers = pytest.importorskip("transformers")
    again = transformers.AutoTokenizer.from_pretrained(folder)
    assert again(FIRST[:2], SECOND[:2])["token_type_ids"] == tokenizer(FIRST[:2], SECOND[:2])["token_type_ids"]
    theirs = load_theirs(folder, "AutoModelForSequenceClassification")
    expected = compute_theirs(model, tokenizer, FIRST, SECOND)
    assert (compute_theirs(theirs, again, FIRST, SECOND) - expected).abs().max() < TOLERANCE


def test_a_model_with_one_type_reads_both_texts_with_it(tmp_path: Path) -> None:
    model, tokenizer = write_theirs(tmp_path / "theirs", types=1)
    import_model(tmp_path / "theirs", tmp_path / "ours")
    rows = tokenizer(FIRST, SECOND, padding=True, return_tensors="pt")
    rows["token_type_ids"] = torch.zeros_like(rows["token_type_ids"])
    with torch.no_grad():
        expected = model(**rows).logits.softmax(dim=-1)
    got = load_classifier(tmp_path / "ours").classify(FIRST, SECOND)
    probabilities = torch.tensor([list(result.probabilities.values()) for result in got])
    assert (probabilities - expected).abs().max() < TOLERANCE
