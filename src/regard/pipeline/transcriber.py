"""Transcribe audio clips with an encoder-decoder."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, overload

import torch

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.inputs import MEL_HOP, MelConfig
from regard.config.model import EncoderDecoderConfig, GenerationConfig
from regard.decode.constraints import constrain
from regard.decode.protocol import State, Step
from regard.models.cpu_decoder import LazyCpuDecoder
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.record import Record
from regard.pipeline.audio_input import AnyAudio, Spectrogram, as_audio, load_spectrogram, pad_spectrograms
from regard.pipeline.encoding import Pipeline, batch_by_length, resolve_max_length
from regard.pipeline.results import GeneratedText, make_result
from regard.pipeline.search import Beam, Search, SearchInput, make_generator
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.tokenizer_pair import TokenizerPair

BATCH_FRAMES = 8192  # padding and beams included
CHUNK_AUDIO = 512  # audio clips that are loaded and sorted by length at a time
EXTRA_TOKENS = 20  # added to max_length_ratio * frames: short audio clips have proportionally longer texts


class Transcriber(Pipeline):
    """Transcribes audio clips with an encoder-decoder.

    transcriber = regard.load_transcriber("my-model")
    transcriber.transcribe("morning.wav").text
    """

    kind = "transcription model"

    def __init__(self, model: EncoderDecoder, tokenizers: TokenizerPair, settings: EncoderDecoderConfig) -> None:
        if settings.task != "transcribe" or not isinstance(settings.source, MelConfig):
            message = f"This model's task is '{settings.task}': it does not transcribe."
            raise RegardError(message, hint="Train one that does: `regard train --audio TABLE --out NEW`.")
        check_vocabulary_sizes(settings, tokenizers, location="Transcriber")
        self.model: EncoderDecoder = model
        self.tokenizers = tokenizers
        self.settings: EncoderDecoderConfig = settings
        self.mel = settings.source
        self.rules = settings.generation or GenerationConfig()
        self._decoder = LazyCpuDecoder()

    def predict(
        self,
        inputs: Sequence[str],
        *,
        n_best: int = 1,
        beam: int | None = None,
        length_penalty: float = 1.0,
        max_new_tokens: int | None = None,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[GeneratedText]:
        """Transcribe each file; what `regard predict` does."""
        search = self.make_search(beam, length_penalty, n_best)
        return self.transcribe(inputs, search, n_best=n_best, max_new_tokens=max_new_tokens, report=report)

    @overload
    def transcribe(  # type: ignore[overload-overlap]
        self,
        audio: AnyAudio,
        search: Search | None = ...,
        *,
        n_best: int = ...,
        max_new_tokens: int | None = ...,
        seed: int | None = ...,
        report: Callable[[int], None] = ...,
    ) -> GeneratedText: ...
    @overload
    def transcribe(
        self,
        audio: Sequence[AnyAudio],
        search: Search | None = ...,
        *,
        n_best: int = ...,
        max_new_tokens: int | None = ...,
        seed: int | None = ...,
        report: Callable[[int], None] = ...,
    ) -> list[GeneratedText]: ...

    def transcribe(
        self,
        audio: AnyAudio | Sequence[AnyAudio],
        search: Search | None = None,
        *,
        n_best: int = 1,
        max_new_tokens: int | None = None,
        seed: int | None = None,
        report: Callable[[int], None] = lambda _: None,
    ) -> GeneratedText | list[GeneratedText]:
        """Transcribe one audio clip, or each of several.

        Args:
            audio clips: .wav or .flac files, or arrays of 16-bit samples at the rate of the training audio clips.
            search: Search strategy (`regard.pipeline.search`): `Beam(1)` is greedy. Default: `make_search()`.
            n_best: Number of hypotheses per audio clip: the best is the text, the next ones its `alternatives`.
            max_new_tokens: Maximum number of tokens, eos included. Default: `max_length_ratio * frames + 20`.
            seed: Random seed of a search that samples.
            report: Called with the number of audio clips that were just transcribed.

        Returns:
            The text of one audio clip, or a list with that of each audio clip in their order.

        Raises:
            RegardError: An audio clip cannot be read, has another sample rate, or is too long for the model.
        """
        sequence, is_single = as_audio(audio)
        search = search or self.make_search()
        generator = make_generator(seed, self.device)
        results: list[GeneratedText] = []
        with self.prepared(), torch.inference_mode():
            for start in range(0, len(sequence), CHUNK_AUDIO):
                chunk = [load_spectrogram(clip, self.mel) for clip in sequence[start : start + CHUNK_AUDIO]]
                texts: dict[int, GeneratedText] = {}
                lengths = [self.check_length(spectrogram) for spectrogram in chunk]
                for indices in batch_by_length(lengths, BATCH_FRAMES, search.rows_per_text):
                    spectrograms = [chunk[index] for index in indices]
                    max_lengths = [self.resolve_max_length(len(item), max_new_tokens) for item in spectrograms]
                    inputs = self.make_search_input(spectrograms, max_lengths, generator)
                    all_hypotheses = search.find(replace(inputs, n_best=n_best))
                    for index, hypotheses in zip(indices, all_hypotheses, strict=True):
                        result = make_result(
                            GeneratedText, hypotheses, self.tokenizers.target, n_best, should_rerank=search.reranks
                        )
                        texts[index] = _strip(result)
                    report(len(indices))
                results += [texts[index] for index in range(len(chunk))]
        return results[0] if is_single else results

    def make_search(self, beam_size: int | None = None, length_penalty: float = 1.0, n_best: int = 1) -> Beam:
        """Return a beam search of this size, but at least `n_best`; by default 5, or that of an imported model.

        That of an imported model stops once as many texts have ended as the beam is wide. To go on would favor long
        repetitions: Whisper is almost certain of the next token of one, and the score is a mean.
        """
        if self.settings.generation is None:
            return Beam(max(beam_size or Beam.beam_size, n_best), length_penalty)
        beam_size = max(beam_size or self.rules.beam_size, n_best)
        return Beam(beam_size, length_penalty, stop_after=beam_size)

    def prepared(self) -> AbstractContextManager[None]:
        """Return a context with the model in evaluation mode and its weights packed for steps of one token."""
        return self._decoder.prepared(self.model)

    def make_search_input(
        self,
        spectrograms: list[Spectrogram],
        max_lengths: list[int],
        generator: torch.Generator,
        record: Record | None = None,
    ) -> SearchInput:
        """Encode audio clips and return the input of a search over their texts.

        Args:
            spectrograms: The audio clips.
            max_lengths: Maximum number of tokens of each.
            generator: Random numbers of searches that sample.
            record: Records or changes the attention of every step; None: the fast path.
        """
        specials, rules = self.tokenizers.target.specials, self.rules
        source, valid = pad_spectrograms(spectrograms, self.device)
        rows, capacity = len(spectrograms), max(max_lengths) + len(rules.prompt)
        state: State = self.model.start(source, valid, capacity=capacity, record=record)
        step: Step[Any] = self._decoder.step if record is None else partial(self.model.step, record=record)
        suppressed_ids = sorted({*specials.not_text, *rules.suppress_tokens})
        if rules.begin_suppress_tokens:
            absorbing_token = suppressed_ids[0] if suppressed_ids else None
            step, state = constrain(
                step, state, rows, absorbing_token=absorbing_token, forbidden_first=rules.begin_suppress_tokens
            )
        prompt = torch.tensor([self.prompt], device=self.device).expand(rows, -1)
        suppress_tokens = torch.tensor(suppressed_ids, dtype=torch.long, device=self.device)
        return SearchInput(step, state, prompt, specials.eos, max_lengths, suppress_tokens, generator)

    @property
    def prompt(self) -> list[int]:
        """The tokens that the decoder reads before it generates."""
        return [self.tokenizers.target.specials.bos, *self.rules.prompt]

    def check_length(self, spectrogram: Spectrogram) -> int:
        """Return the number of frames; raises RegardError if the model has learned fewer positions."""
        limit = self.settings.encoder.max_positions
        if limit is not None and self.mel.count_vectors(len(spectrogram)) > limit:
            seconds, longest = len(spectrogram) * MEL_HOP, limit * self.mel.vector_seconds
            message = f"The audio clip has {seconds:.1f} seconds; the model reads at most {longest:.1f}."
            raise RegardError(message, hint="Cut it into shorter audio clips.")
        return len(spectrogram)

    def resolve_max_length(self, frames: int, max_new_tokens: int | None) -> int:
        """Return the maximum number of tokens of an audio clip (see `transcribe`)."""
        default = math.ceil(self.settings.max_length_ratio * frames) + EXTRA_TOKENS
        limit = self.settings.decoder.max_positions
        return resolve_max_length(max_new_tokens, default, None if limit is None else limit - len(self.rules.prompt))

    def _describe_input(self) -> str:
        size = pluralize(self.tokenizers.target.size, "token")
        return f"audio clips of {self.mel.rate or 'any number of'} samples per second, {size}"


def _strip(result: GeneratedText) -> GeneratedText:
    """Remove space around a text: the first token of Whisper begins with one."""
    alternatives = tuple(_strip(alternative) for alternative in result.alternatives)
    return replace(result, text=result.text.strip(), alternatives=alternatives)
