"""Shared state of the routes: models, limits, metrics and error handling."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import HTTPException

from regard.base.errors import RegardError
from regard.serve import detect
from regard.serve.batcher import DeadlineError, QueueFullError, StoppedError, TooManyItemsError
from regard.serve.documents import TranslatedFiles
from regard.serve.loaded import assign_adapters
from regard.serve.metrics import Metrics
from regard.serve.model import ServedModel
from regard.serve.settings import ServeConfig
from regard.serve.suggestions import Suggestions
from regard.serve.uploads import Uploads
from regard.tasks.capabilities import (
    CAPTIONS,
    CLASSIFIES_FILES,
    CLASSIFIES_TEXTS,
    GENERATES,
    TRANSCRIBES,
    TRANSLATES,
    Capability,
)
from regard.text.chat_template import ChatTemplate

logger = logging.getLogger("regard.serve")
QUEUED_ROUTES: dict[bytes, tuple[Capability[Any], ...]] = {
    b"/translate": (TRANSLATES,),
    b"/v1/completions": (GENERATES,),
    b"/v1/chat/completions": (GENERATES,),
    b"/v1/audio/transcriptions": (TRANSCRIBES,),
    b"/caption": (CAPTIONS,),
    b"/classify": (CLASSIFIES_TEXTS, CLASSIFIES_FILES),
}


class ServerState:
    """The models of a server: load, warm up, reload, drain."""

    def __init__(self, settings: ServeConfig) -> None:
        self.settings, self.metrics, self.uploads = settings, Metrics(), Uploads(settings)
        self.suggestions = Suggestions(settings.suggestions)
        self.files = TranslatedFiles()
        self.models: dict[str, ServedModel] = {}
        self.is_ready = False
        self.failure: RegardError | None = None
        """Why the server cannot start."""
        self._reloading: asyncio.Task[None] | None = None
        self._arriving = Counter[tuple[Capability[Any], ...]]()
        self._early_refusals = 0
        self._renderer, self._rendering = ThreadPoolExecutor(1, thread_name_prefix="templates"), 0

    async def start(self) -> None:
        """Load and warm up all models; the server is ready afterwards."""
        try:
            self.suggestions.start()
            adapters = assign_adapters(self.settings)
            for name, folder in self.settings.models.items():
                self.models[name] = await self._load(name, folder, adapters[name])
            if any(model.can(TRANSLATES) for model in self.models.values()):
                await asyncio.to_thread(detect.warm_up, self.languages)
        except RegardError as error:
            self.failure = error
            raise
        self.is_ready = True

    async def reload(self, name: str) -> None:
        """Reload a model's folder; the old model serves requests until the new one is ready.

        Only one reload runs at a time, because each needs the memory of a model. A reload continues even if its client
        disconnects, and others are rejected until it ends.

        Raises:
            HTTPException: 409 if a model is already being loaded.
        """
        model = self.find(name)
        if self._reloading is not None and not self._reloading.done():
            raise HTTPException(409, "A model is already being loaded. Try again later.", {"Retry-After": "5"})
        self._reloading = asyncio.create_task(model.reload())
        self._reloading.add_done_callback(lambda task: _log_reload(name, task))
        await asyncio.shield(self._reloading)

    async def stop(self) -> None:
        """Reject new requests and finish accepted ones."""
        self.is_ready = False
        await asyncio.gather(*(model.batcher.stop() for model in self.models.values()))
        self.uploads.stop()
        self._renderer.shutdown()
        self.suggestions.stop()

    async def _load(self, name: str, folder: Path, adapters: dict[str, Path]) -> ServedModel:
        model = await asyncio.to_thread(ServedModel, name, folder, self.settings, self.metrics, adapters)
        model.batcher.start()
        logger.info("model %s is ready: %s%s", name, model.pipeline, "".join(f", adapter {name}" for name in adapters))
        return model

    def find(self, name: str | None, capability: Capability[Any] | None = None) -> ServedModel:
        """Return a model by its name or an adapter's; without a name, the first suitable model.

        Raises:
            HTTPException: 404 if there is no such model, 422 if it lacks the capability, 503 while models are loading.
        """
        if not self.is_ready:
            raise HTTPException(503, "The models are not ready.", {"Retry-After": "1"})
        if name is not None:
            for model in self.models.values():
                if name == model.name or name in model.adapters:
                    if capability is not None:
                        validate(partial(model.require, capability))
                    return model
            names = [name for model in self.models.values() for name in (model.name, *model.adapters)]
            raise HTTPException(404, f"There is no such model. Models: {', '.join(names)}.")
        models = [model for model in self.models.values() if capability is None or model.can(capability)]
        if not models:
            raise HTTPException(404, f"This server has no {capability.model if capability else 'model'}.")
        return models[0]

    async def render(self, template: ChatTemplate, messages: Sequence[Mapping[str, str]]) -> str:
        """Render a conversation outside the event loop, because a template may use its full CPU time limit.

        Raises:
            QueueFullError: Too many conversations wait.
            RegardError: The template rejects the conversation, fails, or exceeds a limit.
        """
        if self._rendering >= self.settings.queue.max_waiting:
            raise QueueFullError
        self._rendering += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._renderer, template.render, messages)
        finally:
            self._rendering -= 1

    @property
    def languages(self) -> set[str]:
        """All languages of the translation models."""
        models = [model for model in self.models.values() if model.can(TRANSLATES)]
        return {language for model in models for language in (*model.languages, *model.targets)}

    def is_queue_full(self, path: bytes) -> bool:
        """Return whether the queues of all models for this path are full.

        Many requests may arrive before the first one is queued, so each accepted request counts as waiting until the
        event loop has run it.
        """
        capabilities = QUEUED_ROUTES.get(path, ())
        models = [model for model in self.models.values() if model.can(*capabilities)]
        if not models:
            return False
        if all(model.batcher.free <= self._arriving[capabilities] for model in models):
            self.metrics.refused.labels("queue").inc()
            if not self._early_refusals:
                asyncio.get_running_loop().call_later(1, self._log_early_refusals)
            self._early_refusals += 1
            return True
        if not self._arriving[capabilities]:
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._arriving.pop, capabilities)  # after the next turn of the event loop
        self._arriving[capabilities] += 1
        return False

    def _log_early_refusals(self) -> None:
        """Log at most one line per second, because an overloaded server has no time for one per request."""
        logger.info("requests rejected because the queue is full: %d", self._early_refusals)
        self._early_refusals = 0

    def check_texts(self, texts: list[str], n: int, phrases: Sequence[str] = ()) -> None:
        """Reject requests with too many texts, characters (including phrases) or alternatives."""
        limits = self.settings.limits
        characters = sum(map(len, texts)) + sum(map(len, phrases))
        for name, value, limit in (
            ("texts", len(texts), limits.texts),
            ("characters", characters, limits.characters),
            ("alternatives", n, limits.n),
        ):
            if value > limit:
                status = 413 if name != "alternatives" else 422
                raise HTTPException(status, f"The request has {value:,} {name}; the maximum is {limit:,}.")


def _log_reload(name: str, task: asyncio.Task[None]) -> None:
    """Log the end of a reload, whose client may have disconnected."""
    error = None if task.cancelled() else task.exception()
    logger.info("model %s was reloaded", name) if error is None else logger.error("reload of %s: %s", name, error)


async def http_errors(work: Awaitable[Any]) -> Any:
    """Await a result and convert expected errors to responses: 422, 429, 503."""
    try:
        return await work
    except TooManyItemsError:
        raise HTTPException(413, "The request has more sentences than the queue's capacity.") from None
    except QueueFullError:
        raise HTTPException(429, "The queue is full.", {"Retry-After": "1"}) from None
    except DeadlineError:
        raise HTTPException(503, "The request waited too long.", {"Retry-After": "5"}) from None
    except StoppedError:
        raise HTTPException(503, "The server is stopping.", {"Retry-After": "5"}) from None
    except RegardError as error:
        raise HTTPException(422, f"{error.message} {error.hint or ''}".strip()) from None


def validate(function: Callable[[], Any]) -> Any:
    """Call a function that checks input; its `RegardError` becomes a 422 response."""
    try:
        return function()
    except RegardError as error:
        raise HTTPException(422, f"{error.message} {error.hint or ''}".strip()) from None
