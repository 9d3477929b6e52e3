"""Length penalties: log p(y) is divided by them before finished sequences are compared.

Every token lowers the probability of a sequence, so short sequences win without a penalty.

    power   |y|^alpha               1: the mean log-probability of a token; 0: log p itself
    gnmt    ((5 + |y|) / 6)^alpha   Wu et al. 2016: weaker for very short sequences

|y| includes eos, whose probability is in the sum. Both forms never decrease with the length; the stopping bound of beam
search relies on this. Searches accept either form: `length_penalty=0.6` is a power, `length_penalty=gnmt(0.6)` the
other form.
"""

from collections.abc import Callable

from regard.base.errors import RegardError

PenaltyFunction = Callable[[int], float]
LengthPenalty = float | PenaltyFunction


def power(alpha: float) -> PenaltyFunction:
    """Return the penalty |y|^alpha.

    >>> power(0.5)(9)
    3.0
    """
    _check_alpha(alpha)
    return _name(lambda length: float(length**alpha), f"|y|^{alpha:g}")


def gnmt(alpha: float) -> PenaltyFunction:
    """Return the penalty ((5 + |y|) / 6)^alpha.

    >>> gnmt(1.0)(1), gnmt(2.0)(7)
    (1.0, 4.0)
    """
    _check_alpha(alpha)
    return _name(lambda length: float(((5 + length) / 6) ** alpha), f"((5 + |y|) / 6)^{alpha:g}")


def as_function(length_penalty: LengthPenalty) -> PenaltyFunction:
    """Return a length penalty as a function of the length; a number is the alpha of `power`.

    >>> as_function(2)(3), as_function(gnmt(1.0))(7)
    (9.0, 2.0)
    """
    return length_penalty if callable(length_penalty) else power(length_penalty)


def describe_penalty(length_penalty: LengthPenalty) -> str:
    """Return a length penalty as a formula, for a trace.

    >>> describe_penalty(0.6), describe_penalty(gnmt(1.0))
    ('|y|^0.6', '((5 + |y|) / 6)^1')
    """
    function = as_function(length_penalty)
    return getattr(function, "__name__", repr(function))


def _name(function: PenaltyFunction, formula: str) -> PenaltyFunction:
    function.__name__ = formula
    return function


def _check_alpha(alpha: float) -> None:
    if not alpha >= 0:
        raise RegardError(f"The length penalty must be at least 0, got {alpha}.", hint="Use 0 (no penalty) or more.")
