"""Transcribe audio clips with an encoder-decoder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from regard.config.inputs import MelConfig
from regard.config.run import RunConfig
from regard.data.batches.arrays import BatchArrays, StoredSamples, shift_target
from regard.data.batches.audio import AudioRowMaker
from regard.data.batches.batch import Batch
from regard.data.batches.rows import RowMaker
from regard.data.shards.shard import Shards, select_first_stream
from regard.tasks.audio_classification import AudioTask
from regard.tasks.generation import MediaToText
from regard.tasks.inputs.audio import AnyAudio, AudioInput
from regard.tasks.pipeline import one_or_many
from regard.tasks.results import GeneratedText
from regard.tasks.search import Search
from regard.tasks.task import AnyAugmentation, make_synthetic_batch, require_tokenizers
from regard.text.specials import SpecialIds
from regard.text.tokenizer_pair import TokenizerPair


class Transcriber(MediaToText[AnyAudio]):
    """Transcribes audio clips with an encoder-decoder.

    transcriber = regard.load_transcriber("my-model")
    transcriber.transcribe("morning.wav").text
    """

    kind = "transcription model"
    loader = "load_transcriber"
    test_data, stage = "speech", "transcribing"
    ability, output_name = "transcribe", "transcript"
    training_data = "--audio TABLE"
    input_class = AudioInput

    @one_or_many
    def transcribe(
        self,
        audio: Sequence[AnyAudio],
        search: Search | None = None,
        *,
        n_best: int = 1,
        max_new_tokens: int | None = None,
        seed: int | None = None,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[GeneratedText]:
        """Transcribe one or several audio clips.

        Args:
            audio: .wav or .flac files, or arrays of 16-bit samples at the training sample rate.
            search: Search strategy (`regard.tasks.search`): `Beam(1)` is greedy. Default: `make_search()`.
            n_best: Number of hypotheses per audio clip: the best is the text, the others its `alternatives`.
            max_new_tokens: Maximum number of tokens, eos included. Default: `max_length_ratio * frames + 20`.
            seed: Random seed for sampling.
            report: Called after each batch with the number of transcribed audio clips.

        Returns:
            The text of one audio clip, or a list of texts.

        Raises:
            RegardError: An audio clip is unreadable, has the wrong sample rate, or is too long for the model.
        """
        return self.generate_texts(
            audio, search, n_best=n_best, max_new_tokens=max_new_tokens, seed=seed, report=report
        )

    def _finish(self, result: GeneratedText) -> GeneratedText:
        """Strip a text: Whisper's first token begins with a space."""
        alternatives = tuple(self._finish(alternative) for alternative in result.alternatives)
        return replace(result, text=result.text.strip(), alternatives=alternatives)


@dataclass(frozen=True)
class TranscriptionRows(AudioRowMaker):
    """Transcription by teacher forcing: spectrogram; [bos] + prompt + text -> text + [eos]."""

    specials: SpecialIds | None = None
    prompt: tuple[int, ...] = ()
    """Decoder tokens between bos and the text."""
    needs = ("audio", "target")

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the number of frames of each audio clip and of tokens of each text, with prompt and eos."""
        return np.stack((self.count_frames(lengths[0]), lengths[1] + 1 + len(self.prompt)))

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of audio clips and their texts."""
        assert self.specials is not None  # noqa: S101 - it has a default because those of the base class have one
        is_audio = select_first_stream(records.lengths)
        audio, valid = self.make_spectrograms(records.tokens[is_audio], records.lengths[0], records)
        labels, target = shift_target(records, records.tokens[~is_audio], self.specials, self.prompt)
        return BatchArrays(labels, audio=audio, source_valid=valid, target=target)


class TranscriptionTask(AudioTask):
    """Transcription task, trained with teacher forcing."""

    pipeline_class = Transcriber
    text_sides = ("target",)
    has_length_ratio = True

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Return rows of audio clips with texts, after the prompt of an imported model."""
        generation = run.model.generation  # type: ignore[union-attr]
        return shards, TranscriptionRows(
            **self.audio_rows(run, shards, augmentation),
            specials=require_tokenizers(tokenizers).target.specials,
            prompt=() if generation is None else generation.prompt,
        )

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random audio clips with random texts of half their length."""
        mel: MelConfig = run.model.source  # type: ignore[union-attr,assignment]
        text = torch.zeros(rows, max(1, mel.count_vectors(length) // 2), dtype=torch.long)  # (B, T)
        return make_synthetic_batch(text, source=self.random_audio(run, rows, length), target=text)
