"""Caption images with an encoder-decoder."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from os import PathLike
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.inputs import PatchesConfig
from regard.config.model import EncoderDecoderConfig
from regard.data.batches.images import normalize
from regard.data.example import Image
from regard.models.cpu_decoder import LazyCpuDecoder
from regard.models.encoder_decoder import EncoderDecoder
from regard.pipeline.encoding import Pipeline, resolve_max_length
from regard.pipeline.images import AnyImage, as_images, load_batches
from regard.pipeline.results import GeneratedText, make_result
from regard.pipeline.search import Beam, Search, SearchInput, make_generator
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.tokenizer_pair import TokenizerPair

DEFAULT_SEARCH = Beam()
BATCH_ROWS = 128  # images times beams
EXTRA_TOKENS = 20  # added to max_length_ratio * vectors


class ImageCaptioner(Pipeline):
    """Captions images with an encoder-decoder.

    captioner = regard.load_image_captioner("my-model")
    captioner.caption("shoe.png").text
    """

    kind = "captioning model"

    def __init__(self, model: EncoderDecoder, tokenizers: TokenizerPair, settings: EncoderDecoderConfig) -> None:
        if settings.task != "caption" or not isinstance(settings.source, PatchesConfig):
            message = f"This model's task is '{settings.task}': it does not caption images."
            raise RegardError(message, hint="Train one that does: `regard train --images TABLE --out NEW`.")
        check_vocabulary_sizes(settings, tokenizers, location="ImageCaptioner")
        self.model: EncoderDecoder = model
        self.tokenizers = tokenizers
        self.settings: EncoderDecoderConfig = settings
        self.patches = settings.source
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
        """Caption each file; what `regard predict` does."""
        search = self.make_search(beam, length_penalty, n_best)
        return self.caption(inputs, search, n_best=n_best, max_new_tokens=max_new_tokens, report=report)

    @overload
    def caption(  # type: ignore[overload-overlap]
        self,
        images: str | PathLike[str] | Image | NDArray[np.uint8],
        search: Search = ...,
        *,
        n_best: int = ...,
        max_new_tokens: int | None = ...,
        seed: int | None = ...,
        report: Callable[[int], None] = ...,
    ) -> GeneratedText: ...
    @overload
    def caption(
        self,
        images: Sequence[AnyImage],
        search: Search = ...,
        *,
        n_best: int = ...,
        max_new_tokens: int | None = ...,
        seed: int | None = ...,
        report: Callable[[int], None] = ...,
    ) -> list[GeneratedText]: ...

    def caption(
        self,
        images: AnyImage | Sequence[AnyImage],
        search: Search = DEFAULT_SEARCH,
        *,
        n_best: int = 1,
        max_new_tokens: int | None = None,
        seed: int | None = None,
        report: Callable[[int], None] = lambda _: None,
    ) -> GeneratedText | list[GeneratedText]:
        """Caption one image, or each of several. They are brought to the size and channels of the training images.

        Args:
            images: Files, or arrays of 8-bit values, (height, width) or (height, width, 3).
            search: Search strategy (`regard.pipeline.search`): `Beam(1)` is greedy, default `Beam(5)`.
            n_best: Number of hypotheses per image: the best is the text, the next ones its `alternatives`.
            max_new_tokens: Maximum number of tokens, eos included. Default: `max_length_ratio * vectors + 20`.
            seed: Random seed of a search that samples.
            report: Called with the number of images that were just captioned.

        Returns:
            The caption of one image, or a list with that of each image in their order.

        Raises:
            RegardError: An image cannot be read.
        """
        sequence, is_single = as_images(images)
        generator = make_generator(seed, self.device)
        results: list[GeneratedText] = []
        batch_size = max(1, BATCH_ROWS // search.rows_per_text)
        with self.prepared(), torch.inference_mode():
            for pixels in load_batches(sequence, self.patches, batch_size):
                length = self.resolve_max_length(pixels[0], max_new_tokens)
                inputs = self.make_search_input(pixels, length, generator)
                results += [
                    make_result(GeneratedText, hypotheses, self.tokenizers.target, n_best, should_rerank=search.reranks)
                    for hypotheses in search.find(replace(inputs, n_best=n_best))
                ]
                report(len(pixels))
        return results[0] if is_single else results

    def make_search(self, beam_size: int | None = None, length_penalty: float = 1.0, n_best: int = 1) -> Beam:
        """Return a beam search of this size, by default 5, but at least `n_best`."""
        return Beam(max(beam_size or Beam.beam_size, n_best), length_penalty)

    def prepared(self) -> AbstractContextManager[None]:
        """Return a context with the model in evaluation mode and its weights packed for steps of one token."""
        return self._decoder.prepared(self.model)

    def resolve_max_length(self, pixels: NDArray[np.uint8], max_new_tokens: int | None) -> int:
        """Return the maximum number of tokens of an image, (channels, height, width); see `caption`."""
        vectors = self.patches.count_vectors(*pixels.shape[1:])
        default = math.ceil(self.settings.max_length_ratio * vectors) + EXTRA_TOKENS
        return resolve_max_length(max_new_tokens, default, self.settings.decoder.max_positions)

    def make_search_input(
        self, pixels: NDArray[np.uint8], max_new_tokens: int, generator: torch.Generator
    ) -> SearchInput:
        """Encode images, (B, channels, height, width), and return the input of a search over their captions."""
        specials = self.tokenizers.target.specials
        source = torch.from_numpy(normalize(pixels, self.patches)).to(self.device)
        state = self.model.start(source, None, capacity=max_new_tokens)
        prompt = torch.full((len(pixels), 1), specials.bos, device=self.device)
        suppress_tokens = torch.tensor(specials.not_text, dtype=torch.long, device=self.device)
        max_lengths = [max_new_tokens] * len(pixels)
        return SearchInput(self._decoder.step, state, prompt, specials.eos, max_lengths, suppress_tokens, generator)

    def _describe_input(self) -> str:
        height, width = self.patches.size or ("any", "any")
        tokens = pluralize(self.tokenizers.target.size, "token")
        return f"images of {height} x {width} x {self.patches.channels}, {tokens}"
