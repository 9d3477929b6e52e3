"""Ranks in a layout."""

import pytest
import torch

from regard.training.distributed.context import ProcessGroup
from regard.training.distributed.layout import Layout


@pytest.mark.parametrize("layout", [Layout(shards=3, tensor=2), Layout(shards=2, tensor=3), Layout(2, 2, 2)])
def test_data_rank_tensor_partners_share_batches(layout: Layout) -> None:
    """The mesh numbers the ranks with the tensor dimension last."""
    groups = torch.arange(layout.world_size).view(layout.data_world_size, layout.tensor)
    for data_rank, partners in enumerate(groups.tolist()):
        for rank in partners:
            group = ProcessGroup.__new__(ProcessGroup)  # without a process group
            group.rank, group.layout = rank, layout
            assert group.data_rank == data_rank
