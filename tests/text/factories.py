"""Small tokenizers of all kinds, and lines of the shared corpora if they are present."""

import gzip
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from regard.config.run import (
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
        normalise=NormalizeConfig(form="nfkc", lowercase=True, strip_accents=True),
    ),
    "unigram normal": UnigramConfig(vocabulary=76, normalise=NormalizeConfig(lowercase=True)),
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
