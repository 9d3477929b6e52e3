"""Common code of the image and audio routes: convert the files and fields of a form to model requests."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fastapi import HTTPException, Request

from regard.serve.model import ServedModel
from regard.serve.schemas import FilesRequest, MediaSearchRequest
from regard.serve.state import ServerState, http_errors
from regard.serve.uploads import Upload
from regard.tasks.capabilities import Capability
from regard.tasks.requests import BatchOptions, ModelRequest
from regard.tasks.results import GeneratedText

Fields = TypeVar("Fields", bound=FilesRequest)


@dataclass(frozen=True)
class MediaAnswer(Generic[Fields]):
    """The results of a model for the files of a form."""

    served: ServedModel
    fields: Fields
    options: BatchOptions
    requests: list[ModelRequest]
    results: list[Any]


async def answer_files(
    state: ServerState,
    request: Request,
    schema: type[Fields],
    capability: Capability[Any],
    make_options: Callable[[ServedModel, Fields], BatchOptions],
    check: Callable[[Upload, Fields], None] = lambda _upload, _fields: None,
) -> MediaAnswer[Fields]:
    """Receive and decode the files of a form, and run the requested model.

    Args:
        state: The server.
        request: The request.
        schema: The fields of the form.
        capability: The required capability.
        make_options: Returns the batch options; may reject the form's options.
        check: Rejects invalid forms before the model is looked up.

    Raises:
        HTTPException: The form, a field or a file is invalid, or the model cannot run now.
    """
    async with state.uploads.receive(request) as upload:
        fields = upload.read_fields(schema)
        check(upload, fields)
        served = state.find(fields.model or None, capability)
        options = make_options(served, fields)
        media = await state.uploads.decode(served.pipeline.input, upload.files)
    requests = [ModelRequest(item) for item in media]
    results = await http_errors(served.run(options, requests))
    return MediaAnswer(served, fields, options, requests, results)


def make_search_options(served: ServedModel, fields: MediaSearchRequest) -> BatchOptions:
    """Return the options of a model's beam search with the alternatives of a form.

    Raises:
        HTTPException: 422 for too many beams or alternatives.
    """
    n_best, limits = fields.alternatives + 1, served.settings.limits
    for name, value, limit in (("beams", fields.beam_size or 1, limits.beam_size), ("alternatives", n_best, limits.n)):
        if value > limit:
            raise HTTPException(422, f"The request has {value:,} {name}; the maximum is {limit:,}.")
    pipeline: Any = served.pipeline  # captions or transcribes
    search = pipeline.make_search(fields.beam_size, n_best=n_best)
    return BatchOptions(search, n_best, adapter=served.find_adapter(fields.model))


def describe_text(result: GeneratedText, fields: MediaSearchRequest) -> dict[str, Any]:
    """Return the generated text with the requested alternatives."""
    alternatives = [alternative.text for alternative in result.alternatives]
    return {"text": result.text} | ({"alternatives": alternatives} if fields.alternatives else {})
