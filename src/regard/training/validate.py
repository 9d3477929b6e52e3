"""Validation: loss, accuracy, and the quality of the model's output on held-out text."""

import math
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np
import torch
from numpy.typing import NDArray

from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig
from regard.config.run import LABEL_TASKS
from regard.config.training import Metric, ValidationConfig
from regard.data.batches.arrays import IGNORE_INDEX
from regard.data.batches.batch import Batch
from regard.data.batches.loader import Loader
from regard.lora import find_scale, merge_weights
from regard.measure.bleu_chrf import bleu, chrf
from regard.measure.classification import make_confusion_matrix
from regard.measure.entities import count_entities, has_entities
from regard.measure.likelihood import bits_per_byte, perplexity
from regard.measure.retrieval import retrieval_at_1
from regard.measure.sentence_chrf import sentence_chrf
from regard.models.build import AnyModel, build
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.pipeline.generator import TextGenerator
from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator
from regard.store.examples import ValidationExample
from regard.store.weights import get_weights
from regard.text.special_marks import remove_marks
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.distributed.processes import SingleProcess
from regard.training.events import SampleOutput
from regard.training.objective import Objective
from regard.training.precision import Precision, autocast

HIGHER_IS_BETTER: frozenset[Metric] = frozenset({"accuracy", "f1", "retrieval_at_1", "bleu", "chrf"})
PROMPT_CHARACTERS = 40  # characters of the prompt of a sample continuation
CONTINUATION_TOKENS = 60  # tokens of a sample continuation


@dataclass(frozen=True)
class Scores:
    """Scores of a validation, sample outputs and the signatures of BLEU and chrF."""

    values: dict[str, float] = field(default_factory=dict)
    samples: tuple[SampleOutput, ...] = ()
    errors: dict[str, float] = field(default_factory=dict)  # standard errors of values from a part of the corpus
    signatures: dict[str, str] = field(default_factory=dict)


def is_better(metric: Metric, new: float, old: float | None) -> bool:
    """Whether a score improves on the best so far; NaN and infinity never do.

    >>> is_better("loss", 1.9, 2.0), is_better("bleu", 30.0, 31.0), is_better("loss", math.nan, None)
    (True, False, False)
    """
    if not math.isfinite(new):
        return False
    return old is None or (new > old if metric in HIGHER_IS_BETTER else new < old)


def proportion_error(share: float, count: int) -> float:
    """Return the standard error of a share among `count` samples.

    >>> proportion_error(0.5, 100)
    0.05
    """
    return math.sqrt(max(share * (1 - share), 0.0) / max(count, 1))


def _ratio_error(loss: float, labels: float, batches: float, squares: float, products: float, labels2: float) -> float:
    """Return the standard error of a loss per label from a random sample of batches (Cochran 1977, section 2.11)."""
    residuals = squares - 2 * loss * products + loss**2 * labels2  # sum of (likelihood - loss x labels)^2
    return math.sqrt(max(residuals, 0.0) * batches / max(batches - 1, 1)) / max(labels, 1)


class Validator:
    """Scores a model on the validation corpus, or on a fixed random part of it; every call uses the same examples."""

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
    ) -> None:
        self._objective, self._processes = objective, processes or SingleProcess()
        self.loader = loader
        self._examples, self._tokenizer_pair = examples, tokenizers
        self._model_settings, self._settings, self._precision, self._seed = model_settings, settings, precision, seed
        self._target_bytes: int | None = None
        self._pairs: list[ValidationExample] | None = None  # the examples that are translated
        self._max_batches = None  # that are scored; two at least, so that their error can be estimated
        if settings.max_tokens is not None:
            self._max_batches = max(2, -(-settings.max_tokens // loader.order.settings.max_tokens))
        self._all_labels: float | None = None  # in the whole corpus
        self._errors: dict[str, float] = {}  # of the last validation

    @property
    def _tokenizers(self) -> TokenizerPair:
        assert self._tokenizer_pair is not None  # noqa: S101 - only models of text generate and count bytes
        return self._tokenizer_pair

    def __call__(self) -> Scores:
        """Compute all scores; the model returns to its previous mode."""
        objective = self._objective
        was_training = objective.training
        objective.eval()
        self._errors = {}
        try:
            with torch.inference_mode():
                values = self._score()
            outputs = self._score_outputs()
        finally:
            objective.train(was_training)
            self._processes.end_evaluation()
        values = self._processes.broadcast(
            {**values, **outputs.values}, patient=True
        )  # equal decisions need equal bits
        metric: str = self._settings.metric
        errors = {metric: self._errors[metric]} if metric in self._errors else {}
        return Scores(values, outputs.samples, errors, outputs.signatures)

    def iter_batches(self) -> Iterator[Batch]:
        """Yield this rank's share of the batches that are scored."""
        return self.loader.iter_epoch(0, self._max_batches)

    def count_labels(self) -> NDArray[np.int64]:
        """Count how often each label occurs in this rank's share of the batches; empty if labels are no classes."""
        counts = np.zeros(0, np.int64)
        if self._model_settings.head.kind not in ("none", "pixels"):
            for batch in self.iter_batches():
                new = np.bincount(batch.labels[batch.labels != IGNORE_INDEX].numpy(), minlength=counts.size)
                new[: counts.size] += counts
                counts = new.astype(np.int64)
        return counts

    def estimate_steps(self, step_tokens: int) -> float:
        """Estimate the cost of a validation, in training steps.

        A forward pass costs a third of a training step; generating a token costs about one training token.
        """
        task = self.loader.task
        rows = (task.row_lengths(shard.lengths[: len(task.needs)]) for shard in self.loader.shards.shards)
        tokens = sum(int(lengths.sum(dtype=np.int64)) for lengths in rows)
        generated = self._settings.sentences * tokens / max(len(self.loader.shards), 1)
        return (min(tokens, self._settings.max_tokens or tokens) / 3 + generated) / step_tokens

    def _score(self) -> dict[str, float]:
        task = self._model_settings.task
        if task in LABEL_TASKS:
            return self._score_labels()
        return self._score_pairs() if task == "embed" else self._score_loss()

    def _score_pairs(self) -> dict[str, float]:
        """Compute the loss in batches, and the retrieval among all pairs."""
        loss = 0.0
        vectors: list[NDArray[np.float32]] = []  # (2, B, D) of each batch
        for batch in self.loader.iter_epoch(0):
            with autocast(next(self._objective.model.parameters()).device.type, self._precision):
                loss_sums = self._objective(batch)
            loss += float(loss_sums.negative_log_likelihood)
            assert loss_sums.predictions is not None  # noqa: S101 - embedders have them in evaluation mode
            vectors.append(loss_sums.predictions.float().cpu()[:, batch.labels != IGNORE_INDEX].numpy())
        joined = np.concatenate(vectors, axis=1)
        loss, count = self._processes.sum([loss, float(joined.shape[1])])
        if self._processes.world_size > 1:
            joined = self._gather_vectors(joined)
        return {"loss": loss / max(count, 1), "retrieval_at_1": retrieval_at_1(joined[0], joined[1])}

    def _gather_vectors(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the vectors (2, N, D) of all data ranks."""
        processes = self._processes
        text = b64encode(np.ascontiguousarray(vectors, "<f4").tobytes()).decode()
        shares = processes.all_gather(text, patient=True)[:: processes.world_size // processes.data_world_size]
        width = vectors.shape[2]
        parts = [np.frombuffer(b64decode(share), "<f4").reshape(2, -1, width) for share in shares]
        return np.concatenate(parts, axis=1)

    def _score_loss(self) -> dict[str, float]:
        negative_log_likelihood, correct, count = 0.0, 0.0, 0.0
        moments = np.zeros(4)  # number of batches, and sums of likelihood^2, likelihood x labels, labels^2
        for batch in self.iter_batches():
            with autocast(next(self._objective.model.parameters()).device.type, self._precision):
                loss_sums = self._objective(batch)
            negative_log_likelihood += float(loss_sums.negative_log_likelihood)
            correct += int(loss_sums.correct)
            count += batch.label_count
            likelihood, labels = float(loss_sums.negative_log_likelihood), float(batch.label_count)
            moments += (labels > 0, likelihood**2, likelihood * labels, labels**2)
        negative_log_likelihood, correct, count, *sums = self._processes.sum(
            [negative_log_likelihood, correct, count, *moments.tolist()]
        )
        loss = negative_log_likelihood / max(count, 1)
        if self._max_batches is not None:
            self._errors = {"loss": _ratio_error(loss, count, *sums)}
        if self._model_settings.head.kind == "pixels":
            return {"loss": loss}  # a squared error is no likelihood
        values = {
            "loss": loss,
            "perplexity": perplexity(negative_log_likelihood, int(count)),
            "accuracy": correct / max(count, 1),
        }
        raster = getattr(self._model_settings, "raster", None)
        if raster is not None:
            pixels = raster.pixels * len(self.loader.shards)  # the end of an image, which is always certain, counts too
            values["bits_per_pixel"] = bits_per_byte(negative_log_likelihood, round(pixels * self._scored_share(count)))
        elif self._model_settings.task in ("translate", "causal_lm"):
            size = round(self._count_target_bytes() * self._scored_share(count))
            values["bits_per_byte"] = bits_per_byte(negative_log_likelihood, size)
        return values

    def _scored_share(self, labels: float) -> float:
        """Return the share of the corpus that this many labels are."""
        if self._max_batches is None:
            return 1.0
        if self._all_labels is None:
            (self._all_labels,) = self._processes.sum([sum(batch.label_count for batch in self.loader.iter_epoch(0))])
        return labels / max(self._all_labels, 1)

    def _score_labels(self) -> dict[str, float]:
        """Compute loss, accuracy and F1 of a classifier or tagger."""
        negative_log_likelihood = 0.0
        predicted: list[list[str]] = []  # the labels of each text
        expected: list[list[str]] = []
        names = np.array(self._model_settings.head.labels)  # type: ignore[union-attr]
        for batch in self.iter_batches():
            with autocast(next(self._objective.model.parameters()).device.type, self._precision):
                loss_sums = self._objective(batch)
            negative_log_likelihood += float(loss_sums.negative_log_likelihood)
            assert loss_sums.predictions is not None  # noqa: S101 - classifiers have them in evaluation mode
            predictions = loss_sums.predictions.cpu()
            sides = (tensor.reshape(len(tensor), -1).numpy() for tensor in (predictions, batch.labels))  # (B, 1 or T)
            for left, right in zip(*sides, strict=True):
                is_labeled = right != IGNORE_INDEX
                predicted.append(names[left[is_labeled]].tolist())
                expected.append(names[right[is_labeled]].tolist())
        if self._processes.world_size > 1:
            predicted, expected, negative_log_likelihood = self._gather_labels(
                predicted, expected, negative_log_likelihood
            )
        matrix = make_confusion_matrix(list(chain.from_iterable(predicted)), list(chain.from_iterable(expected)))
        f1 = count_entities(predicted, expected).f1 if has_entities(names.tolist()) else matrix.macro_f1
        values = {"loss": negative_log_likelihood / matrix.total, "accuracy": matrix.accuracy, "f1": f1}
        if self._max_batches is not None:
            self._errors = {name: proportion_error(values[name], matrix.total) for name in ("accuracy", "f1")}
        return values

    def _gather_labels(
        self, predicted: list[list[str]], expected: list[list[str]], negative_log_likelihood: float
    ) -> tuple[list[list[str]], list[list[str]], float]:
        """Return the labels and the likelihood of all data ranks."""
        processes = self._processes
        shares = processes.all_gather([predicted, expected, negative_log_likelihood], patient=True)
        shares = shares[:: processes.world_size // processes.data_world_size]  # tensor-parallel ranks repeat theirs
        all_predicted = [labels for share in shares for labels in share[0]]
        return all_predicted, [labels for share in shares for labels in share[1]], sum(share[2] for share in shares)

    def _count_target_bytes(self) -> int:
        """Count the bytes of the target text, once."""
        if self._target_bytes is None:
            decode = self._tokenizers.target.decode
            texts = (decode(tokens) for tokens in self.loader.iter_targets())
            self._target_bytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        return self._target_bytes

    def _score_outputs(self) -> Scores:
        """Score what the model generates. Ranks with whole models share the translations; else rank 0 has a copy."""
        processes = self._processes
        if not processes.is_sharded or not self.generates:
            return self._score_model_outputs(self._objective.model, processes)
        model = build(self._model_settings).eval() if processes.is_main else None
        copies = {} if model is None else get_weights(model)
        adapters: dict[str, torch.Tensor] = {}  # not part of the copy
        for name, weight in get_weights(self._objective.model).items():
            whole = processes.full_tensor(weight)
            if name in copies:
                copies[name].copy_(whole)
            elif processes.is_main:
                adapters[name] = whole
        for name, weight in merge_weights({**copies, **adapters}, find_scale(self._objective.model)).items():
            copies[name].copy_(weight)
        with processes.on_rank_zero():
            return Scores() if model is None else self._score_model_outputs(model, SingleProcess())

    @property
    def generates(self) -> bool:
        """Whether a validation generates text, for scores or samples."""
        return self._model_settings.task in ("translate", "causal_lm") and bool(
            self._settings.sentences or self._settings.samples
        )

    def _score_model_outputs(self, model: AnyModel, processes: SingleProcess) -> Scores:
        settings = self._model_settings
        if isinstance(model, EncoderDecoder) and isinstance(settings, EncoderDecoderConfig):
            return (
                self._score_translations(Translator(model, self._tokenizers, settings), processes)
                if settings.task == "translate"
                else Scores()
            )
        if isinstance(model, DecoderOnly) and isinstance(settings, DecoderOnlyConfig):
            return (
                self._sample_continuations(TextGenerator(model, self._tokenizers, settings))
                if settings.task == "causal_lm" and processes.is_main
                else Scores()
            )
        return Scores()

    def _score_translations(self, translator: Translator, processes: SingleProcess) -> Scores:
        if self._pairs is None:
            count = max(self._settings.sentences, self._settings.samples)
            self._pairs = list(islice(filter(self._fits_batch, self._examples), count))
        pairs = self._pairs
        if not pairs:
            return Scores()
        has_language_tags = bool(self._tokenizers.source.specials.languages)
        share = pairs[processes.rank :: processes.world_size]
        translations = translator.translate(
            [pair.source for pair in share],
            Beam(1),
            target_language=[pair.languages[-1] for pair in share] if has_language_tags else None,
        )
        texts = processes.all_gather([translation.text for translation in translations], patient=True)  # by rank
        outputs = [texts[index % processes.world_size][index // processes.world_size] for index in range(len(pairs))]
        references = [pair.target or "" for pair in pairs]
        samples = tuple(
            SampleOutput(pair.source, output, pair.target or "")
            for pair, output in zip(pairs[: self._settings.samples], outputs, strict=False)
        )
        if not self._settings.sentences:
            return Scores({}, samples)
        scores = {"bleu": bleu(outputs, references), "chrf": chrf(outputs, references)}
        values = {name: score.value for name, score in scores.items()}
        if len(pairs) < len(self.loader.shards):
            chrfs = [sentence_chrf(output, reference) for output, reference in zip(outputs, references, strict=True)]
            self._errors["chrf"] = float(np.std(chrfs)) / math.sqrt(len(chrfs))
        return Scores(values, samples, signatures={name: score.signature for name, score in scores.items()})

    def _fits_batch(self, pair: ValidationExample) -> bool:
        """Whether a pair is short enough for a training batch; longer pairs are not translated."""
        if pair.target is None:
            return False
        sides = ((self._tokenizers.source, pair.source), (self._tokenizers.target, pair.target))
        lengths = np.array([[len(tokenizer.encode_ids([text])[0])] for tokenizer, text in sides])
        return int(self.loader.task.row_lengths(lengths).max()) <= self.loader.order.settings.length_limit

    def _sample_continuations(self, text_generator: TextGenerator) -> Scores:
        samples = []
        limit = text_generator.settings.decoder.max_positions
        for example in self._examples[: self._settings.samples]:
            prompt, rest = example.source[:PROMPT_CHARACTERS], example.source[PROMPT_CHARACTERS:]
            if example.target is not None:  # a prompt and its response
                prompt, rest = example.source, example.target
            prompt_length = 1 + len(self._tokenizers.source.encode_ids([prompt])[0])
            tokens = CONTINUATION_TOKENS if limit is None else min(CONTINUATION_TOKENS, limit - prompt_length)
            text = "".join(text_generator.stream(prompt, max_new_tokens=tokens, seed=self._seed)) if tokens > 0 else ""
            samples.append(SampleOutput(remove_marks(prompt), text, rest[: len(text)]))
        return Scores({}, tuple(samples))
