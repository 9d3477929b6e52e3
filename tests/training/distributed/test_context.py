"""Ranks in a layout."""

import pytest
import torch

from regard.training.distributed.context import DistributedContext
from regard.training.distributed.layout import ParallelLayout


def test_first_rank_of_each_host_reads_for_its_host() -> None:
    group = DistributedContext.__new__(DistributedContext)  # without a process group
    group.ranks_per_host = 4
    firsts = []
    for group.rank in range(8):
        firsts.append(group.is_first_on_host)
    assert firsts == [True, False, False, False] * 2


@pytest.mark.parametrize(
    "layout", [ParallelLayout(shards=3, tensor=2), ParallelLayout(shards=2, tensor=3), ParallelLayout(2, 2, 2)]
)
def test_data_rank_tensor_partners_share_batches(layout: ParallelLayout) -> None:
    """The mesh numbers the ranks with the tensor dimension last."""
    groups = torch.arange(layout.world_size).view(layout.data_world_size, layout.tensor)
    for data_rank, partners in enumerate(groups.tolist()):
        for rank in partners:
            group = DistributedContext.__new__(DistributedContext)  # without a process group
            group.rank, group.ranks_per_host = rank, layout.world_size
            group.layout = layout
            assert group.data_rank == data_rank
