"""Rows of a batch, seen from the host: a few numbers of each decide what becomes of it."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def to_numpy(logprobs: Tensor, tokens: Tensor) -> tuple[FloatArray, IntArray]:
    """Log-probabilities and words (R, n) as arrays, fetched in one piece: the one wait for a device."""
    if tokens.device.type == "cpu":
        return logprobs.double().numpy(), tokens.numpy()
    packed = torch.cat((logprobs.double(), tokens.double()), dim=1).cpu().numpy()
    return packed[:, : logprobs.size(1)], packed[:, logprobs.size(1) :].astype(np.int64)


def compact(keep_mask: BoolArray) -> IntArray:
    """Where the rows that stay are found, if those at the end move into the places of those that leave.

    >>> compact(np.array([True, False, True, False, True])).tolist()
    [0, 4, 2]
    """
    kept_count = int(keep_mask.sum())
    index = np.arange(kept_count)
    index[~keep_mask[:kept_count]] = kept_count + np.flatnonzero(keep_mask[kept_count:])
    return index
