"""A text piece by piece, as it is written."""

from collections.abc import Iterator

from regard.decode.filters import Filters
from regard.decode.sample import iter_sample
from regard.pipeline.search import SearchInput
from regard.text.detokenize import StreamingDecoder


def stream_text(inputs: SearchInput, filters: Filters, detokenizer: StreamingDecoder) -> Iterator[str]:
    """The pieces of one text, never half a character. Stop asking, and nothing more is computed."""
    steps = iter_sample(
        inputs.step, inputs.state, inputs.prompt, **inputs.shared_arguments, generator=inputs.generator, filters=filters
    )
    for (sampled_token,) in steps:
        if sampled_token is not None and (text := detokenizer.push(sampled_token[0])):
            yield text
    if rest := detokenizer.finish():
        yield rest
