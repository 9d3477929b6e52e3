"""How different texts are: distinct n-grams, and how much texts of one group repeat each other."""

from collections.abc import Sequence

from regard.base.errors import RegardError
from regard.measure.score import Score


def distinct(texts: Sequence[str], size: int = 2) -> Score:
    """Different n-grams of words among all of them, in percent (distinct-n, Li et al. 2016).

    >>> distinct(["a b a b"], 1).value, distinct(["a b", "a b", "c d"], 2).value.__round__(1)
    (50.0, 66.7)
    """
    _check_is_list(texts)
    grams = [gram for text in texts for gram in ngrams(text, size)]
    if not grams:
        raise RegardError(f"No text has {size} words.", fix="Use longer texts, or a smaller size.")
    return Score(100.0 * len(set(grams)) / len(grams), f"distinct|order:{size}|tok:space|n:{len(texts)}")


def self_bleu(groups: Sequence[Sequence[str]]) -> Score:
    """How much the texts of a group share: each one's BLEU with the others as references, all averaged.

    A group is what a model wrote for one source (Zhu et al. 2018). 100: always the same text.

    >>> self_bleu([["a b c d", "a b c d"], ["a b c d", "e f g h"]]).value
    50.0
    """
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(effective_order=True, force=True)  # single sentences may have no 4-grams
    values = []
    for number, group in enumerate(groups, 1):
        _check_is_list(group)
        if len(group) < 2:
            raise RegardError(f"Group {number} has only {len(group)} text.", fix="Write two or more for each source.")
        for i, text in enumerate(group):
            references = [*group[:i], *group[i + 1 :]]
            values.append(min(metric.sentence_score(text, references).score, 100.0))
    if not values:
        raise RegardError("There is nothing to measure.", fix="Give a group of texts for each source.")
    return Score(sum(values) / len(values), f"self_bleu|{metric.get_signature()}|n:{len(values)}")


def max_ngram_count(text: str, size: int) -> int:
    """How often the commonest n-gram of words occurs; 0 if the text is shorter than that.

    >>> max_ngram_count("no no no yes", 1), max_ngram_count("no no no yes", 2), max_ngram_count("no", 2)
    (3, 2, 0)
    """
    counts: dict[tuple[str, ...], int] = {}
    for gram in ngrams(text, size):
        counts[gram] = counts.get(gram, 0) + 1
    return max(counts.values(), default=0)


def ngrams(text: str, size: int) -> list[tuple[str, ...]]:
    """All n-grams of words, in their order."""
    if size < 1:
        raise RegardError(f"There are no {size}-grams.", fix="Use a size of 1 or more.")
    words = text.split()
    return [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]


def _check_is_list(texts: Sequence[str]) -> None:
    if isinstance(texts, str):
        raise RegardError("One text was given, where a list is expected.", fix="Put it into a list.")
