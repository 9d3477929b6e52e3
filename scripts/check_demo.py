"""Count the acceptable translations of what people type first into the model of `regard demo`.

    python scripts/check_demo.py regard-demo/model

demo_inputs.tsv has 40 inputs for choosing data and settings ("validation") and 40 to report ("test"): greetings, single
words, capitals, questions, no final mark. Each has its acceptable translations; case and punctuation are ignored.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import regard

INPUTS = Path(__file__).parent / "demo_inputs.tsv"


def main() -> None:
    """Print the share of each list and the wrong translations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="model or run folder")
    translator = regard.load(parser.parse_args().model, task="translation")
    rows = [line.split("\t") for line in INPUTS.read_text(encoding="utf-8").splitlines()]
    for name in ("validation", "test"):
        sources = [source for split, source, _ in rows if split == name]
        accepted = [texts.split("|") for split, _, texts in rows if split == name]
        outputs = [translation.text for translation in translator.translate(sources)]
        wrong = find_wrong(outputs, accepted)
        sys.stdout.write(f"{name}: {len(sources) - len(wrong)} of {len(sources)} acceptable\n")
        for index in wrong:
            sys.stdout.write(f"    {sources[index]:<32} {outputs[index]}\n")


def find_wrong(outputs: Sequence[str], accepted: Sequence[Sequence[str]]) -> list[int]:
    """Return the indices of the outputs that are not among their acceptable texts.

    >>> find_wrong(["Guten Morgen!", "Hallo Haus."], [["guten morgen"], ["hallo"]])
    [1]
    """
    return [
        index
        for index, (output, texts) in enumerate(zip(outputs, accepted, strict=True))
        if fold(output) not in set(map(fold, texts))
    ]


def fold(text: str) -> str:
    """Return the lower-case words of a text."""
    return " ".join(re.findall(r"[\w']+", text.lower().replace("\u2019", "'")))


if __name__ == "__main__":
    main()
