"""CPU fast path; reference: torch.topk, torch.argmax; proven by: tests/decode/test_topk.py, test_topk_logprobs.py.

The k best tokens lie in the k blocks of tokens with the best maxima. So it is enough to take the maximum of each block
(which a CPU vectorizes) and to search k blocks. On many rows of 10,000 tokens this is three times as fast as
`torch.topk` and five times as fast as `torch.argmax`. Other devices use PyTorch's kernels.

Ties: `argmax` takes the lowest token id; `topk` is deterministic: equal scores give equal results.

The module also moves the few numbers per row that a search needs to the host (`to_numpy`, `compact`).
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base import cpu_fast_path
from regard.decode.protocol import NEG_INF

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

BLOCK_SIZE = 64
MIN_ELEMENTS = 2**15  # below this size the overhead of several kernel calls exceeds the gain
MAX_SAFE_LOGIT = 60.0  # exp(60) times any vocabulary size fits into float32


def topk_logprobs(logits: Tensor, k: int, suppress_tokens: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the k best tokens of each row and their log-probabilities, best first.

    Args:
        logits: Logits (R, V); they are overwritten.
        k: Number of tokens per row.
        suppress_tokens: Token ids (n) that are not returned. Other log-probabilities do not change.

    Returns:
        Log-probabilities (R, k) and token ids (R, k).

    >>> logprobs, tokens = topk_logprobs(torch.tensor([[0.25, 0.5, 0.125, 0.125]]).log(), 2, torch.tensor([1]))
    >>> logprobs.exp(), tokens
    (tensor([[0.2500, 0.1250]]), tensor([[0, 2]]))
    """
    if logits.device.type != "cpu" or logits.numel() < MIN_ELEMENTS or not cpu_fast_path.is_enabled():
        logprobs = logits.log_softmax(dim=-1)
        if suppress_tokens is not None:
            logprobs.index_fill_(1, suppress_tokens, NEG_INF)
        return _topk_or_argmax(logprobs, k)
    # log p(w) = logit(w) - log sum exp(logits): the sum is needed, but not the log-probability of every token.
    suppressed_logits = None
    if suppress_tokens is not None:
        suppressed_logits = logits[:, suppress_tokens]  # (R, n)
        logits.index_fill_(1, suppress_tokens, NEG_INF)
    scores, tokens = _topk_or_argmax(logits, k)
    highest = (
        scores[:, :1]
        if suppressed_logits is None
        else torch.cat((scores[:, :1], suppressed_logits), dim=1).amax(dim=1, keepdim=True)
    )
    smallest, largest = highest.aminmax()
    shift = 0.0 if smallest.item() > -MAX_SAFE_LOGIT and largest.item() < MAX_SAFE_LOGIT else highest
    sums = (logits if isinstance(shift, float) else logits.sub_(shift)).exp_().sum(dim=1, keepdim=True)  # (R, 1)
    if suppressed_logits is not None:
        sums += (suppressed_logits - shift).exp_().sum(dim=1, keepdim=True)
    return scores - sums.log_() - shift, tokens


def argmax(scores: Tensor) -> Tensor:
    """Return the best token of each row: (R, V) -> (R, 1).

    >>> argmax(torch.tensor([[0.1, 0.7, 0.2], [0.4, 0.2, 0.4]]))
    tensor([[1],
            [0]])
    """
    if not _should_use_blocks(scores, 1):
        return scores.argmax(dim=1, keepdim=True)
    block = _block_maxima(scores).argmax(dim=1, keepdim=True)  # (R, 1)
    candidates = _block_indices(block, scores).clamp(max=scores.size(1) - 1)  # (R, BLOCK_SIZE)
    return candidates.gather(1, scores.gather(1, candidates).argmax(dim=1, keepdim=True))


def topk(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best scores of each row and their tokens, best first: (R, V) -> (R, k), (R, k)."""
    if not _should_use_blocks(scores, k):
        values, indices = scores.topk(k, dim=1)
        return values, indices
    blocks = _block_maxima(scores).topk(k, dim=1, sorted=False).indices  # (R, k)
    candidates = _block_indices(blocks, scores)  # (R, k BLOCK_SIZE)
    candidate_scores = scores.gather(1, candidates.clamp(max=scores.size(1) - 1))
    if scores.size(1) % BLOCK_SIZE:  # the last block is shorter
        candidate_scores = candidate_scores.masked_fill(candidates >= scores.size(1), NEG_INF)
    values, positions = candidate_scores.topk(k, dim=1)
    # An index beyond the vocabulary can tie only with impossible tokens.
    return values, candidates.gather(1, positions).clamp(max=scores.size(1) - 1)


def to_numpy(logprobs: Tensor, tokens: Tensor) -> tuple[FloatArray, IntArray]:
    """Copy log-probabilities and tokens (R, n) to the host in one transfer: the only wait for the device."""
    if tokens.device.type == "cpu":
        return logprobs.double().numpy(), tokens.numpy()
    packed = torch.cat((logprobs.double(), tokens.double()), dim=1).cpu().numpy()
    return packed[:, : logprobs.size(1)], packed[:, logprobs.size(1) :].astype(np.int64)


def compact(keep_mask: BoolArray) -> IntArray:
    """Return the row index that drops rows and fills the gaps with rows from the end.

    >>> compact(np.array([True, False, True, False, True])).tolist()
    [0, 4, 2]
    """
    kept_count = int(keep_mask.sum())
    index = np.arange(kept_count)
    index[~keep_mask[:kept_count]] = kept_count + np.flatnonzero(keep_mask[kept_count:])
    return index


def _topk_or_argmax(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    if k > 1:
        return topk(scores, k)
    indices = argmax(scores)
    return scores.gather(1, indices), indices


def _should_use_blocks(scores: Tensor, k: int) -> bool:
    return (
        cpu_fast_path.is_enabled()
        and scores.device.type == "cpu"
        and scores.numel() >= MIN_ELEMENTS
        and scores.size(1) >= 4 * k * BLOCK_SIZE
    )


def _block_maxima(scores: Tensor) -> Tensor:
    """Return the best score of each block, (R, blocks)."""
    blocks = scores.size(1) // BLOCK_SIZE
    maxima = scores[:, : blocks * BLOCK_SIZE].unflatten(1, (blocks, BLOCK_SIZE)).amax(dim=-1)
    if blocks * BLOCK_SIZE == scores.size(1):
        return maxima
    return torch.cat((maxima, scores[:, blocks * BLOCK_SIZE :].amax(dim=-1, keepdim=True)), dim=1)


def _block_indices(blocks: Tensor, scores: Tensor) -> Tensor:
    """Return the token ids of blocks (R, n), (R, n BLOCK_SIZE)."""
    return (blocks[:, :, None] * BLOCK_SIZE + torch.arange(BLOCK_SIZE, device=scores.device)).flatten(1)
