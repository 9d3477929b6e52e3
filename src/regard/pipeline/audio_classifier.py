"""Classify audio clips with an encoder."""

from collections.abc import Callable, Sequence
from typing import overload

import torch

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.inputs import MelConfig
from regard.config.model import ClassificationHeadConfig, EncoderOnlyConfig
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_only import EncoderOnly
from regard.nn.record import Record
from regard.pipeline.attention import RecordedAttention
from regard.pipeline.audio_input import AnyAudio, Spectrogram, as_audio, load_spectrogram, pad_spectrograms
from regard.pipeline.classifier import Label
from regard.pipeline.encoding import Pipeline, batch_by_length, check_logits

BATCH_FRAMES = 8192
CHUNK_AUDIO = 512  # audio clips that are loaded and sorted by length at a time


class AudioClassifier(Pipeline):
    """Classifies audio clips with an encoder.

    classifier = regard.load_audio_classifier("my-model")
    classifier.classify("seven.wav").label
    """

    kind = "classification model for audio clips"

    def __init__(self, model: EncoderOnly, settings: EncoderOnlyConfig) -> None:
        if not isinstance(settings.head, ClassificationHeadConfig) or not isinstance(settings.source, MelConfig):
            message = f"This model's task is '{settings.task}': it does not label audio clips."
            raise RegardError(message, hint="Train one that does: `regard train --audio FOLDER --out NEW`.")
        self.model: EncoderOnly = model
        self.settings: EncoderOnlyConfig = settings
        self.mel = settings.source
        self.labels = settings.head.labels

    def predict(self, inputs: Sequence[str], *, report: Callable[[int], None] = lambda _: None) -> list[Label]:
        """Classify each file; what `regard predict` does."""
        return self.classify(inputs, report)

    @overload
    def classify(self, audio: AnyAudio, report: Callable[[int], None] = ...) -> Label: ...  # type: ignore[overload-overlap]
    @overload
    def classify(self, audio: Sequence[AnyAudio], report: Callable[[int], None] = ...) -> list[Label]: ...

    def classify(
        self, audio: AnyAudio | Sequence[AnyAudio], report: Callable[[int], None] = lambda _: None
    ) -> Label | list[Label]:
        """Classify one audio clip, or each of several.

        Args:
            audio clips: .wav or .flac files, or arrays of 16-bit samples at the rate of the training audio clips.
            report: Called with the number of audio clips that were just labeled.

        Returns:
            The label of one audio clip, or a list with that of each audio clip in their order.
        """
        sequence, is_single = as_audio(audio)
        results: list[Label] = []
        for start in range(0, len(sequence), CHUNK_AUDIO):
            chunk = [load_spectrogram(clip, self.mel) for clip in sequence[start : start + CHUNK_AUDIO]]
            labels: dict[int, Label] = {}
            for indices in batch_by_length([len(spectrogram) for spectrogram in chunk], BATCH_FRAMES, 1):
                batch = self.classify_spectrograms([chunk[index] for index in indices])
                labels |= dict(zip(indices, batch, strict=True))
                report(len(indices))
            results += [labels[index] for index in range(len(chunk))]
        return results[0] if is_single else results

    def record(self, clip: AnyAudio) -> RecordedAttention:
        """Record the attention of the model while it reads a clip; vectors are named by their time in seconds."""
        spectrogram, record = load_spectrogram(clip, self.mel), Record()
        source, _ = pad_spectrograms([spectrogram], self.device)
        with torch.inference_mode(), eval_mode(self.model):
            self.model(source, record=record)
        step = self.mel.vector_seconds
        names = tuple(f"{number * step:.2f}" for number in range(self.mel.count_vectors(len(spectrogram))))
        return RecordedAttention(names, (), record)

    def classify_spectrograms(self, spectrograms: list[Spectrogram]) -> list[Label]:
        """Classify a batch of normalized spectrograms."""
        source, valid = pad_spectrograms(spectrograms, self.device)
        with torch.inference_mode(), eval_mode(self.model):
            logits = self.model(source, valid).float()
        check_logits(logits)
        return [Label.choose(self.labels, row) for row in logits.softmax(dim=-1).tolist()]

    def _describe_input(self) -> str:
        return f"audio clips of {self.mel.rate or 'any number of'} samples per second"

    def _describe(self) -> list[str]:
        return [f"{self.settings.task} with {pluralize(len(self.labels), 'label')}"]
