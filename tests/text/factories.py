"""Small tokenizers of all kinds, and lines of the shared corpora if they are present."""

import gzip
import json
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import strategies as st

from regard.config.tokenizers import (
    AnyTokenizerConfig,
    BpeConfig,
    ByteBpeConfig,
    ByteLevelConfig,
    CharacterLevelConfig,
    NormalizeConfig,
    SpecialsConfig,
    UnigramConfig,
    WordLevelConfig,
)
from regard.text.learn import learn
from regard.text.tokenizer import Tokenizer

SHARED = Path(__file__).parents[2] / "../shared/data"
TEXT = [
    "Peter Piper picked a peck of pickled peppers.",
    "A peck of pickled peppers Peter Piper picked!",
    "If Peter Piper picked a peck of pickled peppers,",
    "where's the peck of pickled peppers Peter Piper picked?",
    "Wir müssen größere Äpfel pflücken, sagte Käthe: für 3,50 € oder 12 $.",
    "der größte Apfel, die größeren Äpfel, ein größerer Apfel",
    "<pad> <s> </s> <unk> <mask> <2de> <url> <pad> <s> </s> <unk> <mask> <2de> <url>\n",
]
TAGGED_SPECIALS = SpecialsConfig(languages=("de", "en"), extra=("<url>", "@@"))
KINDS: dict[str, AnyTokenizerConfig] = {
    "byte_bpe": ByteBpeConfig(vocabulary=310),
    "bpe": BpeConfig(vocabulary=120),
    "unigram": UnigramConfig(vocabulary=76),
    "word": WordLevelConfig(vocabulary=45),
    "character": CharacterLevelConfig(),
    "byte": ByteLevelConfig(),
    "byte_bpe tagged": ByteBpeConfig(vocabulary=310, specials=TAGGED_SPECIALS),
    "bpe tagged": BpeConfig(vocabulary=120, specials=TAGGED_SPECIALS),
    "unigram tagged": UnigramConfig(vocabulary=76, specials=TAGGED_SPECIALS),
    "character tagged": CharacterLevelConfig(specials=TAGGED_SPECIALS),
    "byte_bpe normal": ByteBpeConfig(
        vocabulary=310,
        specials=TAGGED_SPECIALS,
        normalize=NormalizeConfig(form="nfkc", lowercase=True, strip_accents=True),
    ),
    "unigram normal": UnigramConfig(vocabulary=76, normalize=NormalizeConfig(lowercase=True)),
}
ALPHABET = sorted({character for text in TEXT for character in text})


@cache
def get_tokenizer(name: str) -> Tokenizer:
    return learn(TEXT, KINDS[name])


def read_shared_lines(name: str, max_lines: int) -> list[str]:
    """Read lines of a shared corpus; skip the test if it is absent."""
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"needs ../shared/data/{name}")
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.removesuffix("\n") for line in islice(file, max_lines)]


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


ODD = ["<pad>", "</s>", "<2de>", "<unk>", "<url>", "@@", " ", "  ", "\n", "\r\n", "\u2028", "\0", "\ufeff", "\ufffd"]
ODD += ["é", "e\u0301", "🏳️‍🌈", "ñ", "Ã±", "Ġ", "▁", "ß", "İ", "ﬁ", "한국어", "\u202e", "\U0010ffff", "'s", "</w>"]
ANY_TEXT = st.lists(st.sampled_from(ODD) | st.text(max_size=5), max_size=10).map("".join)
LEARNED_TEXT = st.lists(
    st.text(ALPHABET, max_size=6) | st.sampled_from([" ", "  ", "<pad>", "</s>", "<unk>", "peppers"]), max_size=10
).map("".join)


TEXTS = ["the old dog sees a cat", "a cat sees the <b> dog", "dogs and cats and dogs"] * 4
