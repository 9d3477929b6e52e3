"""Route /classify: labels of texts, images and audio clips, in vLLM's response format."""

from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from regard.serve.media import answer_files
from regard.serve.model import ServedModel
from regard.serve.schemas import ClassifyRequest, FilesRequest, describe_form, describe_json
from regard.serve.state import ServerState, http_errors, validate
from regard.serve.uploads import Upload, refuse_invalid
from regard.tasks.capabilities import CLASSIFIES_FILES, CLASSIFIES_TEXTS
from regard.tasks.requests import BatchOptions, ModelRequest
from regard.tasks.text_classification import Classification, Label, TaggedText

ROUTE = "/classify"


def make_router(state: ServerState) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["Labels"])
    contents = [
        description["requestBody"]["content"]
        for description in (describe_json(ClassifyRequest), describe_form(FilesRequest, is_list=True))
    ]

    @router.post(
        ROUTE,
        summary="Classify texts, images or audio clips",
        openapi_extra={"requestBody": {"content": contents[0] | contents[1]}},
    )
    async def classify(request: Request) -> Response:
        is_json = request.headers.get("content-type", "").startswith("application/json")
        return JSONResponse(await (_label_texts if is_json else _label_files)(state, request))

    return router


async def _label_texts(state: ServerState, request: Request) -> dict[str, Any]:
    try:
        body = ClassifyRequest.model_validate_json(await request.body())
    except ValidationError as error:
        raise refuse_invalid(error) from None
    texts = [body.input] if isinstance(body.input, str) else body.input
    state.check_texts(texts, 1)
    served = state.find(body.model, CLASSIFIES_TEXTS)
    requests = [ModelRequest(text) for text in texts]
    tokens = validate(lambda: served.count_tokens(requests))
    adapter = served.find_adapter(body.model)
    results = await http_errors(served.run(BatchOptions(adapter=adapter), requests))
    return _answer(served, adapter, results, tokens)


async def _label_files(state: ServerState, request: Request) -> dict[str, Any]:
    def check(_: Upload, fields: FilesRequest) -> None:
        if fields.model and (served := state.find(fields.model)).can(CLASSIFIES_TEXTS):
            raise HTTPException(
                422, f"The model '{served.name}' classifies texts: send them as JSON in the field input."
            )

    def make_options(served: ServedModel, fields: FilesRequest) -> BatchOptions:
        return BatchOptions(adapter=served.find_adapter(fields.model))

    answer = await answer_files(state, request, FilesRequest, CLASSIFIES_FILES, make_options, check)
    tokens = answer.served.count_tokens(answer.requests)
    return _answer(answer.served, answer.options.adapter, answer.results, tokens)


def _answer(served: ServedModel, adapter: str | None, results: list[Label | TaggedText], tokens: int) -> dict[str, Any]:
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return served.list_answers("classify", adapter, [_describe(result) for result in results], usage)


def _describe(result: Label | TaggedText) -> dict[str, Any]:
    """Return vLLM's fields and Regard's additional ones: probabilities by label, words with tags."""
    if isinstance(result, TaggedText):
        tags = [{"label": tag.label, "probability": tag.probability} for tag in result.tags]
        return {"words": list(result.words), "tags": tags}
    probabilities = list(result.probabilities.values())
    fields = {"label": result.label, "probs": probabilities, "num_classes": len(probabilities)}
    fields |= {"probability": result.probability, "probabilities": result.probabilities}
    return fields | ({"is_truncated": result.is_truncated} if isinstance(result, Classification) else {})
