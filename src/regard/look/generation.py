"""Generate a text and record how: every candidate of a search, or every race of sampling.

Forced continuations and switched-off heads run the same search again, with a prefix or with a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import RegardError
from regard.data.batches.images import normalise
from regard.decode.constraints import constrain
from regard.decode.protocol import Hypothesis
from regard.decode.sample import sample
from regard.decode.trace import SamplingTrace, Trace
from regard.nn.kv_cache import DecodingState
from regard.nn.record import Record
from regard.pipeline.generator import TextGenerator
from regard.pipeline.image_captioner import ImageCaptioner
from regard.pipeline.search import Beam, Sampling, SearchInput, make_generator
from regard.pipeline.sound_input import Spectrogram, pad_spectrograms
from regard.pipeline.transcriber import Transcriber
from regard.pipeline.translator import Translator
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Generated:
    """The hypotheses of a search, best first, and its record."""

    hypotheses: list[Hypothesis]
    trace: Trace | None
    sampling: SamplingTrace | None


@dataclass(frozen=True)
class Generation:
    """A model, what it reads, and the search: everything needed to generate again."""

    pipeline: Translator | TextGenerator | Transcriber | ImageCaptioner
    ids: list[int]
    """The source of a translation, or the prompt with bos; empty for a sound or an image."""
    search: Beam | Sampling
    max_length: int
    """Maximum number of generated tokens."""
    seed: int | None
    n_best: int = 1
    spectrogram: Spectrogram | None = None
    """What a transcriber reads."""
    pixels: NDArray[np.uint8] | None = None
    """What a captioner reads, (channels, height, width)."""

    def __post_init__(self) -> None:
        if isinstance(self.search, Sampling) and self.search.count != 1:
            fix = "Use Sampling(count=1), or Beam with n_best."
            raise RegardError("One text can be sampled at a time.", fix=fix)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the generated text."""
        return self.pipeline.tokenizers.target

    @property
    def source(self) -> list[int]:
        """The tokens that the encoder reads; none without an encoder."""
        return self.ids if isinstance(self.pipeline, Translator) else []

    @property
    def media(self) -> Tensor | None:
        """The spectrogram (1, frames, bins) or the image (1, channels, height, width) that the encoder reads."""
        if self.pixels is not None and isinstance(self.pipeline, ImageCaptioner):
            return torch.from_numpy(normalise(self.pixels[None], self.pipeline.patches)).to(self.pipeline.device)
        return None if self.spectrogram is None else pad_spectrograms([self.spectrogram], self.pipeline.device)[0]

    @property
    def vectors(self) -> int:
        """Number of vectors that the spectrogram or the image becomes."""
        if self.pixels is not None and isinstance(self.pipeline, ImageCaptioner):
            return self.pipeline.patches.count_vectors(*self.pixels.shape[1:])
        if self.spectrogram is None or not isinstance(self.pipeline, Transcriber):
            return 0
        return self.pipeline.mel.count_vectors(len(self.spectrogram))

    @property
    def prompt(self) -> list[int]:
        """The tokens that the decoder reads before it generates."""
        if isinstance(self.pipeline, Transcriber):
            return self.pipeline.prompt
        return self.ids if isinstance(self.pipeline, TextGenerator) else [self.tokenizer.specials.bos]

    def run(self, record: Record | None = None, forced: Sequence[int] = ()) -> Generated:
        """Search once.

        Args:
            record: Changes the attention of every step (`regard.look.record.HeadsOff`); None: the fast path.
            forced: Tokens that the text must start with; their log-probabilities count.
        """
        pipeline, generator = self.pipeline, make_generator(self.seed, self.pipeline.device)
        with pipeline.prepared(), torch.inference_mode():
            if isinstance(pipeline, Transcriber):
                assert self.spectrogram is not None  # noqa: S101 - it is what a transcriber reads
                inputs = pipeline.make_search_input([self.spectrogram], [self.max_length], generator, record)
            elif isinstance(pipeline, ImageCaptioner):
                assert self.pixels is not None  # noqa: S101 - it is what a captioner reads
                inputs = pipeline.make_search_input(self.pixels[None], self.max_length, generator)
            elif isinstance(pipeline, Translator):
                inputs = pipeline.make_search_input([self.ids], [self.max_length], generator)
            else:
                inputs = pipeline.make_search_input([self.ids], self.max_length, generator)
            if record is not None and not isinstance(pipeline, Transcriber):
                inputs = self._with_record(inputs, record)
            if forced:
                suppressed = inputs.suppressed.tolist()
                sink = suppressed[0] if suppressed else self.tokenizer.specials.pad
                step, state = constrain(inputs.step, inputs.state, 1, sink=sink, forced_prefixes=[forced])
                inputs = replace(inputs, step=step, state=state)
            if isinstance(self.search, Sampling):
                sampling = SamplingTrace()
                hypotheses = sample(
                    *inputs.model_arguments,
                    **inputs.shared_arguments,
                    generator=generator,
                    filters=self.search.filters,
                    trace=sampling,
                )
                return Generated(hypotheses, None, sampling)
            trace = Trace()
            (best,) = self.search.find(replace(inputs, n_best=self.n_best, trace=trace))
            return Generated(best, trace, None)

    def decode(self, hypothesis: Hypothesis) -> str:
        """Return the text of a hypothesis, without the prompt."""
        prompt = self.ids if isinstance(self.pipeline, TextGenerator) else ()
        return self.tokenizer.decode(hypothesis.without_eos, prompt)

    def _with_record(self, inputs: SearchInput, record: Record) -> SearchInput:
        model: Any = self.pipeline.model

        def step(tokens: Tensor, state: DecodingState) -> Tensor:
            return model.step(tokens, state, record)

        if isinstance(self.pipeline, TextGenerator):
            return replace(inputs, step=step)
        media = self.media
        source = torch.tensor([self.ids], device=self.pipeline.device) if media is None else media
        return replace(inputs, step=step, state=model.start(source, capacity=self.max_length, record=record))
