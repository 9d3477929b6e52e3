"""Text diversity: distinct n-grams, and similarity within groups of texts."""

from collections import Counter
from collections.abc import Sequence

from regard.base.errors import RegardError
from regard.measure.metric import Score, check_is_list


def distinct(texts: Sequence[str], size: int = 2) -> Score:
    """Compute distinct-n (Li et al. 2016): the percentage of distinct n-grams among all word n-grams.

    >>> distinct(["a b a b"], 1).value, distinct(["a b", "a b", "c d"], 2).value.__round__(1)
    (50.0, 66.7)
    """
    check_is_list(texts)
    grams = [gram for text in texts for gram in ngrams(text, size)]
    if not grams:
        raise RegardError(f"No text has {size} or more words.", hint="Use longer texts, or a smaller size.")
    return Score(100.0 * len(set(grams)) / len(grams), f"distinct|order:{size}|tok:space|n:{len(texts)}")


def self_bleu(groups: Sequence[Sequence[str]]) -> Score:
    """Compute self-BLEU (Zhu et al. 2018): the mean BLEU of each text with the others of its group as references.

    A group holds the outputs for one source. 100 means that all texts of each group are equal.

    >>> self_bleu([["a b c d", "a b c d"], ["a b c d", "e f g h"]]).value
    50.0
    """
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(effective_order=True, force=True)  # single sentences may have no 4-grams
    values = []
    for number, group in enumerate(groups, 1):
        check_is_list(group)
        if len(group) < 2:
            raise RegardError(f"Group {number} has fewer than 2 texts.", hint="Pass two or more texts per source.")
        for i, text in enumerate(group):
            references = [*group[:i], *group[i + 1 :]]
            values.append(min(metric.sentence_score(text, references).score, 100.0))
    if not values:
        raise RegardError("There are no texts to score.", hint="Pass a group of texts per source.")
    return Score(sum(values) / len(values), f"self_bleu|{metric.get_signature()}|n:{len(values)}")


def max_ngram_count(text: str, size: int) -> int:
    """Count the most frequent n-gram of words; 0 if the text is shorter than n words.

    >>> max_ngram_count("no no no yes", 1), max_ngram_count("no no no yes", 2), max_ngram_count("no", 2)
    (3, 2, 0)
    """
    return max(Counter(ngrams(text, size)).values(), default=0)


def ngrams(text: str, size: int) -> list[tuple[str, ...]]:
    """List the n-grams of words in order."""
    if size < 1:
        raise RegardError(f"size must be at least 1, got {size}.", hint="Use a size of 1 or more.")
    words = text.split()
    return [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
