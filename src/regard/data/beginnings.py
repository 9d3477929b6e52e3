"""What is read of a labelled text that is too long for a row: its beginning, and of a pair the beginnings of both."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regard.data.rows import Numbers, Records, within


def room(longest: int, texts: int) -> int:
    """What a row of this length has for one text or two: the rest is [classify], and [separate] after each."""
    return max(1, longest - 1 - texts)


def kept(lengths: NDArray[np.integer], most: int) -> Numbers:
    """Tokens of each text (texts, n) that are read where a sample may have at most so many.

    Of a pair the longer one is cut first, and if both are long each has half of them:

    >>> kept(np.array([[9, 9, 2, 3], [1, 9, 9, 3]]), most=7)
    array([[6, 4, 2, 3],
           [1, 3, 5, 3]])
    """
    lengths = lengths.astype(np.int64)
    if len(lengths) == 1:
        return np.minimum(lengths, most)
    one, other = lengths
    one = np.minimum(one, np.maximum(most - other, most - most // 2))
    return np.stack((one, np.minimum(other, most - one)))


def shortened(records: Records, most: int) -> Records:
    """The same samples, of which only what is kept is there."""
    lengths = kept(records.lengths, most)
    if (lengths == records.lengths).all():
        return records
    texts, places = within(records.lengths.T.ravel())  # the texts of a sample stand side by side
    return replace(records, tokens=records.tokens[places < lengths.T.ravel()[texts]], lengths=lengths)
