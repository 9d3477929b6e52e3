"""Base class of tasks, used by training, `look`, the server and the commands.

A task defines how stored samples become rows, the loss, the validation scores, and the pipeline. A task that reuses
Regard's inputs and heads is one class with few methods (docs/extending/task.md); a package registers it through the
entry-point group `regard.tasks` (`regard.config.task_spec`).

Pipelines are loaded through their task, so this module imports training code for type checkers only.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

import torch

from regard.base.errors import RegardError
from regard.config.task_spec import TaskSpec, find_spec
from regard.tasks.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch import Tensor

    from regard.config.model import AnyModelConfig
    from regard.config.run import AugmentationConfig, RunConfig, SpecAugmentConfig
    from regard.data.batches.batch import Batch
    from regard.data.batches.rows import RowMaker
    from regard.data.example import Example
    from regard.data.shards.shard import Shards
    from regard.models.build import AnyModel
    from regard.models.loss.sums import LossSettings, LossSums
    from regard.store.examples import ValidationExample
    from regard.store.model_folder import StoredModel
    from regard.tasks.film_probe import FilmProbe
    from regard.tasks.validation import Scores, ValidationContext
    from regard.text.tokenizer_pair import TokenizerPair

AnyAugmentation: TypeAlias = "AugmentationConfig | SpecAugmentConfig | None"


class LossContext(Protocol):
    """Arguments of a loss."""

    @property
    def model(self) -> AnyModel:
        """The model."""

    @property
    def options(self) -> object:
        """Task options of the run (`task_options`), if any."""

    @property
    def settings(self) -> LossSettings:
        """Label smoothing and logit chunking; in evaluation mode without smoothing, but with predictions."""

    def read(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Move a batch to the model's device; return its hidden states (B, T, D) and their padding mask."""


class Task:
    """The base class of tasks."""

    pipeline_class: ClassVar[type[Pipeline]] = Pipeline
    """The pipeline for this task."""
    text_sides: ClassVar[tuple[str, ...]] = ("source",)
    """Sides of the examples from which the vocabulary is learned."""
    counts_labels: ClassVar[bool] = True
    """Whether labels are classes or tokens, whose entropy is a baseline for the loss."""
    passes: ClassVar[int] = 1
    """Forward passes per batch."""
    has_length_ratio: ClassVar[bool] = False
    """Whether the corpus determines the maximum output length relative to the input."""

    def __init__(self, spec: TaskSpec) -> None:
        self.spec = spec

    def examples(self, example: Example) -> Iterable[Example]:
        """Convert a corpus example into training examples; by default the example itself."""
        return (example,)

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Return the shards and the row format of their samples.

        Args:
            run: The settings.
            shards: A corpus split; some tasks split its long texts.
            tokenizers: Source and target tokenizers; None if the model neither reads nor writes text.
            augmentation: Random augmentation of images or audio clips; None for validation.

        Raises:
            RegardError: The task does not support this corpus.
        """
        raise NotImplementedError

    def loss(self, context: LossContext, batch: Batch) -> LossSums:
        """Return the loss of a batch; by default the head's loss at the labeled positions."""
        from regard.data.batches.batch import drop_trivial_masks

        x, valid = context.read(drop_trivial_masks(batch))
        return context.model.head.loss(x, batch.labels, valid, context.settings)  # type: ignore[operator]

    def validate(self, context: ValidationContext) -> dict[str, float]:
        """Score the model on the validation batches."""
        from regard.tasks.validation import score_loss

        return score_loss(context)

    def score_outputs(self, context: ValidationContext, model: AnyModel) -> Scores:  # noqa: ARG002
        """Score generated outputs and return samples; empty by default."""
        from regard.tasks.validation import Scores

        return Scores()

    def generates(self, context: ValidationContext) -> bool:  # noqa: ARG002
        """Return whether `score_outputs` runs the model."""
        return False

    def film_probes(
        self,
        examples: Sequence[ValidationExample],  # noqa: ARG002
        tokenizers: TokenizerPair | None,  # noqa: ARG002
        settings: AnyModelConfig,  # noqa: ARG002
    ) -> Iterator[FilmProbe]:
        """Yield the examples that a training film can follow.

        Raises:
            RegardError: The task does not support films.
        """
        hint = "Set train.film_points = 0, or leave out --film."
        raise RegardError(f"The task '{self.spec.name}' does not support a training film.", hint=hint)

    def label_share(self, run: RunConfig) -> float:  # noqa: ARG002
        """Return the fraction of labeled positions."""
        return 1.0

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return a batch of random inputs in this task's shape, for timing."""
        raise NotImplementedError

    def pipeline(self, stored: StoredModel) -> Pipeline:
        """Return the pipeline of a stored model.

        Raises:
            RegardError: The task has no pipeline.
        """
        pipeline = self.pipeline_class.from_stored(stored)
        pipeline.examples = self.examples  # type: ignore[method-assign]
        return pipeline


@cache
def find_task(name: str) -> Task:
    """Import a task by name, built-in or from an installed package.

    Raises:
        RegardError: The task does not exist.
    """
    spec = find_spec(name)
    task: Task = spec.load()(spec)
    return task


def make_synthetic_batch(labels: Tensor, **inputs: Tensor | None) -> Batch:
    """Return a batch with these labels, (B) or (B, T), and inputs."""
    from regard.data.batches.batch import Batch

    zeros = torch.zeros(labels.size(0), dtype=torch.long)  # (B)
    return Batch(0, labels, zeros, zeros, **inputs)


def random_tokens(run: RunConfig, rows: int, length: int) -> Tensor:
    """Return random tokens (B, T) from the smaller vocabulary of a text model."""
    tables = [getattr(run.model, side) for side in ("source", "target", "tokens") if hasattr(run.model, side)]
    return torch.randint(0, min(table.vocabulary for table in tables if table.kind == "tokens"), (rows, length))


def make_text_pair_batch(run: RunConfig, rows: int, length: int) -> Batch:
    """Return a batch of random tokens on both sides of an encoder-decoder."""
    tokens = random_tokens(run, rows, length)
    return make_synthetic_batch(tokens, source=tokens, target=tokens)


def max_text_length(run: RunConfig) -> int:
    """Return the maximum row length of a run."""
    return min(run.data.max_length, run.data.batch_tokens)


def require_tokenizers(tokenizers: TokenizerPair | None) -> TokenizerPair:
    """Return the tokenizers of a text model."""
    assert tokenizers is not None  # noqa: S101 - only models that label images and audio clips have none
    return tokenizers


def no_pipeline(stored: StoredModel) -> RegardError:
    """Return the error for a task without a pipeline."""
    return RegardError(
        f"The task '{stored.settings.task}' has no pipeline yet.",
        location=str(stored.path),
        hint="Load the model with regard.store.model_folder.read_model and call it.",
    )
