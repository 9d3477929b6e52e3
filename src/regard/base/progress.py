"""Progress reporting for long tasks. The command line displays it; without a listener it has no effect."""

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
    """Start a stage and return a function that advances it; `total` is None if the number is unknown."""
    return _begin.get()(stage, total)


def is_shown() -> bool:
    """Whether a listener is active."""
    return _begin.get() is not _ignore


def track(items: Iterable[Item], stage: str) -> Iterator[Item]:
    """Iterate over items as one stage."""
    all_items = list(items)
    advance = begin(stage, len(all_items))
    for item in all_items:
        yield item
        advance(1)


@contextmanager
def listen(listener: Begin) -> Iterator[None]:
    """Send the stages inside the block to a listener."""
    token = _begin.set(listener)
    try:
        yield
    finally:
        _begin.reset(token)
