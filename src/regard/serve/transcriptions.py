"""Route of OpenAI: /v1/audio/transcriptions."""

from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from regard.data.example import AudioClip
from regard.pipeline.results import GeneratedText
from regard.pipeline.transcriber import Transcriber
from regard.serve.media import Media
from regard.serve.media_search import make_options
from regard.serve.schemas import TranscriptionRequest, describe_form
from regard.serve.state import ServerState, http_errors, validate

ROUTE = "/v1/audio/transcriptions"


def make_router(state: ServerState) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["OpenAI"])

    @router.post(
        ROUTE,
        summary="Transcribe an audio clip",
        openapi_extra={
            "requestBody": {"content": {"multipart/form-data": {"schema": describe_form(TranscriptionRequest)}}}
        },
    )
    async def transcribe(request: Request) -> Response:
        async with state.uploads.receive(request) as upload:
            fields = upload.read_fields(TranscriptionRequest)
            if len(upload.files) > 1:
                raise HTTPException(422, "One audio clip at a time can be transcribed.")
            _check_fields(fields)
            name = fields.model or None
            served = state.find(name, Transcriber.kind)
            transcriber = validate(lambda: served.require_kind(Transcriber))
            options = make_options(fields, state.settings.limits, transcriber, served.find_adapter(name))
            media = await state.uploads.decode(transcriber, upload.files)
        (result,) = await http_errors(served.run_media(options, media))
        if fields.response_format == "text":
            return PlainTextResponse(f"{result.text}\n")
        return JSONResponse(_answer(result, media, fields))

    return router


def _check_fields(fields: TranscriptionRequest) -> None:
    """Refuse what these models cannot do: an answer without it would not be what the client asked for."""
    for name, is_given in (
        ("temperature", fields.temperature > 0),
        ("prompt", bool(fields.prompt)),
        ("stream", fields.stream),
    ):
        if is_given:
            raise HTTPException(422, f"This server transcribes by beam search, without {name}. Leave it out.")


def _answer(result: GeneratedText, media: list[Media], fields: TranscriptionRequest) -> dict[str, Any]:
    seconds = sum(len(clip) / clip.rate for clip in media if isinstance(clip, AudioClip))
    answer: dict[str, Any] = {"text": result.text, "usage": {"type": "duration", "seconds": round(seconds, 3)}}
    if fields.alternatives:
        answer["alternatives"] = [alternative.text for alternative in result.alternatives]
    return answer
