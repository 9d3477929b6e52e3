"""Statistics of attention weights."""

import numpy as np
import torch

from regard.base.blobs import Blob, decode_blob
from regard.look.attention import make_groups, read_map
from regard.look.record import LookRecord, spread
from regard.look.statistics import divide, shrink
from regard.tasks.replay import ReplayInput
from tests.look.factories import LONG


def test_statistics_of_sampled_rows_are_near_those_of_all_rows(long_passage: ReplayInput) -> None:
    record, blobs = LookRecord(), dict[str, Blob]()
    long_passage.replay(record)
    tokens = [{"id": 0, "text": "x", "role": "text", "word": 0}] * LONG
    (group,) = make_groups(record, {"target": tokens}, blobs, max_cells=LONG * LONG)  # type: ignore[dict-item]
    assert group["sampled_rows"] == 128
    assert list(group["maps"]) == [".".join(map(str, group["default_head"]))]
    weights = record.weights("decoder.0.self")[0]  # (H, T, T)
    index = torch.arange(LONG)
    exact = {
        "entropy": -torch.special.xlogy(weights, weights).sum(-1)[:, 1:].mean(-1),
        "first": weights[:, 1:, 0].mean(-1),
        "previous": weights[:, index[1:], index[:-1]].mean(-1),
        "distance": (weights * (index[:, None] - index).abs()).sum(-1)[:, 1:].mean(-1),
    }
    for name, values in exact.items():
        sampled = torch.tensor(group["statistics"][name][0])  # type: ignore[index]
        assert torch.allclose(sampled, values, rtol=0.25, atol=0.02), name
    thumbnail = decode_blob(blobs[group["thumbnails"]])
    assert thumbnail.shape == (1, 4, 48, 48)
    layer, head = group["default_head"]
    sampled_map = read_map(record, "decoder.self", layer, head)[spread(LONG, 128)]
    assert np.abs(thumbnail[layer, head] - shrink(sampled_map, divide(128), divide(LONG))).max() <= 1 / 255 + 1e-5


def test_shrinking_takes_maxima() -> None:
    weights = np.zeros((100, 7), dtype=np.float32)
    weights[63, 3] = 0.5
    small = shrink(weights, divide(100), divide(7))
    assert small.shape == (48, 7)
    assert shrink(weights.T, divide(7), divide(100)).shape == (7, 48)
    assert np.array_equal(shrink(weights.T, divide(7), divide(100)), small.T)
    assert small.max() == 0.5
    assert (small > 0).sum() == 1
