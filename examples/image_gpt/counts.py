"""The baselines: bits per pixel of test images under three models that count.

    python examples/image_gpt/counts.py train10k-images-idx3-ubyte.gz t10k-images-idx3-ubyte.gz --side 14

- uniform: all grays are equally probable;
- histogram: the grays of the training images at the same place;
- neighbors: the grays that follow the same left, upper and upper left pixel anywhere in the training images.

Grays are those of the model: the centers of k-means over the training images. What is added to every count is chosen on
the last tenth of the training images.
"""

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from regard.config.tokenizers import CodebookConfig
from regard.data.codebook import Codebook, ColorCounter, learn_codebook
from regard.data.example import Defects
from regard.data.readers import read
from regard.data.readers.detect import make_image_source

Codes = NDArray[np.int64]  # (N, height, width), numbers of grays
SMOOTHING = (0.03, 0.1, 0.3, 1.0, 3.0)


def load(path: str, side: int) -> NDArray[np.uint8]:
    """Return the pixels (N, side, side) of gray images, scaled as `regard train --images` does."""
    source = make_image_source(path).model_copy(update={"size": (side, side), "channels": 1})
    pixels = b"".join(example.image.pixels for example in read(source, Defects()) if example.image)
    return np.frombuffer(pixels, np.uint8).reshape(-1, side, side)


def quantize(train: NDArray[np.uint8], images: NDArray[np.uint8], grays: int) -> Codes:
    """Return the number of the nearest gray of each pixel."""
    counter = ColorCounter()
    counter.add(train[None])
    codebook = Codebook(learn_codebook(counter.find_colors(grays), (), CodebookConfig()))
    tokens = codebook.encode(images[:, None]).reshape(images.shape)
    return np.searchsorted(np.sort(codebook.tokens), tokens)


def find_places(codes: Codes, grays: int) -> Codes:  # noqa: ARG001
    """Return the place of each pixel: the context of the histogram."""
    count, height, width = codes.shape
    return np.broadcast_to(np.arange(height * width).reshape(height, width), (count, height, width))


def find_neighbors(codes: Codes, grays: int) -> Codes:
    """Return the left, upper and upper left pixel as one number; `grays` stands for a place outside the image."""
    padded = np.pad(codes, ((0, 0), (1, 0), (1, 0)), constant_values=grays)
    left, upper, corner = padded[:, 1:, :-1], padded[:, :-1, 1:], padded[:, :-1, :-1]
    return (left * (grays + 1) + upper) * (grays + 1) + corner


def bits_per_pixel(
    train: Codes, test: Codes, grays: int, find_contexts: Callable[[Codes, int], Codes], smoothing: float
) -> float:
    """Return the mean of -log2 of the share of each test pixel among the training pixels with its context."""
    contexts, test_contexts = find_contexts(train, grays), find_contexts(test, grays)
    size = 1 + max(int(contexts.max()), int(test_contexts.max()))
    counts = np.bincount((contexts * grays + train).ravel(), minlength=size * grays).reshape(size, grays) + smoothing
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(-np.log2(shares[test_contexts, test]).mean())


def main() -> None:
    """Print the bits per pixel of the three models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", help="idx file of training images")
    parser.add_argument("test", help="idx file of test images")
    parser.add_argument("--side", type=int, default=28, help="pixels of a side (default 28)")
    parser.add_argument("--grays", type=int, default=16, help="number of grays (default 16)")
    arguments = parser.parse_args()
    grays, pixels = arguments.grays, load(arguments.train, arguments.side)
    train, test = (quantize(pixels, part, grays) for part in (pixels, load(arguments.test, arguments.side)))
    print(f"uniform: {np.log2(grays):.3f}")
    cut = len(train) * 9 // 10
    for name, find_contexts in (("histogram", find_places), ("neighbors", find_neighbors)):
        tried = [bits_per_pixel(train[:cut], train[cut:], grays, find_contexts, value) for value in SMOOTHING]
        smoothing = SMOOTHING[int(np.argmin(tried))]
        bits = bits_per_pixel(train, test, grays, find_contexts, smoothing)
        print(f"{name}: {bits:.3f} bits per pixel of {len(test):,} test images ({smoothing:g} added to every count)")


if __name__ == "__main__":
    main()
