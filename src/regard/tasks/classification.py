"""Base class of image and audio classification pipelines."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, Self

import torch
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.model import ClassificationHeadConfig, EncoderOnlyConfig
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_only import EncoderOnly
from regard.nn.record import Record
from regard.store.model_folder import StoredModel
from regard.tasks.attention import RecordedAttention
from regard.tasks.encoder_logits import check_logits
from regard.tasks.evaluation.evaluable import EvaluatesLabels
from regard.tasks.inputs.adapter import MEDIA_TYPES, Item, MediaInput
from regard.tasks.pipeline import Pipeline, one_or_many
from regard.tasks.replay import ModelRun, ReplayInput, label_run
from regard.tasks.requests import DEFAULT_OPTIONS, BatchOptions, ModelRequest, ReplayOptions
from regard.tasks.text_classification import Label


class MediaClassifier(EvaluatesLabels, Pipeline, Generic[Item]):
    """Base class of pipelines whose encoder classifies media."""

    item_types = MEDIA_TYPES
    ability: ClassVar[str]
    """What the pipeline does, e.g. "classify images"."""
    hint: ClassVar[str]
    """Hint on how to get a suitable model."""
    input_class: ClassVar[type[MediaInput[Any, Any]]]

    def __init__(self, model: EncoderOnly, settings: EncoderOnlyConfig) -> None:
        head, source = settings.head, settings.source
        if not isinstance(head, ClassificationHeadConfig) or not isinstance(source, self.input_class.config_class):
            message = f"This model's task is '{settings.task}': it does not {self.ability}."
            raise RegardError(message, hint=self.hint)
        self.model: EncoderOnly = model
        self.settings: EncoderOnlyConfig = settings
        self.input: MediaInput[Item, Any] = self.input_class(source, settings.encoder.max_positions)
        self.labels = head.labels

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Return the pipeline of a stored model, without a tokenizer."""
        return cls(stored.model, stored.settings)  # type: ignore[arg-type]

    def predict(self, inputs: Sequence[Item], *, report: Callable[[int], None] = lambda _: None) -> list[Label]:
        """Classify each file, for `regard predict`."""
        return self.classify(inputs, report)

    @one_or_many
    def classify(self, items: Sequence[Item], report: Callable[[int], None] = lambda _: None) -> list[Label]:
        """Classify one or several images or audio clips.

        Args:
            items: Files or arrays. An image has 8-bit values, (height, width) or (height, width, 3), and is converted
                to the size and channels of the training images. An audio clip has 16-bit samples at the training sample
                rate.
            report: Called after each batch with the number of classified inputs.

        Returns:
            The result for one input, or a list of results.
        """
        labels: dict[int, Label] = {}
        for indices, loaded in self.input.batches(items):
            labels |= dict(zip(indices, self._classify_loaded(loaded), strict=True))
            report(len(indices))
        return [labels[index] for index in range(len(items))]

    def run(self, requests: Sequence[ModelRequest], options: BatchOptions) -> list[Label]:  # noqa: ARG002
        """Classify the inputs of requests."""
        return self.classify([request.item for request in requests])

    def record(self, item: Item) -> RecordedAttention:
        """Record the model's attention for an input; vectors are named by their position."""
        loaded, record = self.input.load(item), Record()
        with torch.inference_mode(), eval_mode(self.model):
            self.model(self.input.stack([loaded], self.device)[0], record=record)
        return RecordedAttention(tuple(self.input.name_vectors(loaded)), (), record)

    def replay(self, text: str, options: ReplayOptions = DEFAULT_OPTIONS) -> ModelRun:  # noqa: ARG002
        """Classify a file in a recordable way."""
        loaded = self.input.load(text)
        (label,), (media, _) = self._classify_loaded([loaded]), self.input.stack([loaded], self.device)
        inputs = ReplayInput(self.model, media=media, vectors=self.input.count_vectors(loaded))
        return replace(label_run(inputs, label.label, label.probabilities), drawn=self.input.draw(loaded, text))

    @property
    def vocabulary_sizes(self) -> dict[str, int]:
        """Return an empty result: the model has no tokenizer."""
        return {}

    def warm_up(self) -> None:
        """Classify the smallest input."""
        self.predict(self.input.samples())

    def _classify_loaded(self, loaded: Sequence[NDArray[Any]]) -> list[Label]:
        source, valid = self.input.stack(loaded, self.device)
        with torch.inference_mode(), eval_mode(self.model):
            logits = self.model(source, valid).float()
        check_logits(logits)
        return [Label.choose(self.labels, row) for row in logits.softmax(dim=-1).tolist()]

    def _describe(self) -> list[str]:
        return [f"{self.settings.task} with {pluralize(len(self.labels), 'label')}"]
