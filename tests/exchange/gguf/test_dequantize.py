"""Quantized blocks, compared with the gguf package."""

import gguf
import numpy as np
import pytest

from regard.exchange.gguf.dequantize import dequantize
from regard.exchange.gguf.format import BLOCK_TYPES, StoredTensor


@pytest.mark.parametrize("number", BLOCK_TYPES)
def test_dequantize_each_block_type_equals_the_gguf_package(number: int) -> None:
    block = BLOCK_TYPES[number]
    generator = np.random.default_rng(0)
    data = generator.integers(0, 256, 64 * block.size, np.uint8)
    if block.elements > 1:
        blocks = data.reshape(64, block.size)
        for start in (208,) if block.name == "Q6_K" else (0, 2):  # the scales are finite numbers
            blocks[:, start : start + 2] = generator.normal(size=(64, 1)).astype("<f2").view(np.uint8)
    ours = dequantize(StoredTensor((64, block.elements), block, data)).numpy()
    theirs = gguf.quants.dequantize(data.reshape(64, -1), gguf.GGMLQuantizationType(number)).reshape(ours.shape)
    assert np.allclose(ours, theirs, rtol=1e-6, atol=1e-6, equal_nan=True)
