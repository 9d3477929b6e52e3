"""Two baselines without a network: naive Bayes for classes, the most frequent tag of each word for tags.

    python examples/labels/baselines.py TRAIN TEST > predictions
    regard evaluate --hypotheses predictions --data TEST

A table with a label column gets naive Bayes, a CoNLL file the most frequent tags. Nothing is tuned.
"""

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from regard.data.corpus import Corpus, detect_source
from regard.data.example import Defects, Example


def read_examples(path: str) -> list[Example]:
    """Read a corpus file as `regard train --data` does."""
    return [example for _, example in Corpus([detect_source([path])]).examples(Defects())]


def classify_by_naive_bayes(train: Sequence[Example], test: Sequence[Example]) -> Iterator[str]:
    """Multinomial naive Bayes over the set of words of a text, with add-one smoothing.

    label = argmax_y log p(y) + sum_w log (count(w, y) + 1) / (count(y) + V), over words w that occur in training
    """
    texts: Counter[str] = Counter()
    words: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example in train:
        label = example.label or ""
        texts[label] += 1
        words[label].update(set(example.source.split()))
    vocabulary = set().union(*words.values())
    totals = {label: sum(counts.values()) + len(vocabulary) for label, counts in words.items()}
    for example in test:
        known_words = vocabulary.intersection(example.source.split())
        scores = {
            label: math.log(texts[label]) + sum(math.log((counts[word] + 1) / totals[label]) for word in known_words)
            for label, counts in words.items()
        }
        yield max(scores, key=scores.__getitem__)


def tag_by_frequency(train: Sequence[Example], test: Sequence[Example]) -> Iterator[str]:
    """The most frequent tag of each word in training.

    An unknown word gets the most frequent tag of the words that occur once and begin with the same kind of character.
    """
    tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example in train:
        for word, tag in zip(example.source.split(" "), example.tags or (), strict=True):
            tags[word][tag] += 1
    rare_tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, counts in tags.items():
        if counts.total() == 1:
            rare_tags[_first_kind(word)] += counts
    best = {word: counts.most_common(1)[0][0] for word, counts in tags.items()}
    default = {kind: counts.most_common(1)[0][0] for kind, counts in rare_tags.items()}
    for example in test:
        yield " ".join(best.get(word) or default[_first_kind(word)] for word in example.source.split(" "))


def _first_kind(word: str) -> str:
    kinds = (("upper case", str.isupper), ("lower case", str.islower), ("digit", str.isdigit))
    return next((name for name, is_kind in kinds if is_kind(word[0])), "symbol")


def main() -> None:
    """Print the predictions for TEST, one text per line."""
    train, test = map(read_examples, sys.argv[1:3])
    predict = classify_by_naive_bayes if test[0].tags is None else tag_by_frequency
    for prediction in predict(train, test):
        print(prediction)


if __name__ == "__main__":
    main()
