"""Rows of a batch, seen from the host: a few numbers of each decide what becomes of it."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Numbers = NDArray[np.int64]
Logs = NDArray[np.float64]
Flags = NDArray[np.bool_]


def on_host(logs: Tensor, words: Tensor) -> tuple[Logs, Numbers]:
    """Log-probabilities and words (R, n) as arrays, fetched in one piece: the one wait for a device."""
    if words.device.type == "cpu":
        return logs.double().numpy(), words.numpy()
    both = torch.cat((logs.double(), words.double()), dim=1).cpu().numpy()
    return both[:, : logs.size(1)], both[:, logs.size(1) :].astype(np.int64)


def closed_up(stay: Flags) -> Numbers:
    """Where the rows that stay are found, if those at the end move into the places of those that leave.

    >>> closed_up(np.array([True, False, True, False, True])).tolist()
    [0, 4, 2]
    """
    left = int(stay.sum())
    index = np.arange(left)
    index[~stay[:left]] = left + np.flatnonzero(stay[left:])
    return index
