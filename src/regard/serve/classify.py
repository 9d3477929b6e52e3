"""Route /classify: labels of texts, images and audio clips, in the form of vLLM's answers."""

import secrets
import time
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from regard.pipeline.audio_classifier import AudioClassifier
from regard.pipeline.classifier import Classification, Classifier, Label, TaggedText
from regard.pipeline.image_classifier import ImageClassifier
from regard.pipeline.search import Beam
from regard.serve.model import Options, ServedModel, TextRequest
from regard.serve.schemas import ClassifyFiles, ClassifyRequest, describe_form
from regard.serve.state import ServerState, http_errors, validate
from regard.serve.uploads import refuse_invalid

ROUTE = "/classify"
NO_SEARCH = Beam(1)  # labels are no search; all their requests share batches


def make_router(state: ServerState) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["Labels"])

    @router.post(
        ROUTE,
        summary="Label texts, images or audio clips",
        openapi_extra={
            "requestBody": {
                "content": {
                    "application/json": {"schema": ClassifyRequest.model_json_schema()},
                    "multipart/form-data": {"schema": describe_form(ClassifyFiles, is_list=True)},
                }
            }
        },
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
    served = state.find(body.model, Classifier.kind)
    validate(lambda: served.require_kind(Classifier))
    requests = [TextRequest(text) for text in texts]
    tokens = validate(lambda: sum(map(served.count_tokens, requests)))
    adapter = served.find_adapter(body.model)
    results = await http_errors(served.run(Options(NO_SEARCH, adapter=adapter), requests))
    return _answer(served, adapter, results, tokens)


async def _label_files(state: ServerState, request: Request) -> dict[str, Any]:
    async with state.uploads.receive(request) as upload:
        name = upload.read_fields(ClassifyFiles).model or None
        served = state.find(name, ImageClassifier.kind, AudioClassifier.kind)
        if isinstance(served.pipeline, Classifier):
            raise HTTPException(422, f"The model '{served.name}' labels texts: send them as JSON, in the field input.")
        classifier = validate(lambda: served.require_kind(ImageClassifier, AudioClassifier))
        media = await state.uploads.decode(classifier, upload.files)
    adapter = served.find_adapter(name)
    results = await http_errors(served.run_media(Options(NO_SEARCH, adapter=adapter), media))
    return _answer(served, adapter, results, served.count_vectors(media))


def _answer(served: ServedModel, adapter: str | None, results: list[Label | TaggedText], tokens: int) -> dict[str, Any]:
    return {
        "id": f"classify-{secrets.token_hex(12)}",
        "object": "list",
        "created": int(time.time()),
        "model": adapter or served.name,
        "data": [{"index": index, **_describe(result)} for index, result in enumerate(results)],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _describe(result: Label | TaggedText) -> dict[str, Any]:
    """Return vLLM's fields, and Regard's own: probabilities by label, words with their tags."""
    if isinstance(result, TaggedText):
        tags = [{"label": tag.label, "probability": tag.probability} for tag in result.tags]
        return {"words": list(result.words), "tags": tags}
    probabilities = list(result.probabilities.values())
    fields = {"label": result.label, "probs": probabilities, "num_classes": len(probabilities)}
    fields |= {"probability": result.probability, "probabilities": result.probabilities}
    return fields | ({"is_truncated": result.is_truncated} if isinstance(result, Classification) else {})
