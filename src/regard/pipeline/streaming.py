"""A text piece by piece, as it is written."""

from collections.abc import Iterator

from regard.decode.filters import Filters
from regard.decode.sample import iter_sample
from regard.pipeline.searches import Task
from regard.text.stream import StreamingDecoder


def pieces(task: Task, filters: Filters, stream: StreamingDecoder) -> Iterator[str]:
    """The pieces of one text, never half a character. Stop asking, and nothing more is computed."""
    steps = iter_sample(task.step, task.state, task.first, **task.limits, generator=task.generator, filters=filters)
    for (written,) in steps:
        if written is not None and (piece := stream.push(written[0])):
            yield piece
    if rest := stream.finish():
        yield rest
