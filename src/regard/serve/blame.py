"""Route /blame: training samples that may have taught a word of a translation (`regard blame`).

It shows training text to every client, so a server has it only with `blame = true`.
"""

import asyncio
from typing import Any

from fastapi import APIRouter, HTTPException

from regard.blame.run import PageBlame
from regard.serve.schemas import BlameRequest
from regard.serve.state import ServerState, http_errors
from regard.tasks.capabilities import TRANSLATES


def make_router(state: ServerState) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["Blame"])
    pages: dict[tuple[str, int], PageBlame] = {}  # by model and version

    @router.post("/blame", summary="Find training samples that may have taught a word of a translation")
    async def blame(body: BlameRequest) -> dict[str, Any]:
        state.check_texts([body.q, body.text, body.word], 1)
        model = state.find(body.model, TRANSLATES)
        if not model.has_blame:
            raise HTTPException(403, "This server does not show training samples.")
        key = model.name, model.version
        if key not in pages:
            pages.clear()  # a reloaded model has another version
            pages[key] = PageBlame(model.folder)
        answer = asyncio.to_thread(pages[key].answer, body.q, body.text, body.word, body.target or None)
        result: dict[str, Any] = await http_errors(answer)
        return result

    return router
