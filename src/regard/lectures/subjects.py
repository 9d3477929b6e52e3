"""The subjects of `regard lectures show`: each prints one worked example."""

from collections.abc import Callable, Iterator

import torch

from regard.base.errors import RegardError
from regard.lectures import (
    block,
    cost,
    heads,
    interface,
    learned,
    pairs,
    residuals,
    searches,
    shapes,
    traps,
    tricks,
    word2vec,
    worked_numbers,
)

_MODULES = (
    worked_numbers,
    searches,
    learned,
    cost,
    block,
    heads,
    interface,
    pairs,
    residuals,
    shapes,
    traps,
    tricks,
    word2vec,
)
SUBJECTS: dict[str, Callable[[], Iterator[str]]] = {
    name: function for module in _MODULES for name, function in module.SUBJECTS.items()
}


def show(name: str) -> Iterator[str]:
    """Yield the lines of a subject, computed with one thread and a fixed seed."""
    if name not in SUBJECTS:
        raise RegardError(f"'{name}' is not a subject.", hint=f"Choose one of {', '.join(SUBJECTS)}.")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    try:
        yield from SUBJECTS[name]()
    finally:
        torch.set_num_threads(threads)
