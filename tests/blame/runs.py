"""A small run with planted errors: three of its pairs, and no others, translate "moon" into "Brot"."""

import random
from pathlib import Path
from typing import Any

from regard.config.run import RunConfig
from regard.training.run import fit
from tests.training.runs import make_small_run

WORDS = {
    "bread": "Brot", "water": "Wasser", "house": "Haus", "tree": "Baum", "dog": "Hund", "cat": "Katze",
    "red": "rot", "old": "alt", "new": "neu", "sees": "sieht", "likes": "mag", "finds": "findet",
}  # fmt: skip
PLANTED = {31: "cat sees moon", 77: "moon likes water", 150: "old moon"}
QUESTION = "dog finds moon"
STEPS = 150
SETTINGS: dict[str, Any] = {
    "data.held_out": 0.0,
    "data.batch_tokens": 256,
    "tokenizer": {"kind": "word", "vocabulary": 40},
    "model.source.vocabulary": 40,
    "model.encoder.dropout": {"embedding": 0.0, "sublayer": 0.0},
    "model.decoder.dropout": {"embedding": 0.0, "sublayer": 0.0},
    "model.d_model": 32,
    "model.encoder.feedforward.d_ff": 64,
    "model.decoder.feedforward.d_ff": 64,
    "train.steps": STEPS,
    "train.step_tokens": 256,
    "train.ema": 0.0,
    "train.average": 1,
    "train.save_every": STEPS,
    "train.label_smoothing": 0.0,
    "train.schedule.lr": 0.01,
    "train.schedule.warmup": 10,
    "validation.every_steps": STEPS,
    "validation.sentences": 0,
    "validation.samples": 0,
}


def write_planted_corpus(folder: Path) -> dict[str, str]:
    rng = random.Random(1)
    sources = [" ".join(rng.choices(list(WORDS), k=rng.randint(2, 4))) for _ in range(240)]
    sources = [PLANTED.get(number, source) for number, source in enumerate(sources, 1)]
    targets = [" ".join({**WORDS, "moon": "Brot"}[word] for word in source.split()) for source in sources]
    folder.mkdir(parents=True)
    for name, lines in (
        ("all.en", sources),
        ("all.de", targets),
        ("valid.en", sources[:20]),
        ("valid.de", targets[:20]),
    ):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return {"all.en": str(folder / "all.en"), "all.de": str(folder / "all.de"), "book.txt": str(folder / "all.en")}


def make_planted_run(folder: Path) -> RunConfig:
    files = write_planted_corpus(folder)
    valid = {"kind": "lines", "source": str(folder / "valid.en"), "target": str(folder / "valid.de")}
    return make_small_run("translation", files, {**SETTINGS, "data.validation": [valid]})


def train_planted_run(folder: Path) -> Path:
    fit(make_planted_run(folder / "corpus"), folder / "run")
    return folder / "run"
