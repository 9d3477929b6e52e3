"""The application: routes, and what stands before them."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException as StarletteHTTPException

from regard.base.errors import RegardError
from regard.base.version import __version__
from regard.serve import captions, classify, libretranslate, openai, page, transcriptions
from regard.serve.disconnect import App, Message, Receive, Scope, Send
from regard.serve.errors import describe_faults, make_error
from regard.serve.security import SecurityMiddleware
from regard.serve.settings import LOCAL_NAMES, ServeConfig, read_keys
from regard.serve.state import ServerState, http_errors

logger = logging.getLogger("regard.serve")
DIRECT_ROUTES = frozenset({"/translate"})
MEDIA_ROUTES = (captions.ROUTE, classify.ROUTE, transcriptions.ROUTE)  # their bodies have images or audio clips
DESCRIPTION = "Models trained with Regard. LibreTranslate's and OpenAI's clients work unchanged."


def make_app(settings: ServeConfig, state: ServerState | None = None) -> App:
    """Return the ASGI application of a server; `state`, if given, is used for its models."""
    state = state or ServerState(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await state.start()
        yield
        await state.stop()

    # FastAPI's pages at /docs and /redoc would load their scripts from the network of a third party.
    app = FastAPI(
        title="Regard",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # the address would have the name that the client sends as `Host`
    )
    app.state.server = state
    app.include_router(page.make_router())
    app.include_router(translation := libretranslate.make_router(state))
    app.include_router(openai.make_router(state))
    app.include_router(transcriptions.make_router(state))
    app.include_router(captions.make_router(state))
    app.include_router(classify.make_router(state))
    _add_operations(app, state)
    app.add_exception_handler(StarletteHTTPException, _answer_http_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid_request)
    app.add_exception_handler(Exception, _answer_failure)
    keys = {} if settings.keys_file is None else read_keys(settings.keys_file)
    if unknown := set(settings.reload_keys) - set(keys.values()):
        message = f"There is no key with the name '{min(unknown)}', which may reload models."
        raise RegardError(message, location="reload_keys", hint="Create it: `regard serve --new-key NAME --keys FILE`.")
    guard = SecurityMiddleware(
        _DirectRouteMiddleware(app, translation),
        keys=keys,
        hosts=LOCAL_NAMES | {settings.host, *settings.hosts},
        open_routes=frozenset(settings.open_routes),
        reload_keys=frozenset(settings.reload_keys),
        body_bytes=settings.limits.body_bytes,
        upload_bytes={"/translate_file": settings.limits.file_bytes}
        | dict.fromkeys(MEDIA_ROUTES, settings.limits.media_bytes),
        requests_per_minute=settings.requests_per_minute,
        refuse=lambda reason: state.metrics.refused.labels(reason).inc(),
    )
    return _AccessLogMiddleware(guard, state)


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

    @app.post("/reload/{name}", tags=["operations"], summary="Load a model's folder again without a pause")
    async def reload(name: str) -> dict[str, str]:
        await http_errors(state.reload(name))
        return {"status": "reloaded"}


class _DirectRouteMiddleware:
    """ASGI middleware: calls the handlers of the busiest routes itself; FastAPI's layers would take as long as they do.

    Args:
        app: The application, for all other routes.
        router: Its routes `DIRECT_ROUTES` have handlers that read a request and return a response.
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
        scope["app"], scope["route"] = self.app, route  # Starlette answers forms that cannot be read for an app only
        request = Request(scope, receive)
        try:
            response: Response = await route.endpoint(request)
        except StarletteHTTPException as error:
            response = await _answer_http_error(request, error)
        except Exception as error:
            await (await _answer_failure(request, error))(scope, receive, send)
            raise  # uvicorn logs it
        await response(scope, receive, send)


class _AccessLogMiddleware:
    """ASGI middleware: one line in the log and one count in the metrics for each request, also if it is refused.

    Lines have the name of the key and the reason of a refusal, never a key, a path or a text of the client.
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
            route = getattr(scope.get("route"), "path", "other")  # a path of the client is no label
            seconds = time.perf_counter() - start
            metrics = self.state.metrics
            metrics.requests.labels(route, str(status or "closed")).inc()
            metrics.latency.labels(route).observe(seconds)
            request_state = scope.get("state", {})
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
        """Let a start that fails for a reason that Regard knows say this reason, instead of a traceback."""

        async def explained_send(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed" and self.state.failure is not None:
                message["message"] = str(self.state.failure)
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
