"""Processes of several ranks."""

import torch

from regard.training.distributed.processes import SingleProcess
from regard.training.events import Event, Message
from regard.training.run import _set_threads
from tests.training.runs import make_small_run


def test_a_rank_uses_its_share_of_the_cores() -> None:
    files = {name: name for name in ("all.en", "all.de", "book.txt")}
    run, threads = make_small_run("translation", files, {"device.threads": 4}), torch.get_num_threads()
    messages: list[Event] = []
    try:
        for world_size, expected in ((2, 2), (1, 4)):
            torch.set_num_threads(2)  # as the launcher of two ranks does on four cores
            processes = SingleProcess()
            processes.world_size = world_size
            _set_threads(run, processes, messages.append)
            assert torch.get_num_threads() == expected
    finally:
        torch.set_num_threads(threads)
    assert [message.text for message in messages if isinstance(message, Message)] == [
        "device.threads is 4, but the share of a rank is 2: each rank uses 2."
    ]
