"""Route /caption: texts that describe images, in the form of /classify's answers."""

import secrets
import time
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from regard.pipeline.image_captioner import ImageCaptioner
from regard.pipeline.results import GeneratedText
from regard.serve.media_search import make_options
from regard.serve.schemas import CaptionRequest, describe_form
from regard.serve.state import ServerState, http_errors, validate

ROUTE = "/caption"


def make_router(state: ServerState) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["Captions"])

    @router.post(
        ROUTE,
        summary="Caption images",
        openapi_extra={
            "requestBody": {"content": {"multipart/form-data": {"schema": describe_form(CaptionRequest, is_list=True)}}}
        },
    )
    async def caption(request: Request) -> Response:
        async with state.uploads.receive(request) as upload:
            fields = upload.read_fields(CaptionRequest)
            name = fields.model or None
            served = state.find(name, ImageCaptioner.kind)
            captioner = validate(lambda: served.require_kind(ImageCaptioner))
            options = make_options(fields, state.settings.limits, captioner, served.find_adapter(name))
            media = await state.uploads.decode(captioner, upload.files)
        results = await http_errors(served.run_media(options, media))
        vectors, tokens = served.count_vectors(media), sum(len(result.tokens) for result in results)
        return JSONResponse(
            {
                "id": f"caption-{secrets.token_hex(12)}",
                "object": "list",
                "created": int(time.time()),
                "model": options.adapter or served.name,
                "data": [{"index": index, **_describe(result, fields)} for index, result in enumerate(results)],
                "usage": {"prompt_tokens": vectors, "completion_tokens": tokens, "total_tokens": vectors + tokens},
            }
        )

    return router


def _describe(result: GeneratedText, fields: CaptionRequest) -> dict[str, Any]:
    description: dict[str, Any] = {"text": result.text}
    if fields.alternatives:
        description["alternatives"] = [alternative.text for alternative in result.alternatives]
    return description
