"""Progress of long work: any package reports it, and the command line draws it. Without a listener nothing happens."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Advance = Callable[[int], None]
Begin = Callable[[str, int | None], Advance]
Item = TypeVar("Item")


def _ignore(_stage: str, _total: int | None) -> Advance:
    return lambda _count: None


_begin: ContextVar[Begin] = ContextVar("begin", default=_ignore)


def begin(stage: str, total: int | None = None) -> Advance:
    """Begin a stage of the work and return the function that advances it; `total` None: the number is unknown."""
    return _begin.get()(stage, total)


def track(items: Iterable[Item], stage: str) -> Iterator[Item]:
    """Iterate over items as one stage of the work."""
    all_items = list(items)
    advance = begin(stage, len(all_items))
    for item in all_items:
        yield item
        advance(1)


@contextmanager
def listen(listener: Begin) -> Iterator[None]:
    """Let a listener begin the stages that are reported inside the block."""
    token = _begin.set(listener)
    try:
        yield
    finally:
        _begin.reset(token)
