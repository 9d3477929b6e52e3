"""The baseline: k nearest neighbors of the raw pixels, by squared distance; ties go to the label of the nearest image.

python examples/fashion_mnist/neighbors.py train10k-images-idx3-ubyte.gz t10k-images-idx3-ubyte.gz
"""

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from regard.data.example import Defects
from regard.data.readers import read
from regard.data.readers.detect import make_image_source


def load(path: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the pixels (N, values) from 0 to 1, and the labels (N)."""
    examples = list(read(make_image_source(path), Defects()))
    pixels = np.frombuffer(b"".join(example.image.pixels for example in examples if example.image), np.uint8)
    labels = np.array([int(example.label or -1) for example in examples])
    return pixels.reshape(len(examples), -1).astype(np.float32) / np.float32(255), labels


def predict(
    train: NDArray[np.float32], labels: NDArray[np.int64], test: NDArray[np.float32], k: int
) -> NDArray[np.int64]:
    """Return the most frequent label among the k nearest training images of each test image."""
    norms, predicted = (train**2).sum(axis=1), []
    for rows in np.array_split(test, max(1, len(test) // 500)):
        distances = norms - 2 * rows @ train.T  # the norm of the test image is the same for all neighbors
        nearest = np.argpartition(distances, k, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(distances, nearest, axis=1), axis=1)
        predicted += [_vote(votes) for votes in labels[np.take_along_axis(nearest, order, axis=1)].tolist()]
    return np.array(predicted)


def _vote(votes: list[int]) -> int:
    """Return the most frequent label; of equally frequent ones that of the nearest image."""
    return max(votes, key=lambda label: (votes.count(label), -votes.index(label)))


def main() -> None:
    """Print the accuracy and the CPU time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", help="idx file of training images")
    parser.add_argument("test", help="idx file of test images")
    parser.add_argument("--k", type=int, default=5, help="number of neighbors (default 5)")
    arguments = parser.parse_args()
    (train, labels), (test, expected) = load(arguments.train), load(arguments.test)
    started = time.process_time()
    accuracy = float((predict(train, labels, test, arguments.k) == expected).mean())
    seconds = time.process_time() - started
    print(f"{arguments.k} nearest neighbors: {accuracy:.2%} of {len(test):,} test images, {seconds:.0f} CPU-seconds")


if __name__ == "__main__":
    main()
