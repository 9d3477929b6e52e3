"""OpenAI route /v1/audio/transcriptions."""

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from regard.serve.media import answer_files, describe_text, make_search_options
from regard.serve.schemas import TranscriptionRequest, describe_form
from regard.serve.state import ServerState
from regard.serve.uploads import Upload
from regard.tasks.capabilities import TRANSCRIBES

ROUTE = "/v1/audio/transcriptions"


def make_router(state: ServerState) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["OpenAI"])

    @router.post(ROUTE, summary="Transcribe an audio clip", openapi_extra=describe_form(TranscriptionRequest))
    async def transcribe(request: Request) -> Response:
        answer = await answer_files(state, request, TranscriptionRequest, TRANSCRIBES, make_search_options, _check)
        (clip,), (result,) = answer.requests, answer.results
        if answer.fields.response_format == "text":
            return PlainTextResponse(f"{result.text}\n")
        usage = {"type": "duration", "seconds": round(len(clip.item) / clip.item.rate, 3)}
        return JSONResponse({"text": result.text, "usage": usage} | describe_text(result, answer.fields))

    return router


def _check(upload: Upload, fields: TranscriptionRequest) -> None:
    """Reject unsupported options instead of ignoring them."""
    if len(upload.files) > 1:
        raise HTTPException(422, "Send exactly one audio clip.")
    for name, is_given in (
        ("temperature", fields.temperature > 0),
        ("prompt", bool(fields.prompt)),
        ("stream", fields.stream),
    ):
        if is_given:
            raise HTTPException(
                422, f"{name} is not supported: this server transcribes with beam search. Leave it out."
            )
