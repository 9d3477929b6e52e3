"""A question about one word of a model's output, and the log-odds of the word.

The word is judged after the prefix that the model itself wrote before it. Log-odds change steadily where the output
flips or stays by chance: a training run that differs in one batch already flips up to 43 % of a model's natural errors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from regard.base.errors import RegardError
from regard.tasks.capabilities import Translates
from regard.tasks.load import AnyPipeline
from regard.tasks.scorer import Scorer
from regard.tasks.teacher_forcing import Row
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class WordQuestion:
    """Which training samples taught the model this word?"""

    source: str
    """The source, or the text of a language model."""
    word: str
    output: str
    """The text that contains the word."""
    row: Row
    """The text up to the word; its new labels are the word."""


def ask(
    pipeline: AnyPipeline, source: str, word: str, target_language: str | None = None, output: str | None = None
) -> WordQuestion:
    """Find the word in the model's output: in its translation of the source, or in the text of a language model.

    Args:
        pipeline: The model.
        source: The source, or a text that the language model wrote, with its prompt.
        word: The word.
        target_language: Language of the translation (multilingual models).
        output: The translation that contains the word; without it the model translates.

    Raises:
        RegardError: The output does not contain the word.
    """
    scorer = pipeline.make_scorer(1.0)
    if output is not None:
        rows = scorer.make_rows([output], [source], target_language=target_language)
    elif isinstance(pipeline, Translates):
        translation = pipeline.translate(source, target_language=target_language)
        output, tokens = translation.text, list(translation.tokens)
        (row,) = scorer.make_rows([output], [source], target_language=target_language)
        rows = [replace(row, inputs=[*row.inputs[:1], *tokens[:-1]], labels=tokens)]  # the model's own tokens
    else:
        output, rows = source, scorer.make_rows([source])
    for row in rows:
        if (span := find_word(row.labels, scorer.tokenizers.target, word)) is not None:
            start, end = span
            row = replace(row, inputs=row.inputs[:end], labels=row.labels[:end], overlap=start)
            return WordQuestion(source, word, output, row)
    raise RegardError(
        f"The {'translation' if scorer.reads_sources else 'text'} does not contain '{word}': {output}",
        hint="Choose a word of it, spelled the same way.",
    )


def find_word(tokens: Sequence[int], tokenizer: Tokenizer, word: str) -> tuple[int, int] | None:
    """Return where the tokens of a word start and end; whole words first, then the shortest span that contains it."""
    count, inside = len(tokens), tokenizer.token_bytes.begins_inside
    contains = None
    for size, start in product(range(1, count + 1), range(count)):
        if (end := start + size) > count:
            continue
        text = tokenizer.decode(tokens[start:end]).strip()
        begins, ends = start == 0 or not inside[tokens[start]], end == count or not inside[tokens[end]]
        if text == word.strip() and begins and ends:
            return start, end
        if contains is None and word.strip() in text:
            contains = start, end
    return contains


def compute_log_odds(scorer: Scorer, questions: Sequence[WordQuestion]) -> list[float]:
    """Return the log-odds of each word after its prefix: log p - log(1 - p) of all its tokens."""
    scores = scorer.score_rows([replace(question.row, text_index=n) for n, question in enumerate(questions)])
    return [to_log_odds(sum(logprobs)) for logprobs in scores]


def to_log_odds(logprob: float) -> float:
    """Convert a log-probability.

    >>> to_log_odds(math.log(0.5)), round(to_log_odds(math.log(0.9)), 3)
    (0.0, 2.197)
    """
    return logprob - math.log(max(-math.expm1(logprob), 1e-12))
