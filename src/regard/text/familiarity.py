"""Is an input like the training data? A bigram model of its tokens, and its length.

The language, the words and the spelling of a text all show in its tokens: a foreign language is cut into short tokens
that rarely follow each other. In 19 domains and languages, token bigrams found as many foreign sentences as character
5-grams, and they only need the token ids that the model reads anyway.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveInt

UNLIKE, LONG = "unlike the training data (language, words or spelling)", "longer than the training data"
ALARMS = frozenset({UNLIKE, LONG})
SMOOTHING = 20.0  # weight of the unigram distribution, in tokens
MIN_COUNT = 2  # rarer bigrams are not stored: they are most of the file and change little
SURPRISE_QUANTILE, LENGTH_QUANTILE = 0.97, 0.995  # of held-out texts; the others raise an alarm

Tokens = Sequence[int]


class Familiarity(BaseModel):
    """Token statistics of the training domain, with the limits of what is familiar."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vocabulary: PositiveInt
    tokens: dict[int, PositiveInt]
    """Count of each token."""
    bigrams: dict[int, dict[int, PositiveInt]]
    """Count of each pair of tokens that was found more than once; -1 is the beginning."""
    max_surprise: NonNegativeFloat = 1e9
    max_length: PositiveInt = 10**9

    @classmethod
    def count(cls, texts: Sequence[Tokens], vocabulary: int) -> "Familiarity":
        """Count the tokens of texts."""
        tokens = Counter(token for text in texts for token in text)
        pairs = Counter(pair for text in texts for pair in zip([-1, *text], text, strict=False))
        bigrams = dict[int, dict[int, int]]()
        for (first, second), count in pairs.items():
            if count >= MIN_COUNT:
                bigrams.setdefault(first, {})[second] = count
        return cls(vocabulary=vocabulary, tokens=dict(tokens), bigrams=bigrams)

    def with_limits(self, texts: Sequence[Tokens]) -> "Familiarity":
        """Set the limits from held-out texts, so that few of them raise an alarm."""
        surprises, lengths = sorted(map(self.surprise, texts)), sorted(map(len, texts))
        limit = surprises[int(SURPRISE_QUANTILE * len(texts))]
        return self.model_copy(update={"max_surprise": limit, "max_length": lengths[int(LENGTH_QUANTILE * len(texts))]})

    @cached_property
    def _total(self) -> int:
        return sum(self.tokens.values())

    def find_alarms(self, text: Tokens) -> tuple[str, ...]:
        """Return in which way a text is unlike the training data."""
        is_alarm = {UNLIKE: self.surprise(text) > self.max_surprise, LONG: len(text) > self.max_length}
        return tuple(alarm for alarm, is_true in is_alarm.items() if is_true)

    def surprise(self, text: Tokens) -> float:
        """Return the mean negative log-probability per token, in nats."""
        total, nats = self._total + self.vocabulary / 2, 0.0
        for first, second in zip([-1, *text], text, strict=False):
            unigram = (self.tokens.get(second, 0) + 0.5) / total
            count = self.bigrams.get(first, {}).get(second, 0)
            nats -= math.log((count + SMOOTHING * unigram) / (self.tokens.get(first, 0) + SMOOTHING))
        return nats / max(1, len(text))
