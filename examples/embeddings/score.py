"""Retrieve translations by their embeddings: retrieval@1 of a model on the test pairs, and what it retrieved.

    python examples/embeddings/score.py MODEL --data DATA --output nearest.txt.gz
    python examples/embeddings/score.py --data DATA --again nearest.txt.gz

DATA holds test.en.gz and test.de.gz. A line of the output has two line numbers (from 1): the German sentence that is
nearest to English sentence n, and the English sentence that is nearest to German sentence n. `--again` scores such a
file.
"""

import argparse
import gzip
from pathlib import Path

import numpy as np

import regard


def main() -> None:
    """Embed both sides, write the nearest lines, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", help="model folder or run folder")
    parser.add_argument("--data", type=Path, required=True, help="folder with test.en.gz and test.de.gz")
    parser.add_argument("--output", type=Path, help="file of the nearest lines, .gz")
    parser.add_argument("--again", type=Path, help="score this file instead of a model")
    options = parser.parse_args()
    sides = [read_lines(options.data / f"test.{language}.gz") for language in ("en", "de")]
    if options.again:
        nearest = np.array([[int(n) - 1 for n in line.split()] for line in read_lines(options.again)]).T
    else:
        embedder = regard.load_embedder(options.model)
        first, second = (normalize(embedder.embed(lines)) for lines in sides)
        nearest = np.stack([(first @ second.T).argmax(axis=1), (second @ first.T).argmax(axis=1)])
    if options.output:
        text = "".join(f"{german + 1} {english + 1}\n" for german, english in nearest.T)
        options.output.write_bytes(gzip.compress(text.encode(), mtime=0))
    # a sentence that occurs twice is as right as its twin
    found = [[side[n] == side[i] for i, n in enumerate(row)] for side, row in zip(sides[::-1], nearest, strict=True)]
    shares = [100 * sum(row) / len(row) for row in found]
    mean = sum(shares) / 2
    print(f"retrieval@1: English to German {shares[0]:.2f}, German to English {shares[1]:.2f}, mean {mean:.2f}")


def normalize(vectors: np.ndarray) -> np.ndarray:
    """Return vectors of length 1."""
    array = np.asarray(vectors)
    return array / np.linalg.norm(array, axis=1, keepdims=True)


def read_lines(path: Path) -> list[str]:
    """Read the lines of a compressed file."""
    return gzip.decompress(path.read_bytes()).decode().removesuffix("\n").split("\n")


if __name__ == "__main__":
    main()
