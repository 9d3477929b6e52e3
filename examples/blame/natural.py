"""Write questions about naturally wrong words of a model that `regard demo` trained, for `regard blame --input`.

    regard demo --out demo
    python -m examples.blame.natural demo/model > questions.tsv
    regard blame demo/model --input questions.tsv --prove --json > natural.jsonl

A word is asked about if the reference lacks it, the model gives it a probability of at least 0.5, and it has at least
four characters; the first such word of each test sentence, until there are 20. Some are correct: the reference uses
another word.
"""

import sys
from itertools import islice

from examples.blame.run import find_natural_errors, read_pairs

import regard

QUESTIONS = 20


def main() -> None:
    """Print a source, a tab and a word per line."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    translator = regard.load_translator(sys.argv[1])
    for question in islice(find_natural_errors(translator, read_pairs("test")), QUESTIONS):
        print(question.source, question.word, sep="\t")


if __name__ == "__main__":
    main()
