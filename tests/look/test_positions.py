"""Every kind of position encoding is described so that a page can draw what the model computes."""

import numpy as np
import torch

from regard.base.blobs import Blob, decode_blob
from regard.look.positions import describe_positions, kind_of
from regard.nn.positions import Alibi, Learned, Position, RelativeBias, Rotary, Sinusoidal


def test_each_kind_is_described() -> None:
    torch.manual_seed(0)
    learned, relative = Learned(16, 40, 2), RelativeBias(4, 8, 20, is_bidirectional=True)
    torch.nn.init.normal_(relative.tables)
    positions: dict[str, Position] = {
        "none": Position(),
        "sinusoidal": Sinusoidal(16, 10000.0, interleaved=True),
        "rotary": Rotary(8, 500.0, interleaved=False),
        "alibi": Alibi(4),
        "learned": learned,
        "relative": relative,
    }
    blobs: dict[str, Blob] = {}
    parts = {}
    for kind, position in positions.items():
        parts[kind] = describe_positions(position, "encoder", 12, blobs)
        assert kind_of(position) == parts[kind]["kind"] == kind
        if kind == "learned":
            vectors = decode_blob(blobs[parts[kind]["vectors"]])
            assert vectors.shape == (40, 16)
            exact = learned.table.weight[2:].detach().numpy()  # the first two are an offset, not positions
            assert np.abs(vectors - exact).max() <= np.abs(exact).max() / 254 + 1e-6
    assert parts["learned"]["max_positions"] == 40
    assert (parts["sinusoidal"]["width"], parts["sinusoidal"]["base"], parts["sinusoidal"]["interleaved"]) == (
        16,
        1e4,
        True,
    )
    assert (parts["rotary"]["key_dim"], parts["rotary"]["base"], parts["rotary"]["interleaved"]) == (8, 500.0, False)
    assert parts["alibi"]["slopes"] == [0.25, 0.0625, 0.015625, 0.00390625]
    curves, offsets = decode_blob(blobs[parts["relative"]["curves"]]), parts["relative"]["offsets"]
    index = torch.arange(12)[None]
    bias = relative.on_scores(index, index)  # (1, H, T, S)
    for offset in (-11, -3, 0, 1, 11):
        row, column = max(0, -offset), max(0, offset)
        expected = bias[0, :, row, column].detach().numpy()
        assert np.allclose(curves[0, :, offsets.index(offset)], expected)
