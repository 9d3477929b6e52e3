"""What log p(y) is divided by when finished texts are compared: every word more costs probability, so short ones win.

    power   |y|^alpha               1: the mean of a word; 0: log p itself
    gnmt    ((5 + |y|) / 6)^alpha   Wu et al. 2016: gentler with very short texts

|y| counts END, too: its probability is in the sum. Both never fall with the length, which the bound of a beam needs.
"""

from collections.abc import Callable

Normaliser = Callable[[int], float]


def power(alpha: float) -> Normaliser:
    """|y|^alpha.

    >>> power(0.5)(9)
    3.0
    """
    return lambda length: float(length**alpha)


def gnmt(alpha: float) -> Normaliser:
    """((5 + |y|) / 6)^alpha.

    >>> gnmt(1.0)(1), gnmt(2.0)(7)
    (1.0, 4.0)
    """
    return lambda length: float(((5 + length) / 6) ** alpha)
