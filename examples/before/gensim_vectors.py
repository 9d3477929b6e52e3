"""Train gensim's word2vec on the text of the part `vectors`, and solve the same analogies.

    pip install gensim
    python examples/before/gensim_vectors.py --data path/to/data

The same text, vocabulary, width and window. gensim samples five wrong words for each right one instead of a softmax
over all words, and reads the text five times.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from gensim.models import KeyedVectors, Word2Vec

HERE = Path(__file__).parent.resolve()
sys.path.insert(0, str(HERE.parents[1]))

from examples.before.options import Options  # noqa: E402
from examples.before.report import format_table  # noqa: E402
from examples.before.vectors import Pair, list_analogies, read_analogies, split_words, summarize_ranks  # noqa: E402

TASKS = {"cbow": 0, "skip_gram": 1}  # gensim's number of each
ROW = 1000  # words that gensim takes as a sentence; windows do not cross its ends


def find_ranks(vectors: KeyedVectors, pairs: list[Pair]) -> list[int]:
    """Return the rank of the right word for every analogy, by gensim's own search."""
    ranks = []
    for a, b, c, d in list_analogies(pairs):
        nearest = vectors.most_similar(positive=[b, c], negative=[a], topn=len(vectors))
        ranks.append(1 + [word for word, _ in nearest].index(d))
    return ranks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with books_en/train.txt(.gz)")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="what to train")
    options = parser.parse_args()
    words = split_words(Options(options.data, HERE).read_text("books_en/train.txt"))
    analogies = read_analogies(HERE / "analogies.tsv", Counter(words))
    rows = [words[start : start + ROW] for start in range(0, len(words), ROW)]
    table = []
    for name in options.tasks:
        start = time.process_time()
        model = Word2Vec(
            rows,
            vector_size=100,
            window=5,
            max_final_vocab=12_000,
            sg=TASKS[name],
            negative=5,
            epochs=5,
            workers=1,
            seed=1,
        )
        seconds = time.process_time() - start
        ranks = {category: find_ranks(model.wv, pairs) for category, pairs in analogies.items()}
        everything = [rank for category in ranks.values() for rank in category]
        table += [[f"{name}, {category}", *summarize_ranks(values)] for category, values in ranks.items()]
        table.append([f"{name}, all", *summarize_ranks(everything)])
        (rome,) = find_ranks(model.wv, [("France", "Paris"), ("Italy", "Rome")])[:1]
        print(f"{name}: {seconds:.0f} CPU-seconds; Paris - France + Italy has Rome at rank {rome} of {len(model.wv):,}")
    print("\n".join(format_table(["task, category", "analogies", "first", "first ten", "median rank"], table)))


if __name__ == "__main__":
    main()
