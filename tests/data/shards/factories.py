"""A corpus, its tokenizers and the preparation of its shards."""

import hashlib
import random
from pathlib import Path

from regard.config.sources import AnySourceConfig, LinesConfig
from regard.config.tokenizers import ByteBpeConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.shards.prepare import ShardDone, prepare
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair

WORDS = ("the", "a", "small", "large", "house", "tree", "of", "and", "sees", "finds", "under", "red", "old")
TOKENIZERS = TokenizerPair.joint(learn([" ".join(WORDS)] * 3, ByteBpeConfig(vocabulary=290)))


def write_corpus(folder: Path, lines: int, seed: int = 0) -> list[AnySourceConfig]:
    """Write two sources of pairs."""
    rng = random.Random(seed)
    for name in ("a.en", "a.de", "b.en", "b.de"):
        text = "".join(" ".join(rng.choices(WORDS, k=rng.randrange(1, 12))) + "\n" for _ in range(lines))
        (folder / name).write_text(text)
    return [
        LinesConfig(
            source=str(folder / "a.en"), target=str(folder / "a.de"), name="a", languages=("en", "de"), weight=2.0
        ),
        LinesConfig(source=str(folder / "b.en"), target=str(folder / "b.de"), name="b", languages=("en", "de")),
    ]


def hash_files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def run_prepare(sources: list[AnySourceConfig], folder: Path, *, workers: int = 1, size: int = 4000) -> list[ShardDone]:
    return prepare(Corpus(sources), TOKENIZERS, folder, Defects(), workers=workers, shard_size=size)
