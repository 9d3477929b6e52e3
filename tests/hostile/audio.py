"""Audio files with headers that lie, and models that would compute enormous spectrograms."""

import struct
from pathlib import Path

from tests.hostile.attack import attack
from tests.hostile.doors import Place


def _make_header(size: int, channels: int = 1, bits: int = 16) -> bytes:
    frame = channels * bits // 8 & 0xFFFF
    form = struct.pack("<HHIIHH", 1, channels, 8000, 8000 * frame & 0xFFFFFFFF, frame, bits)
    parts = b"WAVE" + b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", size)
    return b"RIFF" + struct.pack("<I", min(36 + size, 0xFFFFFFFF)) + parts


@attack("corpus", "declares 2,147,483,647 samples")
def endless_wav(place: Place) -> Path:
    """A .wav file of 44 bytes whose header claims 4 GB."""
    path = place.folder / "huge.wav"
    path.write_bytes(_make_header(0xFFFFFFFE))
    return path


@attack("corpus", "MiB")
def sparse_wav(place: Place) -> Path:
    """A .wav file of 8 GB that takes no space on disk."""
    path = place.folder / "sparse.wav"
    with path.open("wb") as file:
        file.write(_make_header(0xFFFFFFFE))
        file.truncate(8 << 30)
    return path


@attack("corpus", "65535 channels|65,535 channels|cannot be read")
def many_channels(place: Place) -> Path:
    """A .wav file of 65,535 channels."""
    path = place.folder / "channels.wav"
    path.write_bytes(_make_header(0xFFFFFFFE, channels=0xFFFF) + bytes(1 << 20))
    return path


@attack("read_model", "rate")
def model_of_enormous_frames(place: Place) -> None:
    """A model of audio clips of 10^12 samples per second: every frame would be computed from billions of them."""
    (place.folder / "model.toml").write_text(
        'format = 1\nd_model = 8\nfamily = "encoder_only"\ntask = "audio_classification"\n'
        'source = {kind = "mel", bins = 80, window = 1.0, rate = 1000000000000}\n'
        'head = {kind = "classes", labels = ["a", "b"]}\n'
        '[encoder]\nlayers = 1\nnorm_order = "pre"\nfinal_norm = true\nposition = {kind = "none"}\n'
        'attention = {heads = 1}\nfeedforward = {kind = "plain", d_ff = 8}\n'
    )
    place.write_manifest()
