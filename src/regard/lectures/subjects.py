"""The subjects of `regard lectures show`: each prints one worked example."""

from collections.abc import Callable, Iterator
from types import ModuleType

import torch

from regard.base.errors import RegardError
from regard.lectures import (
    adaptation,
    cost,
    learned,
    merges,
    positions,
    searches,
    shapes,
    stacks,
    trained,
    word2vec,
    worked_numbers,
)

_MODULES = (worked_numbers, positions, searches, merges, learned, cost, stacks, shapes, adaptation, trained, word2vec)


def _list_subjects(module: ModuleType) -> dict[str, Callable[[], Iterator[str]]]:
    """Return the functions `show_NAME` of a module by their subject."""
    names = [name for name in vars(module) if name.startswith("show_")]
    return {name.removeprefix("show_").replace("_", "-"): getattr(module, name) for name in names}


SUBJECTS = {name: function for module in _MODULES for name, function in _list_subjects(module).items()}


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
