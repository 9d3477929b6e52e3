"""Classify audio clips with an encoder."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.labels import IGNORE_INDEX
from regard.config.inputs import MelConfig
from regard.config.run import RunConfig
from regard.data.batches.arrays import BatchArrays, StoredSamples
from regard.data.batches.audio import AudioRowMaker, check_rate
from regard.data.batches.batch import Batch
from regard.data.batches.rows import RowMaker
from regard.data.shards.shard import Shards
from regard.tasks.classification import MediaClassifier
from regard.tasks.inputs.audio import AnyAudio, AudioInput
from regard.tasks.task import AnyAugmentation, Task, make_synthetic_batch
from regard.tasks.validation import ValidationContext, score_labels
from regard.text.tokenizer_pair import TokenizerPair


class AudioClassifier(MediaClassifier[AnyAudio]):
    """Classifies audio clips with an encoder.

    classifier = regard.load_audio_classifier("my-model")
    classifier.classify("seven.wav").label
    """

    kind = "classification model for audio clips"
    loader = "load_audio_classifier"
    test_data = "audio"
    ability = "classify audio clips"
    hint = "Train a classifier: `regard train --audio FOLDER --out NEW`."
    input_class = AudioInput


@dataclass(frozen=True)
class AudioClassificationRows(AudioRowMaker):
    """Audio classification: one label per audio clip."""

    needs = ("audio",)

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the number of frames of each audio clip."""
        return self.count_frames(lengths[:1])

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch with one label per audio clip."""
        audio, valid = self.make_spectrograms(records.tokens, records.lengths[0], records)
        labels = np.where(records.labels < 0, IGNORE_INDEX, records.labels)
        return BatchArrays(labels, audio=audio, source_valid=valid)


class AudioTask(Task):
    """Base class of tasks on audio clips."""

    def audio_rows(self, run: RunConfig, shards: Shards, augmentation: AnyAugmentation) -> dict[str, Any]:
        """Return the common options of audio rows: mel settings, augmentation and seed."""
        mel: MelConfig = run.model.source  # type: ignore[union-attr,assignment]
        mel = mel.model_copy(update={"rate": check_rate(shards, mel)})
        return {"mel": mel, "augmentation": augmentation, "seed": run.data.seed}

    def random_audio(self, run: RunConfig, rows: int, length: int) -> Tensor:
        """Return random spectrograms (B, frames, bins)."""
        return torch.rand(rows, length, run.model.source.bins)  # type: ignore[union-attr]


class AudioClassificationTask(AudioTask):
    """Audio classification task."""

    pipeline_class = AudioClassifier

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Mask the spectrograms randomly."""
        del tokenizers
        shards.use_labels(run.model.head.labels)  # type: ignore[union-attr]
        return shards, AudioClassificationRows(**self.audio_rows(run, shards, augmentation))

    def validate(self, context: ValidationContext) -> dict[str, float]:
        """Score the labels."""
        return score_labels(context)

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random audio clips with the first label."""
        return make_synthetic_batch(torch.zeros(rows, dtype=torch.long), source=self.random_audio(run, rows, length))
