"""Tags of words as labels of tokens."""

import json
from collections.abc import Sequence

import pytest

from regard.data.example import CorpusError, Example, Location
from regard.data.shards.tokenize import _encode_tags
from regard.text.tokenizer import Tokenizer

LABELS = ("O", "B-X")
WHERE = Location("words.conll", 1)


def make_tokenizer(words: Sequence[str] = ("a", "dog", "a dog"), **changes: object) -> Tokenizer:
    """Return a WordPiece tokenizer that removes control characters, as BERT's does."""
    specials = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    specials |= {"bos": "[CLS]", "eos": "[SEP]"}
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys((*specials.values(), *words)))}
    roles = {role: {"id": role, "ids": [vocabulary[word]], "tokens": [word]} for role, word in specials.items()}
    sides = [{"Sequence": {"id": side, "type_id": 0}} for side in "AB"]
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None}
    document = {
        "version": "1.0",
        "added_tokens": [
            {"id": vocabulary[word], "content": word, "special": True, "normalized": False}
            | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
            for word in sorted(set(specials.values()))
        ],
        "normalizer": {"type": "Sequence", "normalizers": [bert | {"lowercase": True}]},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": sides[:1], "pair": sides, "special_tokens": roles},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "vocab": vocabulary, "unk_token": "[UNK]", "max_input_chars_per_word": 100}
        | {"continuing_subword_prefix": "##"},
    }
    return Tokenizer(json.dumps(document | changes).encode())


@pytest.mark.parametrize("word", ["\x01", "\u200d"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_word_without_tokens_has_no_label(word: str, place: int) -> None:
    """A normalizer may remove a whole word: the tags of all others stay at their words."""
    words, tags = ["a", "dog"], ["O", "B-X"]
    words.insert(place, word)
    tags.insert(place, "O")
    example = Example(WHERE, " ".join(words), tags=tuple(tags))
    assert _encode_tags(example, make_tokenizer(), LABELS) == [1, 2]


def test_words_that_share_a_token_are_refused() -> None:
    example = Example(WHERE, "a dog", tags=("O", "B-X"))
    with pytest.raises(CorpusError, match="share a token"):
        _encode_tags(example, make_tokenizer(pre_tokenizer=None), LABELS)
