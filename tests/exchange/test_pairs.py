"""Pairs of texts: an imported BERT reads the second text with its token type, as `transformers` does."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from regard.exchange.export import ExportOptions, export_model
from regard.exchange.importer import import_model
from regard.pipeline.load import load_classifier
from tests.exchange.folders import load_theirs
from tests.exchange.models import randomize_weights

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("a", "man", "sleeps", "he", "is", "awake", "dog", "##s", ".", "the", "old", "run")
FIRST = ["A man sleeps.", "The old dogs run.", "", "He is a dog"]
SECOND = ["He is awake.", "A dog is the old man he is.", "awake", ""]
TOLERANCE = 2e-5


def write_theirs(folder: Path, types: int) -> tuple[Any, Any]:
    """Write a small BertForSequenceClassification with a WordPiece tokenizer; return both."""
    transformers = pytest.importorskip("transformers")
    vocabulary = {token: index for index, token in enumerate((*SPECIALS, *WORDS))}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token=SPECIALS[1]))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    ids = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )
    names = {f"{role}_token": f"[{role.upper()}]" for role in ("pad", "unk", "cls", "sep", "mask")}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **names,
    )
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), max_position_embeddings=32, type_vocab_size=types, num_labels=3, **sizes
    )
    model: Any = randomize_weights(transformers.BertForSequenceClassification(config)).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


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
