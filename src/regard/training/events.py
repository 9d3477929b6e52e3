"""Events of a training run. The trainer emits them; listeners display, log or forward them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from regard.base.formatting import CompactRepr

if TYPE_CHECKING:
    from regard.pipeline.load import AnyDevice, AnyPipeline


@dataclass(frozen=True, repr=False)
class Message(CompactRepr):
    """A message to the user: a choice and its reason, a warning, a skipped file."""

    text: str
    kind: Literal["note", "warning", "detail"] = "note"


@dataclass(frozen=True, repr=False)
class Stage(CompactRepr):
    """A stage before training: learning the vocabulary, writing shards, tuning for the device."""

    name: str
    progress: str = ""


@dataclass(frozen=True, repr=False)
class Planned(CompactRepr):
    """Every setting of the run is chosen."""

    reasons: tuple[str, ...]  # one sentence for each choice, the cost, and notes about this machine


@dataclass(frozen=True, repr=False)
class Started(CompactRepr):
    """Training starts or, in a resumed run, continues after `step`."""

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
    input_tokens: int  # tokens that the model read: source and target, without padding
    learning_rate: float
    gradient_norm: float  # before clipping
    seconds: float  # wall time of this step


@dataclass(frozen=True, repr=False)
class SampleOutput(CompactRepr):
    """One output of the model and its reference."""

    source: str
    output: str
    reference: str


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
    """The number of steps changed, because the run has another speed than expected (`train.minutes`)."""

    step: int
    steps: int  # the new total
    seconds_left: float  # of the time budget
    seconds_per_step: float


@dataclass(frozen=True, repr=False)
class Spiked(CompactRepr):
    """The loss or gradient spiked; `action` says how the trainer responded."""

    step: int
    fault: str
    action: str


StopReason = Literal["finished", "no improvement", "stop requested", "spike"]


@dataclass(frozen=True, repr=False)
class Finished(CompactRepr):
    """The run ended, or paused until it is resumed."""

    step: int
    reason: StopReason
    folder: Path
    best_scores: Mapping[str, float] = field(default_factory=dict)
    shortfall: str = field(default="", compare=False)  # why the model is not usable yet, and the time that it may need
    more_steps: int = 0  # that it may need

    def load(self, device: "AnyDevice" = "cpu") -> "AnyPipeline":
        """Load the best model, as `regard.load` does."""
        from regard.pipeline.load import load  # imports torch: only when needed

        return load(self.folder, device)


Event = Message | Stage | Planned | Started | StepFinished | Validated | Saved | Replanned | Spiked | Finished
Listener = Callable[[Event], None]
