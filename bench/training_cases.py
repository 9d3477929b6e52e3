"""The models, corpora and batches of `bench.train`, and Regard's own training loop over them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.corpora import DATA
from bench.loops import RegardLoop
from bench.peers import ROOT
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.store.run_folder import RunFolder
from regard.training.data import RunData, prepare_data
from regard.training.events import Event
from regard.training.trainer import Trainer

OURS = "regard"
DATA_FOLDER = DATA
CACHE_FOLDER = ROOT / "build/bench/train"  # vocabularies and shards, made once
LEARNING_RATE, CLIP = 1e-3, 1.0


@dataclass(frozen=True)
class TrainingCase:
    """A model, its data and its batches."""

    name: str
    corpus: str
    seconds: float  # of the heat against the bare loop; the other heat takes half of it
    changes: dict[str, Any] = field(default_factory=dict)
    heats: tuple[tuple[str, ...], ...] = (("bare", "around"), ("plain", "bfloat16"))  # the opponents of each heat
    steps: int = 100  # number of different steps; all loops cycle through them

    def run(self, precision: str = "float32") -> RunConfig:
        """Return the settings of the run."""
        return RUN_FILES.parse({**CORPORA[self.corpus], **COMMON}, self.changes | {"train.precision": precision})


COMMON: dict[str, Any] = {
    "train": {
        "steps": 10**9,
        "schedule": {"kind": "constant", "lr": LEARNING_RATE},
        "optimizer": {"kind": "adam"},
        "max_grad_norm": CLIP,
        "save_every": 10**9,
    },
    "device": {"name": "cpu", "threads": 1, "attention": "float32", "logit_rows": 0},
}
CORPORA: dict[str, dict[str, Any]] = {
    "multi30k_tok": {
        "data": {
            "train": [
                {
                    "kind": "lines",
                    "source": str(DATA_FOLDER / "multi30k/tok/train.lc.norm.tok.en.gz"),
                    "target": str(DATA_FOLDER / "multi30k/tok/train.lc.norm.tok.de.gz"),
                }
            ],
            "max_length": 256,
        },
        "tokenizer": {"kind": "byte_bpe", "vocabulary": 10_000},
        "model": {"preset": "tiny"},
    },
    "tinyshakespeare": {
        "data": {"train": [{"kind": "documents", "path": str(DATA_FOLDER / "tinyshakespeare/input.txt.gz")}]},
        "tokenizer": {"kind": "character"},
        "model": {"preset": "gpt2"},
    },
}


def make_tiny_case(seconds: float, tokens: int = 4096, gradient_accumulation: int = 1) -> TrainingCase:
    """Create a translation case: Transformer-tiny on Multi30k."""
    changes = {
        "data.batch_tokens": tokens,
        "train.step_tokens": gradient_accumulation * tokens,
        "train.label_smoothing": 0.1,
        "device.logit_rows": 256,
    }
    if gradient_accumulation == 1:
        return TrainingCase("tiny", "multi30k_tok", seconds, changes)
    return TrainingCase(
        f"accumulate{gradient_accumulation}", "multi30k_tok", seconds, changes, heats=(("bare",),), steps=50
    )


def make_shakespeare_case(
    seconds: float, layers: int = 4, heads: int = 4, width: int = 128, context: int = 64
) -> TrainingCase:
    """Create a character-level language modeling case: tinyshakespeare."""
    rows = 12 if context == 64 else 16
    changes = {
        "model.d_model": width,
        "model.decoder.layers": layers,
        "model.decoder.position.length": context,
        "model.decoder.attention.heads": heads,
        "model.decoder.feedforward.d_ff": 4 * width,
        "model.decoder.dropout": {},
        "data.max_length": context,
        "data.batch_tokens": rows * context,
        "train.step_tokens": rows * context,
    }
    name = "shakespeare" if width == 128 else f"shakespeare_{layers}x{width}"
    return TrainingCase(name, "tinyshakespeare", seconds, changes)


def read_corpus(run: RunConfig, corpus: str) -> RunData:
    """Prepare a corpus, or read it from the cache."""
    run_folder = RunFolder(CACHE_FOLDER / corpus)
    if not run_folder.shards.is_dir():
        print(f"Preparing {corpus} (only the first time).")
    run_folder.path.mkdir(parents=True, exist_ok=True)
    return prepare_data(run, run_folder, lambda _: None)


def make_regard_loop(case: TrainingCase, run: RunConfig, data: RunData, folder: Path) -> RegardLoop:
    """Create Regard's training loop in a new folder."""
    folder.mkdir(parents=True)
    events: list[Event] = []
    return RegardLoop(Trainer(run, RunFolder(folder), data, events.append), events, case.steps)
