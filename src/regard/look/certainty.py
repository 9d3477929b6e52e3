"""How sure a model is of its output, in the words of a page's headline (`web/headline.ts`)."""

import math
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any


def describe_certainty(document: Mapping[str, Any]) -> str:
    """Return how sure the model is: of a label, of its least certain prediction, or of a text; `""` if unknown."""
    predictions = [item for item in document.get("predictions", []) if item["probabilities"]]
    if predictions:
        least = min(item["probabilities"][0] for item in predictions)
        return f"{'' if len(predictions) == 1 else 'at least '}{show_percent(least)} sure"
    target = (document.get("sequences") or {}).get("target") or []
    logprobs = [token["logprob"] for token in target if "logprob" in token]
    if not logprobs or document.get("predictions"):
        return ""
    total = -math.inf if None in logprobs else sum(logprobs)
    each = f"{show_percent(math.exp(total / len(logprobs)))} per token"
    # Of a text that was drawn at random, only the average says something: every long one is improbable.
    if document.get("sampling") is not None:
        return f"sampled, {each} on average"
    return f"probability {show_percent(math.exp(total))}, {each}"


def show_percent(value: float) -> str:
    """Return a probability as a percentage with about two significant digits."""
    percent = value * 100
    if 0 < percent < 0.01:
        return "< 0.01 %"
    digits = next(
        count for least, count in ((99.95, 0), (99, 1), (10, 0), (1, 1), (0.01, 2), (0, 0)) if percent >= least
    )
    # As JavaScript rounds: the exact value, halves up.
    return f"{Decimal(percent).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)} %"
