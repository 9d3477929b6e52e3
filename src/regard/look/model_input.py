"""What a model reads before it generates a text: a source, a prompt, an audio clip or an image."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batches.images import normalize
from regard.nn.record import Record
from regard.pipeline.audio_input import Spectrogram, pad_spectrograms
from regard.pipeline.generator import TextGenerator
from regard.pipeline.image_captioner import ImageCaptioner
from regard.pipeline.search import SearchInput
from regard.pipeline.transcriber import Transcriber
from regard.pipeline.translator import Translator

Pipeline = Translator | TextGenerator | Transcriber | ImageCaptioner


@dataclass(frozen=True)
class ModelInput:
    """One input of a pipeline that generates text."""

    pipeline: Pipeline
    prompt: list[int]
    """The tokens that the decoder reads before it generates."""
    start: Callable[[int, torch.Generator, Record | None], SearchInput]
    """Return the input of a search from a maximum length, random numbers, and what records or changes every step."""
    source: Sequence[int] = ()
    """The tokens that the encoder reads; none for audio clips, images and models without an encoder."""
    media: Tensor | None = None
    """The audio clip (1, frames, bins) or the image (1, channels, height, width) that the encoder reads."""
    vectors: int = 0
    """Number of vectors that the audio clip or the image becomes."""
    text_before: Sequence[int] = ()
    """Tokens of the text that the generated text continues."""


def read_source(translator: Translator, ids: list[int]) -> ModelInput:
    """Return the source of a translation."""

    def start(max_new_tokens: int, generator: torch.Generator, record: Record | None) -> SearchInput:
        inputs = translator.make_search_input([ids], [max_new_tokens], generator)
        return inputs if record is None else _record(inputs, record, translator.model, source)

    source = torch.tensor([ids], device=translator.device)
    return ModelInput(translator, [translator.tokenizers.target.specials.bos], start, source=ids)


def read_prompt(generator: TextGenerator, ids: list[int]) -> ModelInput:
    """Return the prompt of a language model, with bos."""

    def start(max_new_tokens: int, random: torch.Generator, record: Record | None) -> SearchInput:
        inputs = generator.make_search_input([ids], max_new_tokens, random)
        return inputs if record is None else _record(inputs, record, generator.model)

    return ModelInput(generator, ids, start, text_before=ids)


def load_audio(transcriber: Transcriber, spectrogram: Spectrogram) -> ModelInput:
    """Return an audio clip to transcribe."""

    def start(max_new_tokens: int, generator: torch.Generator, record: Record | None) -> SearchInput:
        return transcriber.make_search_input([spectrogram], [max_new_tokens], generator, record)

    media, _ = pad_spectrograms([spectrogram], transcriber.device)
    vectors = transcriber.mel.count_vectors(len(spectrogram))
    return ModelInput(transcriber, transcriber.prompt, start, media=media, vectors=vectors)


def read_image(captioner: ImageCaptioner, pixels: NDArray[np.uint8]) -> ModelInput:
    """Return an image to caption, from its pixels (channels, height, width)."""

    def start(max_new_tokens: int, generator: torch.Generator, record: Record | None) -> SearchInput:
        inputs = captioner.make_search_input(pixels[None], max_new_tokens, generator)
        return inputs if record is None else _record(inputs, record, captioner.model, media)

    media = torch.from_numpy(normalize(pixels[None], captioner.patches)).to(captioner.device)
    vectors = captioner.patches.count_vectors(*pixels.shape[1:])
    bos = captioner.tokenizers.target.specials.bos
    return ModelInput(captioner, [bos], start, media=media, vectors=vectors)


def _record(inputs: SearchInput, record: Record, model: Any, encoded: Tensor | None = None) -> SearchInput:
    """Let a record see every step of a search, and the encoder if there is one."""
    state = inputs.state
    if encoded is not None:
        state = model.start(encoded, capacity=max(inputs.max_lengths), record=record)
    return replace(inputs, step=partial(model.step, record=record), state=state)
