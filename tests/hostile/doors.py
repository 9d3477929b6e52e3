"""Setup of an attack: a valid folder to damage, a folder outside that must not change, and a canary.

The valid folders are made once: a model, a paused run, a prepared corpus.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest

import regard
from regard.base.files import write_manifest
from regard.config.sources import AnySourceConfig, AudioConfig, ImagesConfig, JsonlConfig, LinesConfig, TmxConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.readers.images import is_idx
from regard.data.shards.prepare import open_corpus
from regard.exchange import parity
from regard.exchange.export import export_model
from regard.exchange.importer import import_model
from regard.store.model_folder import read_model, write_model
from regard.store.weights import get_weights
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.run import fit, resume
from tests.tasks import factories
from tests.training.runs import make_small_run, write_corpus

Door = Literal["load", "resume", "read_model", "vocabulary", "prepared", "corpus", "import"]
PAUSE = 2  # the step at which the run pauses


class Canary:
    """An object whose pickle creates a folder when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[Any, ...]]:
        return os.mkdir, (str(self.path),)


@dataclass(frozen=True)
class Place:
    """The paths of an attack."""

    folder: Path  # a copy of the valid folder
    outside: Path  # must not change
    canary: Path  # must never exist

    @property
    def step(self) -> Path:
        """The newest checkpoint of a run."""
        return max((self.folder / "checkpoints").iterdir())

    def edit(self, name: str, change: Callable[[Any], object]) -> None:
        """Change a JSON file in the folder: `change` modifies its value or returns a new one."""
        path = self.folder / name
        value = json.loads(path.read_bytes())
        replacement = change(value)
        path.write_text(json.dumps(value if replacement is None else replacement), encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        """Change a text file in the folder."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} has no {old!r} to replace"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def write_manifest(self) -> None:
        """Update the manifest to the current content, as an attacker could."""
        write_manifest(self.folder)


@cache
def _make_good(root: Path) -> dict[str, Path]:
    """Make the valid folders once."""
    settings = factories.make_generator_settings()
    model = root / "model"
    write_model(
        model, settings, factories.make_tokenizers(), get_weights(factories.make_decoder_only(settings)), "A card.\n"
    )
    files = write_corpus(root / "text", count=60)
    run = root / "run"
    changes = {"validation.sentences": 0, "validation.samples": 0}
    fit(make_small_run("causal_lm", files, changes), run, pause_at=PAUSE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parity, "TEXTS", 1)  # the proof of the valid folder is not under test
        theirs, _ = export_model(model, "huggingface", root / "theirs")
    return {"model": model, "run": run, "text": root / "text", "theirs": theirs}


def find_good(root: Path, door: Door) -> Path:
    """Return the valid folder or file for this door."""
    things = _make_good(root)
    return {
        "load": things["model"],
        "read_model": things["model"],
        "resume": things["run"],
        "vocabulary": things["run"] / "tokenizer",
        "prepared": things["run"] / "shards" / "train",
        "corpus": things["text"],
        "import": things["theirs"],
    }[door]


def make_place(root: Path, door: Door, name: str) -> Place:
    """Make the paths of one attack."""
    home = root / "places" / name
    shutil.copytree(find_good(root, door), home / "given", symlinks=True)
    (home / "outside").mkdir()
    (home / "outside" / "victim.txt").write_text("mine\n")
    return Place(home / "given", home / "outside", home / "canary")


def snapshot(folder: Path) -> dict[str, str]:
    """Hash every file in a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def enter(door: Door, path: Path) -> object:
    """Open a path as a user would."""
    match door:
        case "load":
            return regard.load(path)
        case "read_model":
            return read_model(path)
        case "resume":
            return resume(path, pause_at=PAUSE)
        case "vocabulary":
            return TokenizerPair.load(path).source.encode("the old dog sees a cat")
        case "prepared":
            return [shard.lengths for shard in open_corpus(path).shards]
        case "corpus":
            return _read(path)
        case "import":
            home = path if path.is_dir() else path.parent
            return import_model(path, home.parent / "imported")


def _read(path: Path) -> int:
    """Read all examples of a corpus as training does: hashes first, then text."""
    if path.is_dir():
        path /= "all.en"
    kinds: dict[str, AnySourceConfig] = {
        ".jsonl": JsonlConfig(path=str(path)),
        ".tmx": TmxConfig(path=str(path), languages=("en", "de")),
        ".png": ImagesConfig(path=str(path)),
        ".wav": AudioConfig(path=str(path)),
    }
    source = kinds.get(
        path.suffix, ImagesConfig(path=str(path)) if is_idx(str(path)) else LinesConfig(source=str(path))
    )
    corpus_reader = Corpus([source])
    corpus_reader.hash_files()
    return sum(1 for _ in corpus_reader.examples(Defects()))
