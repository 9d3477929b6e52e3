"""Live and peak bytes of tensors."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from regard.plan.tracker import MemoryTracker


def test_tracker_counts_live_and_peak_bytes() -> None:
    with FakeTensorMode(), MemoryTracker() as tracker:
        kept = torch.zeros(1000)
        view = kept[:10]
        temporary = torch.ones(500) + 1
        assert tracker.live_bytes == 4000 + 2000
        del temporary
        assert (tracker.live_bytes, tracker.peak_bytes) == (4000, 8000)
        assert view.shape == (10,)


def test_tracker_follows_resized_storages() -> None:
    with FakeTensorMode(), MemoryTracker() as tracker, tracker.track_resizes():
        gathered = torch.zeros(1000)
        gathered.untyped_storage().resize_(0)
        assert tracker.live_bytes == 0
