"""Options that all parts share, and the corpora that they read."""

import gzip
import random
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

WORDS = ["the", "a", "red", "blue", "old", "new", "dog", "cat", "house", "tree", "sees", "likes", "finds", "under"]


@dataclass(frozen=True)
class Options:
    """How to run a part."""

    data: Path | None
    out: Path
    small: bool = False
    """A few seconds on generated text: the numbers mean nothing."""
    seeds: int = 1
    models: Path | None = None
    """Folder that keeps trained models: a part that was interrupted continues, one that ended trains nothing again."""
    folders: Mapping[str, Path] = field(default_factory=dict)
    """Models that a part compares instead of training them, by name."""

    @contextmanager
    def run_folder(self, name: str) -> Iterator[Path]:
        """Yield a folder for one model: kept in `models`, or else temporary."""
        if self.models is not None:
            folder = self.models / name
            folder.mkdir(parents=True, exist_ok=True)
            yield folder
        else:
            with tempfile.TemporaryDirectory() as temporary:
                yield Path(temporary)

    def read_lines(self, name: str, count: int | None = None) -> list[str]:
        """Read lines of a corpus, e.g. "tatoeba_deen/train.en"; in the small form, generated sentences."""
        if self.small:
            rng = random.Random(len(name.split(".")[0]))  # noqa: S311 - sentences, not secrets
            lines = [" ".join(rng.choices(WORDS, k=rng.randint(2, 6))) for _ in range(200)]
            return [line.upper() if name.endswith(".de") else line for line in lines][:count]
        return self.read_text(name).split("\n")[:-1][:count]

    def read_text(self, name: str) -> str:
        """Read a file of a corpus, with or without .gz."""
        if self.small:
            return "\n".join(self.read_lines(name + ".en")) + "\n"
        if self.data is None:
            raise SystemExit(f"This part reads {name}: give the folder of the corpora with --data.")
        path = self.data / name
        if path.exists():
            return path.read_text(encoding="utf-8")
        return gzip.decompress((self.data / f"{name}.gz").read_bytes()).decode()
