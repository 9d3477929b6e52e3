"""How good is a translation? An estimate per sentence without a reference, with a promise about the accepted ones.

The estimate is the probability that the sentence-level chrF is at least t, the 25th percentile of the calibration
pairs. It is a logistic regression on what a beam search of any engine yields: the score and the lengths. The lowest
log-probability of a token adds nothing to them (area under the curve 0.842 with and 0.843 without, Multi30k), nor does
the difference between the scores of the two best hypotheses. The chrF between them adds 0.004, but takes a search for
two.

The pairs are split: on one third the estimate is fitted, on the others the threshold is chosen from which on a
translation is "good": of those, at most 10 % have a chrF below t (`regard.measure.risk`). Below a probability of 1/2 it
is "poor", between them "check". The promise holds for texts like the calibration pairs; texts unlike them raise an
alarm (`regard.text.familiarity`), and are never "good".
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, ValidationError

from regard.base.errors import DamagedError, RegardError
from regard.base.files import read_json
from regard.tasks.results import Translation
from regard.tasks.search import Beam, Search
from regard.text.familiarity import Familiarity

Rating = Literal["good", "check", "poor"]
PERCENTILE = 25
MAX_FAILURES = 0.1
CONFIDENCE = 0.98  # with 0.9, more than 10 % of the accepted test translations failed in 4 of 30 splits
MIN_PAIRS = 200
POOR = 0.5
EXPECTED_ALARMS = 0.05  # share of the texts of the training domain, at most
SIGNIFICANCE = 0.01


class Quality(BaseModel):
    """The quality estimate of a model, stored as `quality.json` in its folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    beam_size: PositiveInt
    length_penalty: float
    pairs: PositiveInt
    """Number of calibration pairs."""
    chrf: float
    """The chrF t that good translations reach."""
    good: float | None
    """Lowest estimate that the promise accepts; None if it cannot accept any."""
    accepted: float
    """Share of the tested pairs that it accepts."""
    bound: float
    """Upper bound of the share of accepted translations below t."""
    log_ratio: float
    """Mean logarithm of target tokens per source token."""
    mean: tuple[float, ...]
    scale: tuple[PositiveFloat, ...]
    weights: tuple[float, ...]
    """Of the intercept and of the features (`_measure`), each standardized by its mean and scale."""
    familiarity: Familiarity

    def estimate(self, source: Sequence[int], translation: Translation) -> float:
        """Return the probability that the chrF is at least t."""
        features = zip(
            _measure(source, translation, self.log_ratio), self.mean, self.scale, self.weights[1:], strict=True
        )
        total = self.weights[0] + sum(weight * (value - mean) / scale for value, mean, scale, weight in features)
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))

    def rate(self, estimate: float) -> Rating:
        """Return an estimate in words."""
        if self.good is not None and estimate >= self.good:
            return "good"
        return "poor" if estimate < POOR else "check"

    def annotate(self, source: Sequence[int], translation: Translation, search: Search) -> Translation:
        """Add the estimate and the alarms to a translation; no estimate for another search or without a score.

        With an alarm, the estimate stays below the threshold of "good": the promise does not hold for such texts.
        """
        if not source:
            return translation
        alarms = self.familiarity.find_alarms(source)
        if alarms:
            translation = replace(translation, warnings=(*translation.warnings, *alarms))
        if math.isnan(translation.score) or not translation.tokens or search != self.search:
            return translation
        estimate = self.estimate(source, translation)
        rating = self.rate(estimate)
        if alarms and rating == "good" and self.good is not None:
            estimate, rating = math.nextafter(self.good, 0.0), "check"
        return replace(translation, quality=estimate, rating=rating)

    @property
    def search(self) -> Beam:
        """The search whose translations the estimate describes."""
        return Beam(self.beam_size, self.length_penalty)

    def find_minimum(self, requested: str) -> float:
        """Return the lowest accepted estimate for "good", "check" or a number."""
        if requested == "good" and self.good is None:
            message = "This model cannot promise good translations: too many of the calibration pairs fail."
            raise RegardError(message, hint="Use a number from 0 to 1, or calibrate with more pairs.")
        words = {"good": self.good or 0.0, "check": POOR}
        try:
            minimum = words[requested] if requested in words else float(requested)
        except ValueError:
            minimum = -1.0
        if not 0 <= minimum <= 1:
            raise RegardError(f"There is no quality '{requested}'.", hint="Use good, check or a number from 0 to 1.")
        return minimum


def find_min_quality(quality: Quality | None, requested: str, search: Search) -> float:
    """Return the lowest accepted estimate for "good", "check" or a number.

    Raises:
        RegardError: The request is neither, no translation can be promised to be good, or the model has no estimate for
            this search.
    """
    if quality is None:
        hint = "Run `regard evaluate MODEL --source FILE --reference FILE --fit-quality FOLDER`, and use FOLDER."
        raise RegardError("The model has no quality estimate.", hint=hint)
    if search != quality.search:
        message = f"The quality estimate is for a beam size of {quality.beam_size} and its length penalty."
        raise RegardError(message, hint="Leave out the options of the search.")
    return quality.find_minimum(requested)


def is_foreign(alarms: int, texts: int) -> bool:
    """Return whether so many of the texts raise an alarm that they come from another domain or language.

    >>> is_foreign(0, 9), is_foreign(1, 1), is_foreign(2, 20), is_foreign(5, 20)
    (False, False, False, True)
    """
    from regard.measure.risk import binomial_tail  # imports numpy

    return alarms > 0 and 1 - binomial_tail(alarms - 1, texts, EXPECTED_ALARMS) < SIGNIFICANCE


def read_quality(path: Path) -> Quality:
    """Read `quality.json` of a verified model folder."""
    try:
        return Quality.model_validate(read_json(path))
    except ValidationError as error:
        message = f"The quality estimate is damaged: {error.errors()[0]['msg']}."
        raise DamagedError(message, location=str(path), hint="Fit it again.") from error


def fit_quality(
    sources: Sequence[Sequence[int]],
    translations: Sequence[Translation],
    chrf: Sequence[float],
    search: Beam,
    vocabulary: int,
) -> Quality:
    """Fit the estimate on held-out pairs.

    Args:
        sources: Tokens of the sources.
        translations: The translation of each source, with its score.
        chrf: The sentence-level chrF of each translation.
        search: The search that found the translations.
        vocabulary: Number of source tokens.

    Raises:
        RegardError: There are too few pairs.
    """
    import numpy as np

    from regard.measure.risk import choose_threshold, fit_logistic

    kept = [index for index, source in enumerate(sources) if source]
    if len(kept) < MIN_PAIRS or callable(search.length_penalty):
        raise RegardError(
            f"A quality estimate needs {MIN_PAIRS} pairs, got {len(kept)}.", hint="Give more held-out pairs."
        )
    order = np.random.default_rng(0).permutation(kept).tolist()
    third, half = len(order) // 3, len(order) // 2
    fitted, tested = order[:third], order[third:]
    scores = np.asarray(chrf)
    limit = float(np.percentile(scores[fitted], PERCENTILE))
    log_ratio = float(np.mean([_log_ratio(sources[index], translations[index]) for index in fitted]))
    features = np.array([_measure(sources[index], translations[index], log_ratio) for index in fitted])
    mean, scale = features.mean(axis=0), features.std(axis=0) + 1e-6
    quality = Quality(
        beam_size=search.beam_size,
        length_penalty=search.length_penalty,
        pairs=len(kept),
        chrf=limit,
        good=None,
        accepted=0.0,
        bound=1.0,
        log_ratio=log_ratio,
        mean=tuple(mean.tolist()),
        scale=tuple(scale.tolist()),
        weights=tuple(fit_logistic((features - mean) / scale, scores[fitted] >= limit).tolist()),
        familiarity=Familiarity.count([sources[index] for index in order[:half]], vocabulary).with_limits(
            [sources[index] for index in order[half:]]
        ),
    )
    estimates = [quality.estimate(sources[index], translations[index]) for index in tested]
    rule = choose_threshold(estimates, scores[tested] < limit, MAX_FAILURES, CONFIDENCE)
    if rule is None:
        return quality
    return quality.model_copy(update={"good": rule.threshold, "accepted": rule.accepted, "bound": rule.bound})


def _measure(source: Sequence[int], translation: Translation, log_ratio: float) -> tuple[float, ...]:
    """Return the score (per token), the length ratio, its distance from the mean, and the length."""
    ratio = _log_ratio(source, translation)
    return translation.score, ratio, abs(ratio - log_ratio), math.log(len(source))


def _log_ratio(source: Sequence[int], translation: Translation) -> float:
    return math.log(len(translation.tokens) / len(source))
