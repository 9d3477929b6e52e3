"""Validation scores: loss, accuracy, labels, retrieval; building blocks of a task's `validate`."""

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.base.arguments import check_type
from regard.base.labels import IGNORE_INDEX
from regard.config.model import AnyModelConfig
from regard.config.training import ValidationConfig
from regard.data.batches.batch import Batch
from regard.data.batches.loader import Loader
from regard.data.example import SampleOutput
from regard.measure.classification import make_confusion_matrix
from regard.measure.entities import count_entities, has_entities
from regard.measure.likelihood import bits_per_byte, perplexity
from regard.measure.metric import MetricFunction
from regard.measure.retrieval import retrieval_at_1
from regard.models.loss.sums import LossSums
from regard.store.examples import ValidationExample
from regard.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class Scores:
    """Validation scores, sample outputs, and the signatures of BLEU and chrF."""

    values: dict[str, float] = field(default_factory=dict)
    samples: tuple[SampleOutput, ...] = ()
    errors: dict[str, float] = field(default_factory=dict)  # standard errors of values from a part of the corpus
    signatures: dict[str, str] = field(default_factory=dict)


class Ranks(Protocol):
    """The process group; ranks of a tensor-parallel group read the same batches."""

    rank: int
    world_size: int
    data_world_size: int

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the sums over all data ranks."""

    def all_gather(self, value: Any, *, patient: bool = False) -> list[Any]:
        """Return the values of all ranks."""


@dataclass
class ValidationContext:
    """Everything a task needs to validate its model."""

    score: Callable[[Batch], LossSums]
    """Returns the loss and predictions of a batch, without gradients."""
    loader: Loader
    examples: Sequence[ValidationExample]
    tokenizer_pair: TokenizerPair | None
    model_settings: AnyModelConfig
    settings: ValidationConfig
    seed: int
    ranks: Ranks
    metrics: Mapping[str, MetricFunction] = field(default_factory=dict)
    """The caller's metrics."""
    errors: dict[str, float] = field(default_factory=dict)
    """Standard errors of the last validation, set by the score functions."""
    cache: dict[str, Any] = field(default_factory=dict)
    """State that a task keeps between validations."""

    @property
    def tokenizers(self) -> TokenizerPair:
        """The tokenizers of a text model."""
        assert self.tokenizer_pair is not None  # noqa: S101 - only models of text generate and count bytes
        return self.tokenizer_pair

    @property
    def max_batches(self) -> int | None:
        """Number of scored batches, all by default; at least two, to estimate the error."""
        if self.settings.max_tokens is None:
            return None
        return max(2, -(-self.settings.max_tokens // self.loader.order.settings.max_tokens))

    def iter_batches(self) -> Iterator[Batch]:
        """Yield this rank's share of the scored batches."""
        return self.loader.iter_epoch(0, self.max_batches)

    def apply_metrics(self, outputs: Sequence[str], references: Sequence[str]) -> dict[str, float]:
        """Return the scores of the caller's metrics."""
        scores: dict[str, float] = {}
        for name, function in self.metrics.items():
            score = function(outputs, references)
            check_type(f"metrics[{name!r}](...)", score, int | float | np.floating | np.integer, "a number")
            scores[name] = float(score)
        return scores

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all data ranks."""
        return self.ranks.all_gather(value, patient=True)[:: self.ranks.world_size // self.ranks.data_world_size]

    def scored_share(self, labels: float) -> float:
        """Return the given number of labels as a share of the corpus."""
        return 1.0 if self.max_batches is None else labels / max(self._all_labels, 1)

    @cached_property
    def _all_labels(self) -> float:
        (count,) = self.ranks.sum([sum(batch.label_count for batch in self.loader.iter_epoch(0))])
        return count

    @cached_property
    def target_bytes(self) -> int:
        """Number of bytes of the target text."""
        decode = self.tokenizers.target.decode
        texts = (decode(tokens) for tokens in self.loader.iter_targets())
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def proportion_error(share: float, count: int) -> float:
    """Return the standard error of a share among `count` samples.

    >>> proportion_error(0.5, 100)
    0.05
    """
    return math.sqrt(max(share * (1 - share), 0.0) / max(count, 1))


def ratio_error(loss: float, labels: float, batches: float, squares: float, products: float, labels2: float) -> float:
    """Return the standard error of a loss per label from a random sample of batches (Cochran 1977, section 2.11)."""
    residuals = squares - 2 * loss * products + loss**2 * labels2  # sum of (likelihood - loss x labels)^2
    return math.sqrt(max(residuals, 0.0) * batches / max(batches - 1, 1)) / max(labels, 1)


@dataclass(frozen=True)
class LossTotals:
    """Sums over the scored labels of all ranks."""

    negative_log_likelihood: float
    correct: float
    labels: float

    @property
    def loss(self) -> float:
        """Mean loss per label."""
        return self.negative_log_likelihood / max(self.labels, 1)


def sum_loss(context: ValidationContext) -> LossTotals:
    """Sum the loss over all labels, and estimate its error if only part of the corpus is scored."""
    totals = np.zeros(3)  # negative log-likelihood, correct labels, labels
    moments = np.zeros(4)  # number of batches, and sums of likelihood^2, likelihood x labels, labels^2
    for batch in context.iter_batches():
        sums, labels = context.score(batch), float(batch.label_count)
        likelihood = float(sums.negative_log_likelihood)
        totals += (likelihood, int(sums.correct), labels)
        moments += (labels > 0, likelihood**2, likelihood * labels, labels**2)
    *sums_of_ranks, batches, squares, products, labels2 = context.ranks.sum([*totals.tolist(), *moments.tolist()])
    result = LossTotals(*sums_of_ranks)
    if context.max_batches is not None:
        context.errors["loss"] = ratio_error(result.loss, result.labels, batches, squares, products, labels2)
    return result


def score_loss(context: ValidationContext) -> dict[str, float]:
    """Compute loss, perplexity and accuracy."""
    return describe_loss(sum_loss(context))


def describe_loss(totals: LossTotals) -> dict[str, float]:
    """Return loss, perplexity and accuracy."""
    return {
        "loss": totals.loss,
        "perplexity": perplexity(totals.negative_log_likelihood, int(totals.labels)),
        "accuracy": totals.correct / max(totals.labels, 1),
    }


def score_text_loss(context: ValidationContext) -> dict[str, float]:
    """Compute loss, perplexity, accuracy, and bits per byte of the target text."""
    totals = sum_loss(context)
    size = round(context.target_bytes * context.scored_share(totals.labels))
    return describe_loss(totals) | {"bits_per_byte": bits_per_byte(totals.negative_log_likelihood, size)}


def score_pairs(context: ValidationContext) -> dict[str, float]:
    """Compute the contrastive loss in batches and the retrieval accuracy among all pairs."""
    loss = 0.0
    vectors: list[NDArray[np.float32]] = []  # (2, B, D) of each batch
    for batch in context.loader.iter_epoch(0):
        sums = context.score(batch)
        loss += float(sums.negative_log_likelihood)
        assert sums.predictions is not None  # noqa: S101 - embedders have them in evaluation mode
        vectors.append(sums.predictions.float().cpu()[:, batch.labels != IGNORE_INDEX].numpy())
    joined = np.concatenate(vectors, axis=1)
    loss, count = context.ranks.sum([loss, float(joined.shape[1])])
    if context.ranks.world_size > 1:
        shares = context.gather(b64encode(np.ascontiguousarray(joined, "<f4").tobytes()).decode())
        parts = [np.frombuffer(b64decode(share), "<f4").reshape(2, -1, joined.shape[2]) for share in shares]
        joined = np.concatenate(parts, axis=1)
    return {"loss": loss / max(count, 1), "retrieval_at_1": retrieval_at_1(joined[0], joined[1])}


def score_labels(context: ValidationContext) -> dict[str, float]:
    """Compute loss, accuracy and F1 of a classifier or tagger."""
    likelihood = 0.0
    predicted: list[list[str]] = []  # the labels of each text
    expected: list[list[str]] = []
    names = np.array(context.model_settings.head.labels)  # type: ignore[union-attr]
    for batch in context.iter_batches():
        sums = context.score(batch)
        likelihood += float(sums.negative_log_likelihood)
        assert sums.predictions is not None  # noqa: S101 - classifiers have them in evaluation mode
        tensors = (sums.predictions.cpu(), batch.labels)
        sides = (tensor.reshape(len(tensor), -1).numpy() for tensor in tensors)  # (B, 1 or T)
        for left, right in zip(*sides, strict=True):
            is_labeled = right != IGNORE_INDEX
            predicted.append(names[left[is_labeled]].tolist())
            expected.append(names[right[is_labeled]].tolist())
    if context.ranks.world_size > 1:
        shares = context.gather([predicted, expected, likelihood])
        predicted, expected = ([labels for share in shares for labels in share[side]] for side in range(2))
        likelihood = sum(share[2] for share in shares)
    matrix = make_confusion_matrix(list(chain.from_iterable(predicted)), list(chain.from_iterable(expected)))
    f1 = count_entities(predicted, expected).f1 if has_entities(names.tolist()) else matrix.macro_f1
    values = {"loss": likelihood / matrix.total, "accuracy": matrix.accuracy, "f1": f1}
    if context.metrics:
        values |= context.apply_metrics(*(list(chain.from_iterable(side)) for side in (predicted, expected)))
    if context.max_batches is not None:
        context.errors |= {name: proportion_error(values[name], matrix.total) for name in ("accuracy", "f1")}
    return values
