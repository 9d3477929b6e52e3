"""Documents of models that read images or audio clips: the picture that a page draws, and the audio it plays."""

import numpy as np
from numpy.typing import NDArray

from regard.base.blobs import Blob, encode_u8
from regard.look.document import Group, Picture
from regard.tasks.replay import DrawnInput

PIXELS, AUDIO = "picture", "audio"  # names of blobs
MAX_SAMPLES = 60_000  # 7.5 seconds at 8 kHz; a byte each


def drop_order(groups: list[Group]) -> None:
    """Remove the statistics that need an order: the patches of an image follow each other row by row."""
    for group in groups:
        if group["columns"] != "source":
            continue  # among the tokens of a caption
        for name in ("distance", "previous"):
            group["statistics"][name] = [[None] * group["heads"] for _ in range(group["layers"])]


def make_picture(drawn: DrawnInput, blobs: dict[str, Blob]) -> Picture:
    """Return the picture of a document; its pixels and samples go to `blobs`."""
    blobs[PIXELS] = encode_u8(drawn.pixels)
    picture = Picture(
        kind=drawn.kind, pixels=PIXELS, grid=list(drawn.grid), cell=list(drawn.cell), first=drawn.class_tokens
    )
    if drawn.seconds is not None:
        picture["seconds"], picture["rate"] = drawn.seconds, drawn.rate
    if drawn.samples is not None and drawn.rate and len(drawn.samples) <= MAX_SAMPLES:
        blobs[AUDIO] = encode_u8(encode_mu_law(drawn.samples))
        picture["audio"] = AUDIO
    return picture


def encode_mu_law(samples: NDArray[np.int16]) -> NDArray[np.uint8]:
    """Return 8-bit codes of samples: finer for quiet sounds, and 127 for silence (ITU-T G.711, mu = 255).

    >>> encode_mu_law(np.array([-32767, 0, 100, 32767], np.int16))
    array([  0, 127, 140, 254], dtype=uint8)
    """
    values = np.clip(samples / 32767.0, -1.0, 1.0)
    return np.rint(127 + 127 * np.sign(values) * np.log1p(255 * np.abs(values)) / np.log(256)).astype(np.uint8)
