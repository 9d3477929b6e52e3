"""Write tables of the Free Spoken Digit Dataset: 3,000 recordings of ten digits by six speakers.

    python examples/fsdd/prepare.py recordings OUT

The recordings (digit_speaker_index.wav, 8,000 samples per second) stay where they are. `official`: the indices 0 to 4
of each speaker and digit are test recordings, 5 to 49 training recordings. `theo`: the speaker theo is the test, the
other five speakers train. Tables with `words` have the word that is spoken instead of the digit.
"""

import argparse
import os
from pathlib import Path

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SPEAKER = "theo"
TEST_INDICES = range(5)


def write_table(path: Path, files: list[Path], *, words: bool = False) -> None:
    """Write a table of recordings and what is spoken in them."""
    lines = ["file\ttext" if words else "file\tlabel"]
    for file in files:
        digit = int(file.stem.split("_")[0])
        lines.append(f"{os.path.relpath(file, path.parent)}\t{WORDS[digit] if words else digit}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{path}: {len(files):,} recordings")


def main() -> None:
    """Write the tables of both splits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", type=Path, help="the folder of .wav files")
    parser.add_argument("out", type=Path, help="the folder of the tables")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    files = sorted(arguments.recordings.glob("*_*_*.wav"))
    splits: dict[str, list[Path]] = {}
    for file in files:
        _, speaker, index = file.stem.split("_")
        part = "test" if int(index) in TEST_INDICES else "train"
        splits.setdefault(f"official-{part}", []).append(file)
        splits.setdefault(f"{SPEAKER}-{'test' if speaker == SPEAKER else 'train'}", []).append(file)
    for name, split in splits.items():
        write_table(arguments.out / f"{name}.tsv", split)
        write_table(arguments.out / f"words-{name}.tsv", split, words=True)


if __name__ == "__main__":
    main()
