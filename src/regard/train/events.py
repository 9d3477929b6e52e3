"""What happens in a run, as plain facts. The trainer tells its listeners; they draw, log or forward."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Message:
    """Something a person should know: a choice and its reason, a warning, a file that was left out."""

    text: str
    kind: Literal["note", "warning"] = "note"


@dataclass(frozen=True)
class Stage:
    """A stage before training that takes a while: learning a vocabulary, writing shards, probing the device."""

    name: str
    progress: str = ""


@dataclass(frozen=True)
class Started:
    """The first update is about to be made, or, resumed, the one after `update`."""

    folder: Path
    update: int  # made so far
    updates: int  # of the whole run, from its beginning
    parameters: int
    samples: int  # of an epoch
    validation_samples: int
    device: str
    metric: str  # what "best" means
    best_score: float | None = None  # of it so far


@dataclass(frozen=True)
class Updated:
    """One step of the optimizer."""

    update: int
    epoch: int
    loss: float  # per target token, label smoothing included
    negative_log_likelihood: float  # per target token, without smoothing
    tokens: int  # target tokens that were learned from
    learning_rate: float
    gradient_norm: float  # its norm before clipping
    seconds: float  # wall time of this update


@dataclass(frozen=True)
class SampleOutput:
    """One output of the model beside what was asked for."""

    source: str
    output: str
    reference: str


@dataclass(frozen=True)
class Validated:
    """Scores on the validation corpus."""

    update: int
    scores: Mapping[str, float]  # loss, perplexity, bits_per_byte, accuracy; bleu and chrf where asked for
    is_best: bool
    samples: tuple[SampleOutput, ...] = ()
    signatures: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True)
class Saved:
    """A checkpoint is whole and on disk."""

    update: int
    path: Path


@dataclass(frozen=True)
class Spiked:
    """A loss or gradient that was not finite or far off, and what was done."""

    update: int
    fault: str
    action: str


StopReason = Literal["finished", "no longer better", "asked to stop", "spike"]


@dataclass(frozen=True)
class Finished:
    """The run is over, or rests until it is resumed."""

    update: int
    reason: StopReason
    folder: Path
    best_scores: Mapping[str, float] = field(default_factory=dict)


Event = Message | Stage | Started | Updated | Validated | Saved | Spiked | Finished
Listener = Callable[[Event], None]
