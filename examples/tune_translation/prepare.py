"""Write Europarl in the form of Multi30k's `tok/` files: normalized, lower-cased, tokenized as Moses does.

    python examples/tune_translation/prepare.py --europarl DATA/europarl_deen --multi30k DATA/multi30k/tok --out OUT

OUT gets `europarl/` (the first pairs of the training part, which is in random order) and `multi30k/`, with train, valid
and test as .en and .de. It needs sacremoses.
"""

import argparse
import gzip
from itertools import islice
from pathlib import Path

from sacremoses import MosesPunctNormalizer, MosesTokenizer

LANGUAGES = ("en", "de")
PAIRS = 200_000  # more than the run reads
SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}  # names here, and in Multi30k


def main() -> None:
    """Write both corpora."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--europarl", type=Path, required=True, help="folder of {train,valid,test}.{en,de}.gz")
    parser.add_argument("--multi30k", type=Path, required=True, help="folder of the lower-cased, tokenized files")
    parser.add_argument("--out", type=Path, required=True, help="folder of the new files")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="number of training pairs of Europarl")
    options = parser.parse_args()
    for split, name in SPLITS.items():
        for language in LANGUAGES:
            with gzip.open(options.europarl / f"{split}.{language}.gz", "rt", encoding="utf-8") as file:
                lines = [line.rstrip("\n") for line in islice(file, options.pairs)]
            write_lines(options.out / "europarl" / f"{split}.{language}", tokenize(lines, language))
            path = options.multi30k / f"{name}.lc.norm.tok.{language}.gz"
            lines = gzip.decompress(path.read_bytes()).decode().removesuffix("\n").split("\n")
            write_lines(options.out / "multi30k" / f"{split}.{language}", lines)


def tokenize(lines: list[str], language: str) -> list[str]:
    """Normalize punctuation, tokenize with escapes (&apos;) and lower-case, as the files of Multi30k were made."""
    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
    return [tokenizer.tokenize(normalizer.normalize(line), return_str=True).lower() for line in lines]


def write_lines(path: Path, lines: list[str]) -> None:
    """Write one line for each text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
