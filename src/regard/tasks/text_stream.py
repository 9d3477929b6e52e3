"""Streaming text generation."""

from collections.abc import Callable, Generator, Iterator

import torch

from regard.decode.filters import Filters
from regard.decode.sample import iter_sample
from regard.tasks.search import SearchInput
from regard.text.detokenize import StreamingDecoder


class TextStream(Iterator[str]):
    """Iterator over generated text; the model computes a step only when the caller requests more text.

    Args:
        parts: Yields the text, and appends every token to the list passed to it.
        eos: The token that ends a text.
    """

    def __init__(self, parts: Callable[[list[int]], Generator[str, None, None]], eos: int) -> None:
        self.tokens: list[int] = []
        self._parts, self._eos = parts(self.tokens), eos

    @property
    def ended(self) -> bool:
        """Whether the model has generated eos; False at the end of the stream means the maximum length."""
        return self.tokens[-1:] == [self._eos]

    def __next__(self) -> str:
        with torch.inference_mode():  # here, not around the whole stream, because the caller computes between parts
            return next(self._parts)

    def close(self) -> None:
        """End the stream and stop computing."""
        self._parts.close()


def stream_text(
    inputs: SearchInput, filters: Filters, detokenizer: StreamingDecoder, tokens: list[int]
) -> Generator[str, None, None]:
    """Sample one text and yield it as it is generated, in complete characters; appends to `tokens`."""
    steps = iter_sample(*inputs.model_arguments, **inputs.shared_arguments, generator=inputs.generator, filters=filters)
    for (sampled_token,) in steps:
        if sampled_token is not None:
            tokens.append(sampled_token[0])
            if text := detokenizer.push(sampled_token[0]):
                yield text
    if rest := detokenizer.finish():
        yield rest
