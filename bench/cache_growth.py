"""The cost of one more token by sequence length: with the key-value cache, and with a full forward pass.

    python -m bench.decode --growth

A decoder-only model so small (4 layers, width 64) that attention soon dominates the cost, 8 rows, float32, one thread;
the fastest of several tries. A step with the cache should cost a + b n, a forward pass without it a n + b n^2. Both are
fitted, and the largest error of each fit is printed.
"""

import json
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from regard.config.codec import preset
from regard.models.build import build
from regard.models.cost import cost
from regard.models.cpu_decoder import CpuDecoder
from regard.models.decoder_only import DecoderOnly
from regard.nn.kv_cache import DecodingState

ROWS, VOCABULARY_SIZE = 8, 1000


@torch.inference_mode()
def measure_cache_growth(max_new_tokens: int, stride: int) -> None:
    """Print a table, the fits, the bytes of the cache, and a line of JSON."""
    changes = {
        "tokens.vocabulary": VOCABULARY_SIZE,
        "d_model": 64,
        "decoder.layers": 4,
        "decoder.position.length": max_new_tokens,
    }
    changes |= {"decoder.attention.heads": 4, "decoder.feedforward.d_ff": 256}
    settings = preset("gpt2", changes)
    model = build(settings, seed=0).eval()
    assert isinstance(model, DecoderOnly)  # noqa: S101
    cpu_decoder, state = CpuDecoder(model), model.start(max_new_tokens)
    tokens = torch.randint(VOCABULARY_SIZE, (ROWS, max_new_tokens), generator=torch.Generator().manual_seed(0))
    lengths = list(range(stride, max_new_tokens + 1, stride))
    times = []
    print(f"{'tokens':>8}{'with, ms':>12}{'without, ms':>14}")
    for length in lengths:
        model.step(tokens[:, state.kv_cache.length : length - 1], state)  # read up to this length in one step
        cached = _measure_fastest(
            partial(_repeat_step, cpu_decoder, tokens[:, length - 1 : length], state, length - 1), tries=15
        )
        times.append((cached, _measure_fastest(partial(model, tokens[:, :length]), tries=3)))
        print(f"{length:>8}{times[-1][0]:>12.3f}{times[-1][1]:>14.1f}")
    n = np.array(lengths, dtype=np.float64)
    cached_times, uncached_times = np.array(times).T
    results = {
        "growth/with/unexplained": _fit("with    = a + b n", np.stack((n**0, n), axis=1), cached_times),
        "growth/without/unexplained": _fit("without = a n + b n^2", np.stack((n, n**2), axis=1), uncached_times),
        "growth/cache_bytes": float(state.bytes),
        "growth/predicted_bytes": float(cost(settings, batch_size=ROWS, target=max_new_tokens).kv_cache.total()),
    }
    flops = cost(settings, batch_size=ROWS, target=max_new_tokens)
    flops_ratio = flops.decoding_uncached.total() / flops.decoding.total()
    print(f"regard.models.cost: {max_new_tokens} new tokens without the cache take {flops_ratio:.0f} times the FLOPs.")
    print(json.dumps(results))


def _repeat_step(cpu_decoder: CpuDecoder, token: Tensor, state: DecodingState, length: int) -> None:
    """Repeat the same step."""
    state.crop(length)
    cpu_decoder.step(token, state)


def _fit(formula: str, terms: "np.ndarray[tuple[int, int], np.dtype[np.float64]]", times: object) -> float:
    """Fit by least squares; return the largest error relative to the largest time."""
    measured = np.asarray(times, dtype=np.float64)
    factors, *_ = np.linalg.lstsq(terms, measured, rcond=None)
    max_error = float(np.abs(terms @ factors - measured).max() / measured.max())
    print(f"{formula}: a = {factors[0]:.2e}, b = {factors[1]:.2e} ms, off by {100 * max_error:.0f} % at most")
    return round(max_error, 3)


def _measure_fastest(step: Callable[[], object], *, tries: int) -> float:
    """Return the CPU milliseconds of the fastest try."""
    times = []
    for _ in range(tries):
        start_time = time.process_time()
        step()
        times.append(1000 * (time.process_time() - start_time))
    return min(times)
