"""Image files and idx files with headers that lie."""

import struct
import zlib
from pathlib import Path

from tests.hostile.attack import attack
from tests.hostile.doors import Place


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


@attack("corpus", "pixels")
def enormous_image(place: Place) -> Path:
    """A PNG of 100 bytes whose header claims 100,000 x 100,000 pixels."""
    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    path = place.folder / "huge.png"
    data = _chunk(b"IDAT", zlib.compress(bytes(9))) + _chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + data)
    return path


@attack("corpus", "within record 2 of 4,000,000,000")
def endless_idx(place: Place) -> Path:
    """An idx file of one image whose header claims four billion."""
    path = place.folder / "train-images-idx3-ubyte"
    path.write_bytes(struct.pack(">HBBIII", 0, 8, 3, 4_000_000_000, 28, 28) + bytes(784))
    return path


@attack("read_model", "pixels")
def model_of_enormous_images(place: Place) -> None:
    """A model of images of a million times a million pixels: every image would be scaled up to it."""
    (place.folder / "model.toml").write_text(
        'format = 1\nd_model = 8\nfamily = "encoder_only"\ntask = "image_classification"\n'
        'source = {kind = "patches", patch = 4, size = [1000000, 1000000]}\n'
        'head = {kind = "classes", labels = ["a", "b"]}\n'
        '[encoder]\nlayers = 1\nnorm_order = "pre"\nfinal_norm = true\nposition = {kind = "none"}\n'
        'attention = {heads = 1}\nfeedforward = {kind = "plain", d_ff = 8}\n'
    )
    place.write_manifest()


@attack("read_model", "pixels")
def generator_of_enormous_images(place: Place) -> None:
    """A model that generates images of a million times a million pixels."""
    (place.folder / "model.toml").write_text(
        'format = 1\nd_model = 8\nfamily = "decoder_only"\ntask = "image_generation"\nstarts_with_bos = false\n'
        'tokens = {kind = "tokens", vocabulary = 20}\nraster = {size = [1000000, 1000000]}\n'
        '[decoder]\nlayers = 1\nnorm_order = "pre"\nfinal_norm = true\nposition = {kind = "none"}\n'
        'attention = {heads = 1}\nfeedforward = {kind = "plain", d_ff = 8}\n'
    )
    place.write_manifest()
