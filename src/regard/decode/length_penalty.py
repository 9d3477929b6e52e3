"""What log p(y) is divided by when finished texts are compared: every word more costs probability, so short ones win.

    power   |y|^alpha               1: the mean of a word; 0: log p itself
    gnmt    ((5 + |y|) / 6)^alpha   Wu et al. 2016: gentler with very short texts

|y| counts END, too: its probability is in the sum. Both never fall with the length, which the bound of a beam needs.
Searches take either: `alpha=0.6` is a power, `alpha=gnmt(0.6)` the other form.
"""

from collections.abc import Callable

from regard.base.errors import RegardError

PenaltyFunction = Callable[[int], float]
LengthPenalty = float | PenaltyFunction


def power(alpha: float) -> PenaltyFunction:
    """|y|^alpha.

    >>> power(0.5)(9)
    3.0
    """
    _check_alpha(alpha)
    return lambda length: float(length**alpha)


def gnmt(alpha: float) -> PenaltyFunction:
    """((5 + |y|) / 6)^alpha.

    >>> gnmt(1.0)(1), gnmt(2.0)(7)
    (1.0, 4.0)
    """
    _check_alpha(alpha)
    return lambda length: float(((5 + length) / 6) ** alpha)


def as_function(length_penalty: LengthPenalty) -> PenaltyFunction:
    """What a search was given, as a function: a number is the alpha of a power.

    >>> as_function(2)(3), as_function(gnmt(1.0))(7)
    (9.0, 2.0)
    """
    return length_penalty if callable(length_penalty) else power(length_penalty)


def _check_alpha(alpha: float) -> None:
    if not alpha >= 0:
        raise RegardError(f"There is no alpha of {alpha}: longer texts would count for less.", fix="Use 0 or more.")
