"""Small runs of each model family over small synthetic corpora: they take seconds, not minutes."""

import hashlib
import json
import random
import struct
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Pillow

from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.config.sources import ImagesConfig
from regard.data.example import Defects
from regard.data.readers import read
from regard.store.run_folder import RunFolder, parse_step
from regard.training.data import RunData, prepare_data
from regard.training.events import Event
from regard.training.run import fit

TASKS = ("translation", "causal_lm", "masked_lm")
RECURRENT = "recurrent"  # translation by recurrent stacks
_PAIRS = {
    "the": "der", "a": "ein", "red": "rot", "blue": "blau", "old": "alt", "new": "neu", "dog": "Hund", "cat": "Katze",
    "house": "Haus", "tree": "Baum", "sees": "sieht", "likes": "mag", "finds": "findet", "under": "unter",
}  # fmt: skip

SMALL_LANGUAGE_MODEL = {
    "data.batch_tokens": 512,
    "train.step_tokens": 512,
    "train.steps": 60,
    "train.schedule.lr": 0.02,
    "train.schedule.warmup": 5,
    "train.save_every": 60,
    "validation.every_steps": 60,
    "model.d_model": 16,
    "model.decoder.layers": 1,
    "model.decoder.attention.heads": 2,
    "model.decoder.feedforward.d_ff": 32,
}
"""Changes of the run file of an example, so that it trains in seconds."""


def make_sentences(count: int, seed: int = 1) -> list[str]:
    """Return random sentences of three to nine words."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(list(_PAIRS), k=rng.randint(3, 9))) for _ in range(count)]


def translate_sentence(sentence: str) -> str:
    """Translate word by word, in reverse order: only attention can learn this."""
    return " ".join(_PAIRS[word] for word in reversed(sentence.split()))


def write_corpus(folder: Path, count: int = 200) -> dict[str, str]:
    """Write files of pairs and of running text; return their paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = make_sentences(count)
    (folder / "all.en").write_text("".join(f"{line}\n" for line in lines))
    (folder / "all.de").write_text("".join(f"{translate_sentence(line)}\n" for line in lines))
    (folder / "book.txt").write_text("\n".join(lines) + "\n")
    write_images(folder / "images-idx3-ubyte", count)
    write_audio(folder, min(count, 60))
    write_captions(folder, min(count, 60))
    names = ("all.en", "all.de", "book.txt", "images-idx3-ubyte", "audio", "speech.tsv", "captions.tsv")
    return {name: str(folder / name) for name in names}


def write_images(path: Path, count: int) -> None:
    """Write gray images of 8 x 8 pixels as idx files: class 0 is bright above, class 1 is bright below."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, count)
    images = rng.integers(0, 120, (count, 8, 8))
    for image, label in zip(images, labels, strict=True):
        image[4 * label : 4 * label + 4] += 120
    path.write_bytes(struct.pack(">HBBIII", 0, 8, 3, count, 8, 8) + images.astype(np.uint8).tobytes())
    content = struct.pack(">HBBI", 0, 8, 1, count) + labels.astype(np.uint8).tobytes()
    Path(str(path).replace("images-idx3", "labels-idx1")).write_bytes(content)


def write_captions(folder: Path, count: int) -> None:
    """Write gray images of 8 x 8 pixels that are bright above or below, and a table with captions that say so."""
    rng = np.random.default_rng(1)
    lines = []
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        is_below = bool(rng.integers(2))
        image = rng.integers(0, 120, (8, 8)).astype(np.uint8)
        image[4 * is_below : 4 * is_below + 4] += 120
        (folder / "pictures" / f"{number}.pgm").write_bytes(b"P5 8 8 255\n" + image.tobytes())
        lines.append(f"pictures/{number}.pgm\t{('a bright sky', 'dark over light')[is_below]}\n")
    (folder / "captions.tsv").write_text("".join(lines))


def write_audio(folder: Path, count: int) -> None:
    """Write low and high tones of 40 to 120 ms, 8,000 samples per second, in folders; and a table with their names."""
    rng = np.random.default_rng(1)
    lines = []
    for number in range(count):
        name, frequency = (("low", 300), ("high", 1500))[int(rng.integers(2))]
        times = np.arange(rng.integers(320, 960)) / 8000
        samples = 6000 * np.sin(2 * np.pi * frequency * times) + rng.normal(0, 600, times.size)
        path = folder / "audio" / name / f"{number}.wav"
        write_wav(path, samples.astype("<i2").tobytes())
        lines.append(f"{path.relative_to(folder)}\t{name}\n")
    (folder / "speech.tsv").write_text("".join(lines))


def write_wav(path: Path, samples: bytes, *, channels: int = 1, width: int = 2, rate: int = 8000) -> Path:
    """Write samples as a .wav file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(samples)
    return path


def make_small_run(task: str, files: dict[str, str], changes: dict[str, Any] | None = None) -> RunConfig:
    """Return a run with all that must survive a stop: dropout, accumulation, schedule, EMA, averaging, packing."""
    stack: dict[str, Any] = {
        "layers": 1, "norm_order": "pre", "final_norm": True, "position": {"kind": "sinusoidal"},
        "attention": {"heads": 2}, "feedforward": {"kind": "plain", "d_ff": 16},
        "dropout": {"embedding": 0.1, "sublayer": 0.1},
    }  # fmt: skip
    tokens = {"kind": "tokens", "vocabulary": 300}
    models: dict[str, dict[str, Any]] = {
        "translation": {
            "family": "encoder_decoder", "source": tokens, "target": {"kind": "shared"}, "encoder": stack,
            "decoder": {**stack, "cross": {"heads": 2}}, "head": {"kind": "lm", "tied": True},
        },
        "causal_lm": {"family": "decoder_only", "tokens": tokens, "decoder": stack},
        "masked_lm": {"family": "encoder_only", "source": tokens, "encoder": stack, "head": {"kind": "mlm"}},
        "images": {
            "family": "encoder_only", "source": {"kind": "patches", "patch": 4, "class_token": True},
            "encoder": {**stack, "position": {"kind": "learned", "length": 32}}, "task": "image_classification",
            "head": {"kind": "classes", "labels": ["0", "1"], "hidden": False},
        },
        "pixels": {
            "family": "decoder_only", "tokens": tokens, "decoder": stack,
            "raster": {"size": [4, 4]}, "starts_with_bos": False, "task": "image_generation",
        },
        "audio": {
            "family": "encoder_only", "source": {"kind": "mel", "bins": 8}, "encoder": stack,
            "task": "audio_classification",
            "head": {"kind": "classes", "labels": ["high", "low"], "pool": "mean", "hidden": False},
        },
        "transcription": {
            "family": "encoder_decoder", "source": {"kind": "mel", "bins": 8}, "target": tokens, "encoder": stack,
            "decoder": {**stack, "cross": {"heads": 2}}, "head": {"kind": "lm", "tied": True},
            "max_length_ratio": 0.1,
        },
        "captioning": {
            "family": "encoder_decoder", "source": {"kind": "patches", "patch": 4}, "target": tokens,
            "encoder": {**stack, "position": {"kind": "learned", "length": 4}},
            "decoder": {**stack, "cross": {"heads": 2}}, "head": {"kind": "lm", "tied": True},
            "max_length_ratio": 0.1,
        },
    }  # fmt: skip
    if task == RECURRENT:
        task = "translation"
        layers = {"kind": "recurrent", "layers": 1, "dropout": {"embedding": 0.1, "sublayer": 0.1}}
        memory = {"kind": "bahdanau", "score": {"kind": "additive", "hidden": 8}}
        models[task] |= {"encoder": {**layers, "bidirectional": True}, "decoder": {**layers, "cross": memory}}
    images = files.get("images-idx3-ubyte", "images-idx3-ubyte")
    sources: dict[str, dict[str, Any]] = {
        "translation": {"kind": "lines", "source": files["all.en"], "target": files["all.de"]},
        "causal_lm": {"kind": "documents", "path": files["book.txt"]},
        "masked_lm": {"kind": "lines", "source": files["all.en"]},
        "images": {"kind": "images", "path": images, "labels": images.replace("images-idx3", "labels-idx1")},
        "audio": {"kind": "audio", "path": files.get("audio", "audio")},
        "transcription": {"kind": "audio", "path": files.get("speech.tsv", "speech.tsv"), "second": "text"},
    }
    sources["captioning"] = {"kind": "images", "path": files.get("captions.tsv", "captions.tsv"), "second": "text"}
    sources["pixels"] = {**sources["images"], "size": [4, 4], "channels": 1}
    table: dict[str, Any] = {
        "data": {"train": [sources[task]], "held_out": 0.1, "batch_tokens": 128, "max_length": 32},
        "tokenizer": {"kind": "byte_bpe", "vocabulary": 300, "dropout": 0.1 if task == "translation" else 0.0},
        "model": {"d_model": 16, "task": task, **models[task]},
        "train": {
            "steps": 24, "step_tokens": 256, "schedule": {"kind": "cosine", "lr": 0.01, "warmup": 4},
            "label_smoothing": 0.1, "ema": 0.9, "average": 3, "save_every": 5, "keep_checkpoints": 2,
        },
        "validation": {"every_steps": 6, "sentences": 4, "samples": 1},
        "device": {"name": "cpu", "threads": 1, "attention": "autocast", "logit_rows": 16},
    }  # fmt: skip
    if task == "images":
        table["tokenizer"], table["data"]["augmentation"] = {"kind": "none"}, {"shift": 1, "flip": True}
    if task == "captioning":
        table["data"]["augmentation"] = {"shift": 1, "flip": False}
    if task == "pixels":
        table["tokenizer"], table["data"]["max_length"] = {"kind": "codebook", "colors": 4}, 18
    if task in ("audio", "transcription"):
        table["tokenizer"] = {"kind": "none" if task == "audio" else "character"}
        table["data"]["spec_augment"] = {}
    return RUN_FILES.parse(table, changes)


# A translation run that stops early: BLEU stays 0, so that no validation after the first improves it.
PATIENCE = {
    "validation.metric": "bleu",
    "validation.every_steps": 4,
    "validation.sentences": 2,
    "validation.patience": 3,
}
# A learning rate so high that the run diverges, from the initial weights and from a checkpoint, and recovers.
DIVERGING: dict[str, Any] = {
    "train.schedule.lr": 10.0,
    "train.schedule.warmup": 20,
    "train.max_grad_norm": 0.0,
    "train.spikes.window": 8,
    "train.steps": 20,
    "train.save_every": 4,
    "train.average": 2,
    "validation.every_steps": 5,
    "validation.sentences": 0,
    "validation.samples": 0,
}
PUBLISHED = ("best", "average", "adapter", "film")  # folders that a run writes for others to read
EARLY_STOP = 16  # the step at which it stops: one validation that is best, and three that are not


def compute_fingerprints(folder: Path) -> dict[str, str]:
    """Return the sha256 of every file that must be the same after a resumed and an uninterrupted run."""
    entries = sorted(path for path in (folder / "checkpoints").iterdir() if path.suffix != ".damaged")
    newest = max(path for path in entries if parse_step(path.name) is not None)
    named: Sequence[tuple[str, Path]] = [
        ("metrics", folder / "metrics.jsonl"),
        *(("finished", path) for path in folder.glob("finished.json")),
        *((f"checkpoint/{path.name}", path) for path in newest.iterdir()),
        *((f"{name}/{path.name}", path) for name in PUBLISHED for path in (folder / name).glob("*")),
    ]
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in named}
    return hashes | {"checkpoints": " ".join(path.name for path in entries)}


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Read the lines of metrics.jsonl."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().split("\n") if line]


SHORT_RUN: dict[str, Any] = {"train.steps": 4, "train.save_every": 2, "validation.every_steps": 2, "train.average": 2}


def run_to_end(
    folder: Path, changes: dict[str, Any] | None = None, task: str = "translation"
) -> tuple[Path, list[Event]]:
    """Train a short run to its end; return it with its events."""
    events: list[Event] = []
    run = make_small_run(task, write_corpus(folder / "corpus"), SHORT_RUN | (changes or {}))
    fit(run, folder / "run", listeners=[events.append])
    return folder / "run", events


def select_events(events: list[Event], event_type: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, event_type)]


FinishedRun = tuple[Path, list[Event]]


def make_prompt_run(
    folder: Path, prompts: list[str], responses: list[str], changes: dict[str, Any] | None = None
) -> RunConfig:
    """Write the corpus, its first lines also as validation, and return a small run."""
    table: dict[str, Any] = {"data": {"batch_tokens": 128, "max_length": 32}}
    for part, rows in (("train", slice(None)), ("validation", slice(0, 20))):
        for name, lines in (("prompts", prompts), ("responses", responses)):
            (folder / f"{part}.{name}").write_text("".join(f"{line}\n" for line in lines[rows]))
        files = {"source": str(folder / f"{part}.prompts"), "target": str(folder / f"{part}.responses")}
        table["data"][part] = [{"kind": "lines", **files}]
    table |= {
        "tokenizer": {"kind": "word", "vocabulary": 64},
        "model": {"preset": "lm-small", "d_model": 16, "tokens.vocabulary": 64},
        "train": {"steps": 4, "step_tokens": 128, "schedule": {"kind": "constant", "lr": 0.01}},
        "device": {"name": "cpu", "threads": 1},
    }
    return RUN_FILES.parse(table, {"model.decoder.layers": 1, "model.decoder.attention.heads": 2, **(changes or {})})


def read_data(run: RunConfig, folder: Path, events: list[Event] | None = None) -> RunData:
    folder.mkdir(exist_ok=True)
    return prepare_data(run, RunFolder(folder), (lambda _: None) if events is None else events.append)


def write_folders(folder: Path, count: int = 80) -> Path:
    """Write the images of `write_images` as PNG files in one folder per label."""
    write_images(folder / "images-idx3-ubyte", count)
    source = ImagesConfig(path=str(folder / "images-idx3-ubyte"), labels=str(folder / "labels-idx1-ubyte"))
    for example in read(source, Defects()):
        assert example.image is not None
        path = folder / "png" / f"class {example.label}" / f"{example.location.line}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Pillow.frombytes("L", (8, 8), example.image.pixels).save(path)
    return folder / "png"


def make_audio_run(folder: Path, changes: dict[str, Any] | None = None, task: str = "audio") -> RunConfig:
    return make_small_run(task, write_corpus(folder, 60), changes)
