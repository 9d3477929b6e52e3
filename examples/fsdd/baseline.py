"""The baseline: the nearest training recording by mean and deviation of every mel bin over time.

    python examples/fsdd/baseline.py official-train.tsv official-test.tsv [--output labels.txt]

The features are normalized with the training part. Also a linear classifier on the same features, by ridge regression
on one-hot labels.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.config.inputs import MelConfig
from regard.data.example import Defects
from regard.data.mel import log_mel
from regard.data.readers import read
from regard.data.readers.detect import make_audio_source

BINS = 40
RIDGE = 10.0


def load(path: str) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Return the features of each recording (N, 2 bins), and the labels (N)."""
    features, labels = [], []
    for example in read(make_audio_source(path, "audio_classification"), Defects()):
        if example.audio is not None:
            mel = MelConfig(bins=BINS, rate=example.audio.rate)
            frames = log_mel(np.frombuffer(example.audio.samples, "<i2"), mel)
            features.append(np.concatenate((frames.mean(axis=0), frames.std(axis=0))))
            labels.append(example.label or "")
    return np.array(features, np.float64), np.array(labels)


def find_nearest(train: NDArray[np.float64], labels: NDArray[np.str_], test: NDArray[np.float64]) -> NDArray[np.str_]:
    """Return the label of the nearest training recording of each test recording."""
    distances = (train**2).sum(axis=1) - 2 * test @ train.T
    return labels[distances.argmin(axis=1)]


def classify_linearly(
    train: NDArray[np.float64], labels: NDArray[np.str_], test: NDArray[np.float64]
) -> NDArray[np.str_]:
    """Return the labels of a linear classifier: ridge regression on one-hot labels."""
    names = np.unique(labels)
    train, test = (np.concatenate((side, np.ones((len(side), 1))), axis=1) for side in (train, test))
    weights = np.linalg.solve(
        train.T @ train + RIDGE * np.eye(train.shape[1]), train.T @ (labels[:, None] == names[None]).astype(float)
    )
    return names[(test @ weights).argmax(axis=1)]


def main() -> None:
    """Print the accuracies and the CPU time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", help="table of training recordings")
    parser.add_argument("test", help="table of test recordings")
    parser.add_argument("--output", type=Path, help="write the labels of the nearest recordings")
    arguments = parser.parse_args()
    started = time.process_time()
    (train, labels), (test, expected) = load(arguments.train), load(arguments.test)
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    train, test = (train - mean) / deviation, (test - mean) / deviation
    predictions = {
        "nearest recording": find_nearest(train, labels, test),
        "linear classifier": classify_linearly(train, labels, test),
    }
    for name, predicted in predictions.items():
        print(f"{name}: {(predicted == expected).mean():.2%} of {len(test):,} recordings")
    print(f"{time.process_time() - started:.0f} CPU-seconds")
    if arguments.output is not None:
        arguments.output.write_text("\n".join(predictions["nearest recording"].tolist()) + "\n")


if __name__ == "__main__":
    main()
