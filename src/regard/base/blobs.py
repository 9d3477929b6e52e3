"""Arrays in JSON: base64 of zlib, with 8 bits per attention weight.

`data` is row-major and little-endian. dtype "u8" with curve "sqrt": the value is (byte / 255) ** 2, so an error is at
most sqrt(value) / 255 + 1 / 510 ** 2. Curve "linear": the value is byte * scale for u8 and i8, and the number itself
for i32 and f32.
"""

import base64
import math
import zlib
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

DTYPES = {"u8": "|u1", "i8": "|i1", "i32": "<i4", "f32": "<f4"}


class Blob(TypedDict):
    """An encoded array."""

    dtype: Literal["u8", "i8", "i32", "f32"]
    curve: Literal["sqrt", "linear"]
    scale: float
    """For curve "linear" of u8 and i8; 1 otherwise."""
    shape: list[int]
    data: str


def encode_sqrt(values: NDArray[np.floating[Any]]) -> Blob:
    """Encode weights from 0 to 1 with 8 bits; the square root keeps small weights distinct."""
    codes = np.rint(np.sqrt(np.clip(values, 0.0, 1.0)) * 255).astype(np.uint8)
    return _encode(codes, "u8", "sqrt")


def encode_i8(values: NDArray[np.floating[Any]]) -> Blob:
    """Encode signed numbers with 8 bits, scaled by the largest."""
    scale = float(np.abs(values).max(initial=0.0)) / 127 or 1.0
    return _encode(np.rint(values / scale).astype(np.int8), "i8", "linear", scale)


def encode_u8(values: NDArray[np.uint8]) -> Blob:
    """Encode bytes unchanged."""
    return _encode(values, "u8", "linear")


def encode_f32(values: NDArray[np.floating[Any]]) -> Blob:
    """Encode numbers exactly."""
    return _encode(values.astype("<f4"), "f32", "linear")


def decode_blob(blob: Blob) -> NDArray[np.float32]:
    """Return the numbers of a blob, as a page decodes them."""
    content = zlib.decompress(base64.b64decode(blob["data"]))
    codes = np.frombuffer(content, dtype=DTYPES[blob["dtype"]]).reshape(blob["shape"])
    if blob["curve"] == "sqrt":
        return ((codes / 255.0) ** 2).astype(np.float32)
    return codes.astype(np.float32) * np.float32(blob["scale"])


def finite(number: float) -> float | None:
    """Return a number for JSON: None for -inf, rounded to 7 digits."""
    return float(f"{number:.7g}") if math.isfinite(number) else None


def _encode(
    codes: NDArray[Any],
    dtype: Literal["u8", "i8", "i32", "f32"],
    curve: Literal["sqrt", "linear"],
    scale: float = 1.0,
) -> Blob:
    data = base64.b64encode(zlib.compress(np.ascontiguousarray(codes).tobytes(), 6)).decode()
    return Blob(dtype=dtype, curve=curve, scale=scale, shape=list(codes.shape), data=data)
