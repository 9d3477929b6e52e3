"""Quantized tensors of GGUF to float32.

A block holds some numbers with a common scale d, and in some types a minimum m: x = d q + m. The K types divide a block
of 256 into parts, each with its own quantized scale.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.exchange.gguf.format import StoredTensor

Bytes = NDArray[np.uint8]  # (blocks, bytes of a block)
Floats = NDArray[np.float32]  # (blocks, numbers of a block)


def dequantize(tensor: StoredTensor) -> Tensor:
    """Return the numbers of a tensor in float32."""
    blocks = tensor.data.reshape(-1, tensor.type.size)
    with np.errstate(over="ignore", invalid="ignore"):  # damaged scales may be infinite; the caller checks
        numbers = CONVERTERS[tensor.type.name](blocks)
    return torch.from_numpy(np.ascontiguousarray(numbers, np.float32).reshape(tensor.shape))


def _half(part: Bytes) -> Floats:
    """Read float16 numbers: (blocks, 2 n) -> (blocks, n)."""
    return np.ascontiguousarray(part).view("<f2").astype(np.float32)


def _float32(blocks: Bytes) -> Floats:
    return np.ascontiguousarray(blocks).view("<f4").copy()


def _bfloat16(blocks: Bytes) -> Floats:
    return (np.ascontiguousarray(blocks).view("<u2").astype(np.uint32) << 16).view(np.float32)


def _nibbles(part: Bytes) -> NDArray[np.uint8]:
    """Split bytes into their low halves, then their high halves: (blocks, n) -> (blocks, 2 n)."""
    return np.concatenate((part & 0x0F, part >> 4), axis=1)


def _fifth_bits(part: Bytes) -> NDArray[np.uint8]:
    """Return the 32 bits of (blocks, 4) as 16 or 0: the highest bit of numbers with five."""
    return np.unpackbits(part, axis=1, bitorder="little") * np.uint8(16)


def _q4_0(blocks: Bytes) -> Floats:
    return _half(blocks[:, :2]) * (_nibbles(blocks[:, 2:]).astype(np.float32) - 8)


def _q4_1(blocks: Bytes) -> Floats:
    return _half(blocks[:, :2]) * _nibbles(blocks[:, 4:]) + _half(blocks[:, 2:4])


def _q5_0(blocks: Bytes) -> Floats:
    numbers = (_nibbles(blocks[:, 6:]) | _fifth_bits(blocks[:, 2:6])).astype(np.float32)
    return _half(blocks[:, :2]) * (numbers - 16)


def _q5_1(blocks: Bytes) -> Floats:
    numbers = _nibbles(blocks[:, 8:]) | _fifth_bits(blocks[:, 4:8])
    return _half(blocks[:, :2]) * numbers + _half(blocks[:, 2:4])


def _q8_0(blocks: Bytes) -> Floats:
    return _half(blocks[:, :2]) * np.ascontiguousarray(blocks[:, 2:]).view(np.int8)


def _k_scales(packed: Bytes) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Unpack 12 bytes into the scales and the minima of 8 parts, six bits each."""
    low, high, rest = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate((low & 0x3F, (rest & 0x0F) | ((low >> 6) << 4)), axis=1)
    minima = np.concatenate((high & 0x3F, (rest >> 4) | ((high >> 6) << 4)), axis=1)
    return scales, minima


def _scale_parts(blocks: Bytes, numbers: NDArray[np.uint8]) -> Floats:
    """Compute d scale q - m minimum for 8 parts of 32 numbers."""
    scales, minima = _k_scales(blocks[:, 4:16])
    d, m = _half(blocks[:, :2]), _half(blocks[:, 2:4])
    parts = numbers.reshape(-1, 8, 32)
    return ((d * scales)[..., None] * parts - (m * minima)[..., None]).reshape(-1, 256)


def _q4_k(blocks: Bytes) -> Floats:
    chunks = blocks[:, 16:].reshape(-1, 4, 32)  # each chunk holds two parts: low and high halves
    return _scale_parts(blocks, np.stack((chunks & 0x0F, chunks >> 4), axis=2).reshape(-1, 256))


def _q5_k(blocks: Bytes) -> Floats:
    chunks = blocks[:, 48:].reshape(-1, 4, 32)
    low = np.stack((chunks & 0x0F, chunks >> 4), axis=2).reshape(-1, 8, 32)
    bits = (blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[None, :, None]) & 1  # (blocks, 8, 32)
    return _scale_parts(blocks, (low | (bits << 4)).reshape(-1, 256))


def _q6_k(blocks: Bytes) -> Floats:
    low, high = blocks[:, :128].reshape(-1, 2, 64), blocks[:, 128:192].reshape(-1, 2, 1, 32)
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8).astype(np.float32)
    nibbles = np.stack((low & 0x0F, low >> 4), axis=2).reshape(-1, 2, 4, 32)
    bits = (high >> np.array([0, 2, 4, 6], np.uint8)[None, None, :, None]) & 3  # (blocks, 2, 4, 32)
    numbers = (nibbles | (bits << 4)).astype(np.float32).reshape(-1, 16, 16) - 32
    return ((_half(blocks[:, 208:]) * scales)[..., None] * numbers).reshape(-1, 256)


CONVERTERS: dict[str, Callable[[Bytes], Floats]] = {
    "F32": _float32,
    "F16": _half,
    "BF16": _bfloat16,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
