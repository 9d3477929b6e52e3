"""Recipes for audio tasks: sample rate, frames and model sizes."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, ClassVar

import numpy as np

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.inputs import MEL_HOP, MelConfig
from regard.config.model import AnyModelConfig
from regard.config.run import SpecAugmentConfig
from regard.data.mel import count_frames
from regard.data.stats import CorpusStats
from regard.tasks.recipes.labels import NEW_LABELS
from regard.tasks.recipes.recipe import ADAMW, HeadRule, ModelSize, TaskRecipe, TuningRule
from regard.tasks.recipes.text_rows import TextRows
from regard.tasks.recipes.vocabulary import Characters, VocabularyRule

MAX_FRAMES = 3000  # frames of an audio clip, 30 seconds; longer clips are skipped and reported


@dataclass(frozen=True)
class AudioRows(TextRows):
    """Row format of audio clips: rows of frames, with texts as rows of tokens."""

    amount: ClassVar[str] = "this many audio clips"

    @cached_property
    def mel(self) -> MelConfig:
        """Spectrogram settings, with the sample rate.

        Raises:
            RegardError: If the clips have different sample rates, or not the parent's.
        """
        stats, mel = self.stats, getattr(self.model, "source", None)
        assert isinstance(mel, MelConfig)  # noqa: S101 - the task was chosen for such a model
        if len(stats.sample_rates) > 1:
            rates = ", ".join(f"{rate:,}" for rate in sorted(stats.sample_rates))
            (common, _), *rarer = stats.sample_rates.most_common()
            message = f"The audio clips have different sample rates: {rates}."
            location = ", ".join(f"{stats.first_of_rate[rate]} (the first of {count:,})" for rate, count in rarer)
            hint = f"Convert them to one: `ffmpeg -i IN -ar {common} OUT.wav`."
            raise RegardError(message, location=location, hint=hint)
        (rate,) = stats.sample_rates
        if self.corpus.parent is not None:
            if mel.rate not in (None, rate):
                message = f"The audio clips have {rate:,} samples per second; the model reads {mel.rate:,}."
                raise RegardError(message, hint=f"Convert them: `ffmpeg -i IN -ar {mel.rate} OUT.wav`.")
            return mel.model_copy(update={"rate": rate})
        changes = {name: self.corpus.changes.get(f"model.source.{name}") for name in ("frames", "bins")}
        requested = {name: value for name, value in changes.items() if isinstance(value, int | float) and value > 0}
        return mel.model_copy(update={"rate": rate, **requested})

    @property
    def max_frames(self) -> int:
        """The maximum number of frames of an audio clip."""
        return min(MAX_FRAMES, self._count_frames(self.stats.max_samples))

    def _count_frames(self, samples: int) -> int:
        return int(count_frames(np.array(samples), self.mel))

    @property
    def min_step_tokens(self) -> int:  # type: ignore[override]
        """Twice the frames of the longest audio clip."""
        return 2 * self.max_frames

    def check_labels(self) -> None:
        """Raise RegardError if an audio clip has neither label nor text, or the rates differ."""
        _ = self.mel
        missing = self.stats.unlabeled
        if missing and not self.stats.target.characters:
            verb = "has" if missing == 1 else "have"
            message = f"{missing:,} of {self.stats.examples:,} audio clips {verb} no label and no text."
            hint = (
                "Put the audio clips into one folder per label, or give a table: a file, a tab, and its label or text."
            )
            raise RegardError(message, hint=hint)

    def typical_length(self, vocabulary_size: int, max_length: int) -> int:  # noqa: ARG002
        """Return the frames of an audio clip of mean length."""
        return min(max_length, self._count_frames(self.stats.samples // self.stats.examples))

    def count_tokens(self, vocabulary_size: int) -> float:  # noqa: ARG002
        """Return the frames of all audio clips."""
        return float(self._count_frames(self.stats.samples))

    def measure(self, stats: CorpusStats) -> int:
        """Return the number of samples."""
        return stats.samples

    def describe_size(self) -> str:
        """Describe the number of audio clips and their labels or texts."""
        size = pluralize(self.stats.examples, "audio clip")
        if characters := self.stats.target.characters:
            return f"{size} with texts of {characters / self.stats.examples:.0f} characters"
        return f"{size} with {pluralize(len(self.labels), 'label')}"

    def explain_input(self) -> list[str]:
        """Describe how audio clips are converted to vectors."""
        mel, rate = self.mel, self.mel.rate or 1
        seconds = f"{self.stats.samples / rate / self.stats.examples:.2g} seconds on average"
        return [
            f"Audio: {rate:,} samples per second, {seconds}; {mel.bins} mel bins every {1000 * MEL_HOP:g} ms, and a "
            f"vector for {pluralize(mel.frames, 'frame')}."
        ]

    def model_changes(self) -> dict[str, Any]:
        """Return the rate."""
        return {"source.rate": self.mel.rate}

    def data_settings(self, model: AnyModelConfig, step_tokens: int) -> dict[str, Any]:
        """Return settings for frames, which are masked randomly."""
        settings = super().data_settings(model, step_tokens)
        max_length = max(self.max_frames, min(MAX_FRAMES, self.stats.target.max_bytes + 1))
        batch_tokens = max(max_length, settings["batch_tokens"])
        return settings | {"max_length": max_length, "batch_tokens": batch_tokens, "spec_augment": SpecAugmentConfig()}

    def explain_augmentation(self) -> list[str]:
        """Describe the masking."""
        masks = SpecAugmentConfig()
        return [
            f"Augmentation: {pluralize(masks.time_masks, 'band')} of frames and {masks.frequency_masks} of bins of "
            "every training audio clip are masked randomly (SpecAugment, Park et al. 2019)."
        ]


AUDIO_CLASSIFICATION = TaskRecipe(
    learns_from=("audio+labels", "audio"),
    sizes=(
        ModelSize(100_000, "audio-encoder", 0, 0.1, 30, 1e-3, 200, 3200,
            "an encoder of this size can learn from a few thousand randomly masked audio clips"),
        ModelSize(inf, "audio-encoder", 0, 0.0, 10, 1e-3, 500, 6400,
            "it is the only preset for audio classification; with more clips, fewer epochs and no dropout are needed"),
    ),
    tuning=TuningRule(epochs=20, warmup=None),
    rows=AudioRows,
    vocabulary=VocabularyRule(),
    head=HeadRule({"kind": "classes", "pool": "mean", "hidden": False}, NEW_LABELS, has_labels=True),
    optimizer=ADAMW.model_copy(update={"weight_decay": 0.05}),
    label_smoothing=0.1,
    smoothing_reason="a usual choice for images and audio clips",
    patience=0,
    misfit="does not classify audio clips",
)  # fmt: skip
TRANSCRIPTION = replace(
    AUDIO_CLASSIFICATION,
    learns_from=("audio+text",),
    sizes=(
        ModelSize(100_000, "speech-to-text", 0, 0.1, 40, 1e-3, 300, 3200,
            "it is small enough for a few hours of speech"),
        ModelSize(inf, "speech-to-text", 0, 0.0, 10, 1e-3, 500, 6400,
            "it is the only preset for transcription; with more speech, fewer epochs and no dropout are needed"),
    ),
    vocabulary=Characters(),
    head=None,
    patience=TaskRecipe.patience,
    misfit="does not transcribe audio clips",
)  # fmt: skip
