"""Write the images of Fashion-MNIST as PNG files in a folder per label: python docs/gallery/fashion.py IDX_FILE OUT."""

import gzip
import sys
from pathlib import Path

import numpy as np
from PIL import Image

LABELS = (
    "T-shirt", "Trousers", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip


def write(images: Path, out: Path) -> None:
    """Write OUT/LABEL/NUMBER.png; the labels are next to the images, as labels-idx1."""
    numbers = images.with_name(images.name.replace("images-idx3", "labels-idx1"))
    pixels = np.frombuffer(gzip.decompress(images.read_bytes())[16:], np.uint8).reshape(-1, 28, 28)
    labels = np.frombuffer(gzip.decompress(numbers.read_bytes())[8:], np.uint8)
    for name in LABELS:
        (out / name).mkdir(parents=True, exist_ok=True)
    for number, (image, label) in enumerate(zip(pixels, labels, strict=True)):
        Image.fromarray(image).save(out / LABELS[label] / f"{number}.png")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
