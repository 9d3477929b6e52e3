"""The ASGI application: routes and middleware."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect

from regard.base.errors import RegardError
from regard.base.version import __version__
from regard.serve import blame, captions, classify, libretranslate, openai, page, transcriptions
from regard.serve.disconnect import App, Message, Receive, Scope, Send, cancel_on_disconnect
from regard.serve.errors import describe_faults, make_error
from regard.serve.security import (
    BodyLimitMiddleware,
    ClientMiddleware,
    HttpMiddleware,
    OriginMiddleware,
    RequestIdMiddleware,
)
from regard.serve.settings import LOCAL_NAMES, ServeConfig, read_keys
from regard.serve.state import ServerState, http_errors

logger = logging.getLogger("regard.serve")
DIRECT_ROUTES = frozenset({"/translate"})
MEDIA_ROUTES = (captions.ROUTE, classify.ROUTE, transcriptions.ROUTE)  # routes that take images or audio clips
DESCRIPTION = "Models trained with Regard. LibreTranslate and OpenAI clients work unchanged."


def make_app(settings: ServeConfig, state: ServerState | None = None) -> App:
    """Return the ASGI application; `state`, if given, provides the models."""
    state = state or ServerState(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await state.start()
        yield
        await state.stop()

    # FastAPI's pages at /docs and /redoc would load scripts from a third-party CDN.
    app = FastAPI(
        title="Regard",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # the URL would contain the client's `Host` header
    )
    app.state.server = state
    app.include_router(page.make_router())
    app.include_router(translation := libretranslate.make_router(state))
    app.include_router(openai.make_router(state))
    app.include_router(transcriptions.make_router(state))
    app.include_router(captions.make_router(state))
    app.include_router(classify.make_router(state))
    app.include_router(blame.make_router(state))
    _add_operations(app, state)
    app.add_exception_handler(StarletteHTTPException, _answer_http_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid_request)
    app.add_exception_handler(Exception, _answer_failure)
    keys = {} if settings.keys_file is None else read_keys(settings.keys_file)
    if unknown := set(settings.reload_keys) - set(keys.values()):
        message = f"reload_keys names an unknown key: '{min(unknown)}'."
        raise RegardError(message, location="reload_keys", hint="Create it: `regard serve --new-key NAME --keys FILE`.")
    # From the innermost outwards: a request passes the last one first.
    stack: App = _DisconnectMiddleware(_DirectRouteMiddleware(app, translation))
    stack = ClientMiddleware(
        stack,
        keys=keys,
        open_routes=frozenset(settings.open_routes),
        reload_keys=frozenset(settings.reload_keys),
        requests_per_minute=settings.requests_per_minute,
    )
    stack = OriginMiddleware(stack, hosts=None if keys else LOCAL_NAMES | {settings.host, *settings.hosts})
    uploads = {"/translate_file": settings.limits.file_bytes} | dict.fromkeys(MEDIA_ROUTES, settings.limits.media_bytes)
    stack = BodyLimitMiddleware(stack, body_bytes=settings.limits.body_bytes, upload_bytes=uploads)
    return _AccessLogMiddleware(RequestIdMiddleware(stack), state)


def _add_operations(app: FastAPI, state: ServerState) -> None:
    @app.get("/health", tags=["operations"], summary="Whether the process is alive")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/ready", tags=["operations"], summary="Whether all models are loaded and warm")
    async def ready() -> dict[str, str]:
        if not state.is_ready:
            raise HTTPException(503, "not ready", {"Retry-After": "1"})
        return {"status": "ready"}

    @app.get("/metrics", tags=["operations"], summary="Prometheus metrics")
    async def metrics() -> Response:
        for name, model in state.models.items():
            state.metrics.waiting.labels(name).set(model.batcher.waiting)
            state.metrics.running.labels(name).set(model.batcher.running)
        return PlainTextResponse(state.metrics.render(), media_type="text/plain; version=0.0.4")

    @app.post("/reload/{name}", tags=["operations"], summary="Reload a model folder without downtime")
    async def reload(name: str) -> dict[str, str]:
        await http_errors(state.reload(name))
        return {"status": "reloaded"}


class _DirectRouteMiddleware:
    """ASGI middleware that calls the busiest routes' handlers directly, because FastAPI's layers are slow.

    Args:
        app: The application, for all other routes.
        router: The router; handlers of `DIRECT_ROUTES` take a request and return a response.
    """

    def __init__(self, app: App, router: APIRouter) -> None:
        self.app = app
        self.routes = {
            (method, route.path): route
            for route in router.routes
            if isinstance(route, APIRoute) and route.path in DIRECT_ROUTES
            for method in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self.routes.get((scope.get("method", ""), scope.get("path", "")))
        if route is None:
            await self.app(scope, receive, send)
            return
        scope["app"], scope["route"] = self.app, route  # Starlette handles unreadable forms only inside an app
        request = Request(scope, receive)
        try:
            response: Response = await route.endpoint(request)
        except StarletteHTTPException as error:
            response = await _answer_http_error(request, error)
        except Exception as error:
            await (await _answer_failure(request, error))(scope, receive, send)
            raise  # uvicorn logs it
        await response(scope, receive, send)


class _DisconnectMiddleware(HttpMiddleware):
    """ASGI middleware that cancels a request when its client disconnects."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(ClientDisconnect):  # the client disconnected, or its body was rejected
            await cancel_on_disconnect(self.app, scope, receive, send)


class _AccessLogMiddleware:
    """ASGI middleware that logs and counts every request, including rejected ones.

    Log lines contain the key name and the reason for a rejection, but never a key, path or text from the client.
    """

    def __init__(self, app: App, state: ServerState) -> None:
        self.app, self.state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, self._explain_failure(send))
            return
        start, status = time.perf_counter(), 0

        async def observed_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, observed_send)
        finally:
            route = getattr(scope.get("route"), "path", "other")  # a client's path must not become a label
            seconds = time.perf_counter() - start
            metrics = self.state.metrics
            metrics.requests.labels(route, str(status or "closed")).inc()
            metrics.latency.labels(route).observe(seconds)
            request_state = scope.get("state", {})
            if "refusal" in request_state:
                metrics.refused.labels(request_state["refusal"]).inc()
            fields = {
                "request_id": request_state.get("request_id"),
                "method": scope["method"],
                "route": route,
                "status": status,
                "milliseconds": round(1000 * seconds, 1),
            }
            for name in ("key", "refusal"):
                if name in request_state:
                    fields[name] = request_state[name]
            logger.info("request", extra=fields)

    def _explain_failure(self, send: Send) -> Send:
        """Report a known startup error without a traceback."""

        async def explained_send(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed" and self.state.failure is not None:
                failure = self.state.failure
                parts = (failure.location and f"{failure.location}:", failure.message, failure.hint)
                message["message"] = " ".join(part for part in parts if part)  # one line of the log
            await send(message)

        return explained_send


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)  # noqa: S101 - registered for it
    content = make_error(request.scope["path"], str(error.detail), error.status_code)
    return JSONResponse(content, error.status_code, error.headers)


async def _answer_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it
    names = error.errors()[0]["loc"][1:2]  # after "body"
    param = names[0] if names and isinstance(names[0], str) else None
    return JSONResponse(make_error(request.scope["path"], describe_faults(error.errors(), 1), 422, param), 422)


async def _answer_failure(request: Request, _: Exception) -> Response:
    close = {"Connection": "close"}  # uvicorn closes it when it has logged the exception
    return JSONResponse(make_error(request.scope["path"], "The server failed.", 500), 500, close)
