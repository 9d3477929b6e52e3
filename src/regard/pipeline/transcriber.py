"""Transcribe sounds with an encoder-decoder."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import overload

import torch

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config import model as settings_of
from regard.models.cpu_decoder import LazyCpuDecoder
from regard.models.encoder_decoder import EncoderDecoder
from regard.pipeline.encoding import Pipeline, batch_by_length, resolve_max_length
from regard.pipeline.results import GeneratedText, make_result
from regard.pipeline.search import Beam, Search, SearchInput, make_generator
from regard.pipeline.sound_input import AnySound, Spectrogram, as_sounds, load_spectrogram, pad_spectrograms
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.tokenizer_pair import TokenizerPair

DEFAULT_SEARCH = Beam()
BATCH_FRAMES = 8192  # padding and beams included
CHUNK_SOUNDS = 512  # sounds that are loaded and sorted by length at a time
EXTRA_TOKENS = 20  # added to max_length_ratio * frames: short sounds have proportionally longer texts


class Transcriber(Pipeline):
    """Transcribes sounds with an encoder-decoder.

    transcriber = regard.load_transcriber("my-model")
    transcriber.transcribe("morning.wav").text
    """

    kind = "transcription model"

    def __init__(self, model: EncoderDecoder, tokenizers: TokenizerPair, settings: settings_of.EncoderDecoder) -> None:
        if settings.task != "transcribe" or not isinstance(settings.source, settings_of.Mel):
            what = f"This model's task is '{settings.task}': it does not transcribe."
            raise RegardError(what, fix="Train one that does: `regard train --sounds TABLE --out NEW`.")
        check_vocabulary_sizes(settings, tokenizers, where="Transcriber")
        self.model: EncoderDecoder = model
        self.tokenizers = tokenizers
        self.settings: settings_of.EncoderDecoder = settings
        self.mel = settings.source
        self._decoder = LazyCpuDecoder(model)

    @overload
    def transcribe(  # type: ignore[overload-overlap]
        self,
        sounds: AnySound,
        search: Search = ...,
        *,
        n_best: int = ...,
        max_length: int | None = ...,
        seed: int | None = ...,
        report: Callable[[int], None] = ...,
    ) -> GeneratedText: ...
    @overload
    def transcribe(
        self,
        sounds: Sequence[AnySound],
        search: Search = ...,
        *,
        n_best: int = ...,
        max_length: int | None = ...,
        seed: int | None = ...,
        report: Callable[[int], None] = ...,
    ) -> list[GeneratedText]: ...

    def transcribe(
        self,
        sounds: AnySound | Sequence[AnySound],
        search: Search = DEFAULT_SEARCH,
        *,
        n_best: int = 1,
        max_length: int | None = None,
        seed: int | None = None,
        report: Callable[[int], None] = lambda _: None,
    ) -> GeneratedText | list[GeneratedText]:
        """Transcribe one sound, or each of several.

        Args:
            sounds: .wav or .flac files, or arrays of 16-bit samples at the rate of the training sounds.
            search: Search strategy (`regard.pipeline.search`): `Beam(1)` is greedy, default `Beam(5)`.
            n_best: Number of hypotheses per sound: the best is the text, the next ones its `alternatives`.
            max_length: Maximum number of tokens, eos included. Default: `max_length_ratio * frames + 20`.
            seed: Random seed of a search that samples.
            report: Called with the number of sounds that were just transcribed.

        Returns:
            The text of one sound, or a list with that of each sound in their order.

        Raises:
            RegardError: A sound cannot be read, has another sample rate, or is too long for the model.
        """
        sequence, is_single = as_sounds(sounds)
        generator = make_generator(seed, self.device)
        results: list[GeneratedText] = []
        with self.prepared(), torch.inference_mode():
            for start in range(0, len(sequence), CHUNK_SOUNDS):
                chunk = [load_spectrogram(sound, self.mel) for sound in sequence[start : start + CHUNK_SOUNDS]]
                texts: dict[int, GeneratedText] = {}
                lengths = [self.check_length(spectrogram) for spectrogram in chunk]
                for indices in batch_by_length(lengths, BATCH_FRAMES, search.rows_per_text):
                    spectrograms = [chunk[index] for index in indices]
                    max_lengths = [self.resolve_max_length(len(item), max_length) for item in spectrograms]
                    inputs = self.make_search_input(spectrograms, max_lengths, generator)
                    all_hypotheses = search.find(replace(inputs, n_best=n_best))
                    for index, hypotheses in zip(indices, all_hypotheses, strict=True):
                        texts[index] = make_result(
                            GeneratedText, hypotheses, self.tokenizers.target, n_best, should_rerank=search.reranks
                        )
                    report(len(indices))
                results += [texts[index] for index in range(len(chunk))]
        return results[0] if is_single else results

    def prepared(self) -> AbstractContextManager[None]:
        """Return a context with the model in evaluation mode and its weights packed for steps of one token."""
        return self._decoder.prepared()

    def make_search_input(
        self, spectrograms: list[Spectrogram], max_lengths: list[int], generator: torch.Generator
    ) -> SearchInput:
        """Encode sounds and return the input of a search over their texts."""
        specials = self.tokenizers.target.specials
        source, valid = pad_spectrograms(spectrograms, self.device)
        state = self.model.start(source, valid, capacity=max(max_lengths))
        prompt = torch.full((len(spectrograms), 1), specials.bos, device=self.device)
        suppressed = torch.tensor(specials.not_text, dtype=torch.long, device=self.device)
        return SearchInput(self._decoder.step, state, prompt, specials.eos, max_lengths, suppressed, generator)

    def check_length(self, spectrogram: Spectrogram) -> int:
        """Return the number of frames; raises RegardError if the model has learned fewer positions."""
        limit = self.settings.encoder.max_positions
        if limit is not None and self.mel.count_vectors(len(spectrogram)) > limit:
            seconds = limit * self.mel.frames * self.mel.hop
            what = (
                f"The sound has {len(spectrogram) * self.mel.hop:.1f} seconds; the model reads at most {seconds:.1f}."
            )
            raise RegardError(what, fix="Cut it into shorter sounds.")
        return len(spectrogram)

    def resolve_max_length(self, frames: int, max_length: int | None) -> int:
        """Return the maximum number of tokens of a sound (see `transcribe`)."""
        default = math.ceil(self.settings.max_length_ratio * frames) + EXTRA_TOKENS
        return resolve_max_length(max_length, default, self.settings.decoder.max_positions)

    def _describe_input(self) -> str:
        size = pluralize(self.tokenizers.target.size, "token")
        return f"sounds of {self.mel.rate or 'any number of'} samples per second, {size}"
