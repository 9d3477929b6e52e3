"""Training events. The trainer emits them; listeners display, log or forward them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from regard.base.formatting import CompactRepr
from regard.data.example import SampleOutput

if TYPE_CHECKING:
    from regard.tasks.load import AnyDevice, AnyPipeline


@dataclass(frozen=True, repr=False)
class Message(CompactRepr):
    """A message to the user, e.g. a choice with its reason, a warning or a skipped file."""

    text: str
    kind: Literal["note", "warning", "detail"] = "note"


@dataclass(frozen=True, repr=False)
class Stage(CompactRepr):
    """A stage before training, e.g. learning the vocabulary, writing shards or tuning for the device."""

    name: str
    progress: str = ""


@dataclass(frozen=True, repr=False)
class Planned(CompactRepr):
    """All settings of the run have been chosen."""

    reasons: tuple[str, ...]  # one sentence per choice, the cost, and notes about this machine


@dataclass(frozen=True, repr=False)
class Started(CompactRepr):
    """Training starts, or resumes after `step`."""

    folder: Path
    step: int  # steps done so far
    steps: int  # total of the run
    parameters: int
    samples: int  # per epoch
    validation_samples: int
    device: str
    metric: str  # selects the best model
    best_score: float | None = None  # of `metric` so far
    unit: str = "sample"  # what `samples` counts


@dataclass(frozen=True, repr=False)
class StepFinished(CompactRepr):
    """One optimizer step."""

    step: int
    epoch: int
    loss: float  # per target token, label smoothing included
    negative_log_likelihood: float  # per target token, without smoothing
    tokens: int  # tokens (or texts, or words) with a label in this step
    input_tokens: int  # source and target tokens read by the model, without padding
    learning_rate: float
    gradient_norm: float  # before clipping
    seconds: float  # wall time of this step


@dataclass(frozen=True, repr=False)
class Timed(CompactRepr):
    """Where the time of the last steps went; one value per rank in each tuple, seconds are means per step."""

    step: int
    tokens: float  # per step, of all ranks
    mfu: float  # FLOPs per second of the model relative to `peak_flops`, mean of the ranks
    peak_flops: float  # of a device: of its data sheet, or of a measured matrix product
    slowest_rank: int  # the one with the largest `work_seconds`
    seconds: tuple[float, ...]  # a step, with the wait for its batches
    data_seconds: tuple[float, ...]  # waiting for the next batches
    wait_seconds: tuple[float, ...]  # waiting for other ranks
    work_seconds: tuple[float, ...]  # `seconds` without `wait_seconds`
    cpu_seconds: tuple[float, ...]  # of all threads
    memory_bytes: tuple[int, ...]  # peak: allocated on the device, or resident on a CPU

    @property
    def summary(self) -> dict[str, float]:
        """The largest value of any rank, by name."""
        names = ("seconds", "data_seconds", "wait_seconds", "memory_bytes")
        largest = {name: max(getattr(self, name)) for name in names}
        return {**largest, "mfu": self.mfu, "slowest_rank": self.slowest_rank}


@dataclass(frozen=True, repr=False)
class Validated(CompactRepr):
    """Scores on the validation corpus."""

    step: int
    scores: Mapping[str, float]  # loss, accuracy and, depending on the task, perplexity, bits_per_byte, f1, bleu, chrf
    is_best: bool
    samples: tuple[SampleOutput, ...] = ()
    signatures: Mapping[str, str] = field(default_factory=dict, repr=False)
    seconds: float = 0.0
    errors: Mapping[str, float] = field(default_factory=dict, repr=False)  # standard errors of scores on a sample


@dataclass(frozen=True, repr=False)
class Saved(CompactRepr):
    """A checkpoint is complete on disk."""

    step: int
    path: Path


@dataclass(frozen=True, repr=False)
class Replanned(CompactRepr):
    """The number of steps changed, because the speed differs from the estimate (`train.minutes`)."""

    step: int
    steps: int  # the new total
    seconds_left: float  # of the time budget
    seconds_per_step: float


@dataclass(frozen=True, repr=False)
class Spiked(CompactRepr):
    """The loss or gradient spiked; `action` describes the response."""

    step: int
    fault: str
    action: str


@dataclass(frozen=True, repr=False)
class Diverged(Spiked):
    """The run diverged: the loss stays too high. `action` describes the response."""


StopReason = Literal["finished", "no improvement", "stop requested", "spike", "divergence"]


@dataclass(frozen=True, repr=False)
class Finished(CompactRepr):
    """The run ended, or paused until it is resumed."""

    step: int
    reason: StopReason
    folder: Path
    best_scores: Mapping[str, float] = field(default_factory=dict)
    shortfall: str = field(
        default="", compare=False, repr=False
    )  # why the model is not usable yet, and the estimated time it needs
    more_steps: int = 0  # estimated number
    rate_change: str = ""  # after a divergence: the setting to continue with, name=value

    def load(self, device: "AnyDevice" = "cpu") -> "AnyPipeline":
        """Load the best model, like `regard.load`."""
        from regard.tasks.load import load  # imports torch: only when needed

        return load(self.folder, device)


Event = (
    Message
    | Stage
    | Planned
    | Started
    | StepFinished
    | Timed
    | Validated
    | Saved
    | Replanned
    | Spiked
    | Diverged
    | Finished
)
Emit = Callable[[Event], None]
Listener = Callable[[Event], bool | None]
"""Called with every event. True requests a stop: the run saves and stops, and `regard.resume` continues it."""
