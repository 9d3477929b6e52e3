"""Route /caption: image captions, in the format of /classify responses."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from regard.serve.media import answer_files, describe_text, make_search_options
from regard.serve.schemas import MediaSearchRequest, describe_form
from regard.serve.state import ServerState
from regard.tasks.capabilities import CAPTIONS

ROUTE = "/caption"


def make_router(state: ServerState) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["Captions"])

    @router.post(ROUTE, summary="Caption images", openapi_extra=describe_form(MediaSearchRequest, is_list=True))
    async def caption(request: Request) -> Response:
        answer = await answer_files(state, request, MediaSearchRequest, CAPTIONS, make_search_options)
        data = [describe_text(result, answer.fields) for result in answer.results]
        vectors = answer.served.count_tokens(answer.requests)
        tokens = sum(len(result.tokens) for result in answer.results)
        usage = {"prompt_tokens": vectors, "completion_tokens": tokens, "total_tokens": vectors + tokens}
        return JSONResponse(answer.served.list_answers("caption", answer.options.adapter, data, usage))

    return router
