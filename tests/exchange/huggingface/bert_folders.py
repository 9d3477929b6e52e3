"""A folder of a small BERT, written by transformers."""

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from tests.exchange.models import randomize_weights

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("a", "man", "sleeps", "he", "is", "awake", "dog", "##s", ".", "the", "old", "run")


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
