"""Records of long texts."""

import pytest
import torch

from regard.look.record import LookRecord
from regard.nn.record import Record
from regard.tasks.replay import ReplayInput


@pytest.mark.parametrize("half", [False, True])
def test_the_record_of_a_long_text_keeps_enough(long_passage: ReplayInput, half: bool) -> None:
    complete, record = Record(), LookRecord(half=half)
    outputs = [long_passage.replay(part) for part in (complete, record)]
    assert torch.equal(*outputs)
    expected = complete.weights("decoder.0.self")
    tolerance = 2e-2 if half else 0.0
    assert (record.weights("decoder.0.self") - expected).abs().max() <= tolerance
    assert (
        record.weights("decoder.0.self", [2], [5, 280]) - expected[:, 2:3, [5, 280]]
    ).abs().max() <= tolerance + 1e-6
    errors = record.head_errors("decoder.0.self")
    assert len(errors) == expected.size(1)
    assert max(errors) < (0.3 if half else 1e-5)
    assert (max(errors) > 1e-4) == half  # the error is that of what is kept, not of what was computed
    attention = complete.attention["decoder.0.self"]
    kept = attention.query.nbytes + attention.key.nbytes
    assert record.bytes <= kept / (2 if half else 1) + 16
    assert not record.residuals
