"""Validation in evaluation mode, scored by the task; sharded models generate text with a copy on rank 0."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.labels import IGNORE_INDEX
from regard.config.model import AnyModelConfig
from regard.config.task_spec import Metric
from regard.config.training import ValidationConfig
from regard.data.batches.batch import Batch
from regard.data.batches.loader import Loader
from regard.measure.metric import MetricFunction
from regard.models.loss.sums import LossSums
from regard.store.examples import ValidationExample
from regard.tasks.task import find_task
from regard.tasks.validation import Scores, ValidationContext
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.distributed.processes import SingleProcess
from regard.training.gathered import gather_model
from regard.training.objective import Objective
from regard.training.precision import Precision, autocast

HIGHER_IS_BETTER: frozenset[Metric] = frozenset({"accuracy", "f1", "retrieval_at_1", "bleu", "chrf"})


def is_better(metric: Metric, new: float, old: float | None) -> bool:
    """Whether a score improves on the best so far; NaN and infinity never do.

    >>> is_better("loss", 1.9, 2.0), is_better("bleu", 30.0, 31.0), is_better("loss", math.nan, None)
    (True, False, False)
    """
    if not math.isfinite(new):
        return False
    return old is None or (new > old if metric in HIGHER_IS_BETTER else new < old)


class Validator:
    """Scores a model on the validation corpus or a fixed random sample; every call uses the same examples."""

    def __init__(
        self,
        objective: Objective,
        loader: Loader,
        examples: Sequence[ValidationExample],
        tokenizers: TokenizerPair | None,
        model_settings: AnyModelConfig,
        settings: ValidationConfig,
        *,
        precision: Precision,
        seed: int,
        processes: SingleProcess | None = None,
        metrics: Mapping[str, MetricFunction] | None = None,
    ) -> None:
        self._objective, self._processes = objective, processes or SingleProcess()
        self.loader, self._settings, self._precision = loader, settings, precision
        self._task = find_task(model_settings.task)
        self._context = ValidationContext(
            self._score_batch,
            loader,
            examples,
            tokenizers,
            model_settings,
            settings,
            seed,
            self._processes,
            metrics or {},
        )

    def __call__(self) -> Scores:
        """Compute all scores; restores the model's previous mode."""
        objective, context = self._objective, self._context
        was_training = objective.training
        objective.eval()
        context.errors.clear()
        try:
            with torch.inference_mode():
                values = self._task.validate(context)
            outputs = self._score_outputs()
        finally:
            objective.train(was_training)
            self._processes.end_evaluation()
        values = self._processes.broadcast(
            {**values, **outputs.values}, patient=True
        )  # identical decisions need identical bits
        metric: str = self._settings.metric
        errors = {metric: context.errors[metric]} if metric in context.errors else {}
        return Scores(values, outputs.samples, errors, outputs.signatures)

    def count_labels(self) -> NDArray[np.int64]:
        """Count the labels in this rank's share of the batches; empty if the labels are not classes."""
        counts = np.zeros(0, np.int64)
        for batch in self._context.iter_batches() if self._task.counts_labels else ():
            new = np.bincount(batch.labels[batch.labels != IGNORE_INDEX].numpy(), minlength=counts.size)
            new[: counts.size] += counts
            counts = new.astype(np.int64)
        return counts

    def estimate_steps(self, step_tokens: int) -> float:
        """Estimate the cost of a validation, in training steps.

        A forward pass costs a third of a training step; generating a token costs about one training token.
        """
        rows, shards = self.loader.rows, self.loader.shards
        lengths = (rows.row_lengths(shard.lengths[: len(rows.needs)]) for shard in shards.shards)
        tokens = sum(int(row_lengths.sum(dtype=np.int64)) for row_lengths in lengths)
        generated = self._settings.sentences * tokens / max(len(shards), 1)
        return (min(tokens, self._settings.max_tokens or tokens) / 3 + generated) / step_tokens

    @property
    def generates(self) -> bool:
        """Whether a validation generates text, for scores or samples."""
        return self._task.generates(self._context)

    def _score_batch(self, batch: Batch) -> LossSums:
        with autocast(next(self._objective.model.parameters()).device.type, self._precision):
            return self._objective(batch)

    def _score_outputs(self) -> Scores:
        """Score generated text. Ranks with full models share the work; otherwise rank 0 uses a copy."""
        processes, context = self._processes, self._context
        if not processes.is_sharded or not self.generates:
            return self._task.score_outputs(context, self._objective.model)
        model = gather_model(self._objective.model, context.model_settings, processes)
        with processes.on_rank_zero():
            alone = replace(context, ranks=SingleProcess())
            return Scores() if model is None else self._task.score_outputs(alone, model)
