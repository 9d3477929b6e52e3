"""The models, corpora and batches that `bench.train` races with, and Regard's own loop over them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.loops import Ours
from bench.peers import ROOT
from regard.config.codec import RUN_FILES
from regard.config.run import Run
from regard.store.run_folder import RunFolder
from regard.train.corpora import Corpora, corpora
from regard.train.events import Event
from regard.train.trainer import Trainer

OURS = "regard"
SHARED = ROOT / "../shared/data"
KEPT = ROOT / "build/bench/train"  # vocabularies and shards, made once
RATE, CLIP = 1e-3, 1.0


@dataclass(frozen=True)
class Shape:
    """A model, its data and its batches."""

    name: str
    corpus: str
    seconds: float  # of the heat against bare; the other one takes half of it
    changes: dict[str, Any] = field(default_factory=dict)
    heats: tuple[tuple[str, ...], ...] = (("bare", "around"), ("plain", "bfloat16"))  # who runs against ours, in turn
    updates: int = 100  # that all go through before they begin again

    def run(self, precision: str = "float32") -> Run:
        """The settings of a run."""
        return RUN_FILES().parse({**CORPORA[self.corpus], **COMMON}, self.changes | {"train.precision": precision})


COMMON: dict[str, Any] = {
    "train": {
        "updates": 10**9,
        "schedule": {"kind": "constant", "peak": RATE},
        "optimizer": {"kind": "adam"},
        "clip": CLIP,
        "save_every": 10**9,
    },
    "device": {"name": "cpu", "threads": 1, "attention": "float32", "loss_rows": 0},
}
CORPORA: dict[str, dict[str, Any]] = {
    "multi30k_tok": {
        "data": {
            "train": [
                {
                    "kind": "lines",
                    "source": str(SHARED / "multi30k/tok/train.lc.norm.tok.en.gz"),
                    "target": str(SHARED / "multi30k/tok/train.lc.norm.tok.de.gz"),
                }
            ],
            "longest": 256,
        },
        "tokenizer": {"kind": "byte_bpe", "vocabulary": 10_000},
        "model": {"preset": "tiny"},
    },
    "tinyshakespeare": {
        "data": {"train": [{"kind": "documents", "path": str(SHARED / "tinyshakespeare/input.txt.gz")}]},
        "tokenizer": {"kind": "character"},
        "model": {"preset": "gpt2"},
    },
}


def tiny(seconds: float, tokens: int = 4096, together: int = 1) -> Shape:
    """Translation."""
    changes = {
        "data.batch_tokens": tokens,
        "train.update_tokens": together * tokens,
        "train.label_smoothing": 0.1,
        "device.loss_rows": 256,
    }
    if together == 1:
        return Shape("tiny", "multi30k_tok", seconds, changes)
    return Shape(f"together{together}", "multi30k_tok", seconds, changes, heats=(("bare",),), updates=50)


def shakespeare(seconds: float, layers: int = 4, heads: int = 4, width: int = 128, context: int = 64) -> Shape:
    """Characters."""
    rows = 12 if context == 64 else 16
    changes = {
        "model.width": width,
        "model.decoder.layers": layers,
        "model.decoder.position.length": context,
        "model.decoder.attention.heads": heads,
        "model.decoder.feedforward.hidden": 4 * width,
        "model.decoder.dropout": {},
        "data.longest": context,
        "data.batch_tokens": rows * context,
        "train.update_tokens": rows * context,
    }
    name = "shakespeare" if width == 128 else f"shakespeare_{layers}x{width}"
    return Shape(name, "tinyshakespeare", seconds, changes)


def read(run: Run, corpus: str) -> Corpora:
    """A corpus as tokens."""
    place = RunFolder(KEPT / corpus)
    if not place.shards.is_dir():
        print(f"preparing {corpus}, once")
    place.path.mkdir(parents=True, exist_ok=True)
    return corpora(run, place, lambda _: None)


def ours(shape: Shape, run: Run, known: Corpora, place: Path) -> Ours:
    """Regard's trainer in a new folder."""
    place.mkdir(parents=True)
    heard: list[Event] = []
    return Ours(Trainer(run, RunFolder(place), known, heard.append), heard, shape.updates)
