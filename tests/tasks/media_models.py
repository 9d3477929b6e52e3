"""Small untrained models of images and audio clips as folders, and files for them."""

import struct
import wave
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from regard.config import codec
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.tasks.factories import make_tokenizer, make_tokenizers, perturb

RATE = 8000
_STACK = {"layers": 2, "attention.heads": 2, "feedforward.d_ff": 32}
_ENCODER = {"d_model": 16, **{f"encoder.{name}": value for name, value in _STACK.items()}}
_DECODER = {f"decoder.{name}": value for name, value in _STACK.items()} | {"decoder.cross.heads": 2}
_AUDIO = {"source.bins": 8, "source.rate": RATE}


def write_image_model(folder: Path, *, fill: float | None = None, **changes: Any) -> Path:
    """Write a model that labels gray images of 8 x 12 pixels, 2 x 3 patches, as a, b or c.

    Args:
        folder: Where to write it.
        fill: Value of the head's last parameter.
        changes: Changed settings.
    """
    sizes = {"source.size": [8, 12], "encoder.position.length": 7, "head.labels": ["a", "b", "c"]}
    return _write(folder, "vit", _ENCODER | sizes | changes, fill)


def write_audio_model(folder: Path, *, fill: float | None = None, **changes: Any) -> Path:
    """Write a model that labels audio clips of 8,000 samples per second as high or low."""
    return _write(folder, "audio-encoder", _ENCODER | _AUDIO | {"head.labels": ["high", "low"]} | changes, fill)


def write_transcription_model(folder: Path, *, fill: float | None = None, **changes: Any) -> Path:
    """Write a model that transcribes audio clips of 8,000 samples per second."""
    sizes = _ENCODER | _DECODER | _AUDIO | {"target.vocabulary": make_tokenizer().size}
    return _write(folder, "speech-to-text", sizes | changes, fill)


def write_captioning_model(folder: Path, *, fill: float | None = None, **changes: Any) -> Path:
    """Write a model that captions gray images of 8 x 12 pixels, 2 x 3 patches."""
    sizes = {"source.size": [8, 12], "encoder.position.length": 6, "target.vocabulary": make_tokenizer().size}
    return _write(folder, "image-to-text", _ENCODER | _DECODER | sizes | changes, fill)


def _write(folder: Path, preset: str, changes: dict[str, Any], fill: float | None) -> Path:
    settings = codec.preset(preset, changes)
    tokenizers = None if settings.family == "encoder_only" else make_tokenizers()
    model = perturb(build(settings, seed=1), 1)
    if fill is not None:
        list(model.head.parameters())[-1].data.fill_(fill)
    write_model(folder, settings, tokenizers, get_weights(model), "card")
    return folder


def make_png(seed: int = 1, size: tuple[int, int] = (8, 12)) -> bytes:
    """Return a gray image of random pixels as a PNG file."""
    pixels = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    Image.fromarray(pixels).save(buffer := BytesIO(), "PNG")
    return buffer.getvalue()


def make_wav(seed: int = 1, seconds: float = 0.3, *, rate: int = RATE, channels: int = 1) -> bytes:
    """Return random samples as a .wav file."""
    count = round(seconds * rate) * channels
    samples = np.random.default_rng(seed).normal(0, 3000, count).astype("<i2")
    with wave.open(buffer := BytesIO(), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    return buffer.getvalue()


def make_huge_png(side: int = 100_000) -> bytes:
    """Return a PNG file whose header claims `side` x `side` pixels."""
    png = bytearray(make_png())
    png[16:24] = struct.pack(">II", side, side)
    png[29:33] = struct.pack(">I", zlib.crc32(png[12:29]))
    return bytes(png)


def make_huge_wav() -> bytes:
    """Return a .wav file of 44 bytes whose header claims 4 GB."""
    form = struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)
    data = b"data" + struct.pack("<I", 0xFFFFFFFE)
    return b"RIFF" + struct.pack("<I", 0xFFFFFFFF) + b"WAVEfmt " + struct.pack("<I", 16) + form + data
