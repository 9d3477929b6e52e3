"""Pipeline requests: the inputs of `Pipeline.run`, and the options of `Pipeline.replay`."""

from dataclasses import dataclass
from typing import Any

from regard.tasks.search import Beam, Sampling, Search
from regard.text.glossary import Term

NO_SEARCH = Beam(1)  # for models that do not generate: all their requests share batches


@dataclass(frozen=True)
class BatchOptions:
    """Options shared by all requests of a batch."""

    search: Search = NO_SEARCH
    n_best: int = 1
    max_new_tokens: int | None = None
    forbidden: tuple[str, ...] = ()
    adapter: str | None = None
    batch_tokens: int = 4096


@dataclass(frozen=True, eq=False)
class ModelRequest:
    """One input of a request: a text, or a decoded image or audio clip."""

    item: Any
    target_language: str | None = None
    prefix: str = ""
    required: tuple[str | Term, ...] = ()
    seed: int | None = None
    should_align: bool = False
    should_calibrate: bool = False
    should_score: bool = False
    size: int = 0
    """Number of input tokens or vectors, set by `Pipeline.encode_request`."""
    tokens: list[int] | None = None
    """The tokens, if the pipeline reuses them."""


@dataclass(frozen=True)
class ReplayOptions:
    """Generation options; see `look_into`."""

    search: Beam | Sampling | None = None
    n_best: int = 1
    max_new_tokens: int | None = None
    target_language: str | None = None
    seed: int | None = 0


DEFAULT_OPTIONS = ReplayOptions()
