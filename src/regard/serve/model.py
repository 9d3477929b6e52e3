"""A served model: its pipeline, batcher and request encoding."""

import asyncio
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from regard.base.errors import RegardError
from regard.blame.run import PageBlame
from regard.serve.batcher import Batcher, BatchStats
from regard.serve.loaded import LoadedModel, load_model
from regard.serve.metrics import Metrics
from regard.serve.settings import ServeConfig
from regard.store.adapter_folder import find_adapter
from regard.store.model_path import find_model
from regard.tasks.capabilities import GENERATES, TRANSLATES, Able, Capability, Generates
from regard.tasks.pipeline import Pipeline
from regard.tasks.requests import BatchOptions, ModelRequest
from regard.tasks.results import GeneratedText
from regard.text.chat_template import ChatTemplate, find_chat_template, read_chat_template
from regard.text.sentences import split_sentences

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class EncodedRequest:
    """A request with its size and number of batch rows; its tokens are stale after a reload."""

    request: ModelRequest
    rows: int
    loaded: LoadedModel


class ServedModel:
    """A loaded model that processes requests in batches.

    Args:
        name: The name that clients use.
        folder: The model folder.
        settings: Server settings.
        metrics: Server metrics.
        adapters: LoRA adapters by the names that clients use.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        settings: ServeConfig,
        metrics: Metrics,
        adapters: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self.name, self.folder, self.settings, self.metrics = name, folder, settings, metrics
        self.adapters = adapters
        self._loaded, self._chat_templates = self._load()
        self.file_turn = asyncio.Lock()  # files share the queue with other requests, one chunk of one file at a time
        queue = settings.queue
        self.batcher: Batcher[Any, Any] = Batcher(
            self._run,
            max_tokens=queue.batch_tokens,
            max_requests=queue.batch_texts,
            max_waiting=queue.max_waiting,
            window=queue.window_ms / 1000,
            observe=self._observe,
        )

    async def reload(self) -> None:
        """Reload the folder. Requests continue; the new model takes over between two batches.

        Raises:
            RegardError: The folder cannot be loaded, or its task has changed.
        """
        loaded, templates = await asyncio.to_thread(self._load)
        if loaded.pipeline.kind != self.kind:
            message = f"The folder now contains a {loaded.pipeline.kind} instead of a {self.kind}."
            raise RegardError(message, hint="Restart the server.")

        def replace() -> None:
            self._loaded, self._chat_templates = loaded, templates

        await self.batcher.call(replace)

    def _load(self) -> tuple[LoadedModel, dict[str, ChatTemplate]]:
        loaded = load_model(self.folder, self.settings.engine, self.adapters)
        return loaded, self._read_templates(loaded)

    def _read_templates(self, loaded: LoadedModel) -> dict[str, ChatTemplate]:
        """Return the chat templates of the model and its adapters, from the settings or their folders."""
        templates = dict[str, ChatTemplate]()
        if GENERATES not in loaded.capabilities:
            return templates
        pipeline: Generates = loaded.pipeline  # type: ignore[assignment]
        adapter_folders = {name: find_adapter(path) for name, path in self.adapters.items()}
        for name, folder in {self.name: find_model(self.folder), **adapter_folders}.items():
            path = self.settings.chat_templates.get(name)
            text = find_chat_template(folder) if path is None else read_chat_template(path)
            if text is not None:
                bos = pipeline.settings.starts_with_bos
                templates[name] = ChatTemplate(text, pipeline.tokenizers.source, starts_with_bos=bos)
        return templates

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline."""
        return self._loaded.pipeline

    @property
    def version(self) -> int:
        """Modification time of the folder when it was loaded, in nanoseconds."""
        return self._loaded.version

    @property
    def kind(self) -> str:
        """The kind of model, e.g. "translation model"."""
        return self.pipeline.kind

    @property
    def languages(self) -> tuple[str, ...]:
        """The model's languages: source and target, or all languages of a multilingual translator."""
        return tuple(self.pipeline.settings.languages)

    @property
    def targets(self) -> tuple[str, ...]:
        """Target languages of a multilingual translator; empty if there is no choice."""
        return self.pipeline.target_languages

    @property
    def has_blame(self) -> bool:
        """Whether clients may ask which training samples taught a word."""
        return self.settings.blame and self.can(TRANSLATES) and PageBlame.is_possible(self.folder)

    def find_adapter(self, name: str | None) -> str | None:
        """Return the adapter for a client's model name; None for the model itself."""
        return name if name in self.adapters else None

    def chat_template(self, adapter: str | None = None) -> ChatTemplate:
        """Return the chat template, an adapter's own if it has one; raises `RegardError` if there is none."""
        for name in (adapter, self.name):
            if name in self._chat_templates:
                return self._chat_templates[name]
        hint = "Use /v1/completions, or start the server with a template for this model."
        raise RegardError(f"The model '{adapter or self.name}' has no chat template.", hint=hint)

    @property
    def capability(self) -> str:
        """The model's capabilities, e.g. "translate" or "generate"."""
        return self._loaded.capabilities[0].name

    def can(self, *capabilities: Capability[Any]) -> bool:
        """Return whether the model has one of these capabilities."""
        return any(capability in self._loaded.capabilities for capability in capabilities)

    def require(self, capability: Capability[Able]) -> Able:
        """Return the pipeline; raises `RegardError` if it lacks the route's capability."""
        if not self.can(capability):
            message = f"The model '{self.name}' is a {self.kind}, not a {capability.model}."
            hint = self._loaded.capabilities[0].hint
            raise RegardError(message, hint=hint and hint.format(inputs=self.pipeline.input.plural))
        return cast("Able", self.pipeline)

    async def call(self, adapter: str | None, function: Callable[[], Value]) -> Value:
        """Run a function that uses the model between two batches, with an adapter."""

        def adapted() -> Value:
            self._loaded.activate(adapter)
            return function()

        return await self.batcher.call(adapted)

    def stream(self, adapter: str | None, start: Callable[[], Iterator[str]]) -> AsyncIterator[str]:
        """Yield the items of an iterator created by `start`; other batches may run in between, with other adapters."""

        def parts() -> Iterator[str]:
            loaded, has_begun = self._loaded, False
            iterator = start()
            try:
                while True:
                    if not (has_begun and loaded.has_packed_weights):
                        loaded.activate(adapter)
                    part = next(iterator, None)
                    if part is None:
                        return
                    has_begun = True
                    yield part
            finally:
                if (close := getattr(iterator, "close", None)) is not None:
                    close()

        return self.batcher.stream(parts)

    async def run(self, options: BatchOptions, requests: Sequence[ModelRequest]) -> list[Any]:
        """Process the inputs of one request, batched with other requests."""
        return await self.run_encoded(options, self.encode(options, requests))

    def encode(self, options: BatchOptions, requests: Sequence[ModelRequest]) -> list[EncodedRequest]:
        """Return the requests with their sizes and rows; raises `RegardError` if one exceeds a limit."""
        loaded = self._loaded
        return [
            EncodedRequest(self._encode(request), self._count_rows(options, request), loaded) for request in requests
        ]

    async def run_encoded(self, options: BatchOptions, items: Sequence[EncodedRequest]) -> list[Any]:
        """Process encoded inputs, batched with other requests."""
        sizes = [max(1, item.request.size) for item in items]
        tokens = [size * item.rows for size, item in zip(sizes, items, strict=True)]
        results = await self.batcher.submit_all(options, items, tokens=tokens, timeout=self.settings.queue.timeout)
        self.count(sum(sizes), sum(len(getattr(result, "tokens", ())) for result in results))
        return results

    def _count_rows(self, options: BatchOptions, request: ModelRequest) -> int:
        """Return the number of batch rows of a request; raises `RegardError` for too many."""
        rows, limit = self.pipeline.count_rows(request, options), self.settings.limits.rows
        if rows > limit:
            message = f"The text needs {rows:,} beams, including required phrases; the maximum is {limit:,}."
            raise RegardError(message, hint="Use a smaller beam_size or shorter phrases.")
        return rows

    def list_answers(
        self, kind: str, adapter: str | None, data: list[dict[str, Any]], usage: dict[str, int]
    ) -> dict[str, Any]:
        """Return the response to a request with several inputs, in vLLM's format."""
        return {
            "id": f"{kind}-{secrets.token_hex(12)}",
            "object": "list",
            "created": int(time.time()),
            "model": adapter or self.name,
            "data": [{"index": index, **fields} for index, fields in enumerate(data)],
            "usage": usage,
        }

    def count(self, prompt_tokens: int, generated_tokens: int) -> None:
        """Count the tokens of a request in the metrics."""
        self.metrics.prompt_tokens.labels(self.name).inc(prompt_tokens)
        self.metrics.generation_tokens.labels(self.name).inc(generated_tokens)

    def count_tokens(self, requests: Iterable[ModelRequest]) -> int:
        """Return the number of input tokens or vectors; raises `RegardError` for an unreadable input."""
        return sum(max(1, self._encode(request).size) for request in requests)

    def _encode(self, request: ModelRequest) -> ModelRequest:
        """Return a request with its size; raises `RegardError` for an unreadable input."""
        limits = self.settings.limits
        limit = limits.sentence_tokens if self.pipeline.reads_sentences else limits.tokens
        if isinstance(request.item, str) and len(request.item) > limits.characters:  # before it is encoded
            message = f"The text has {len(request.item):,} characters; the maximum is {limits.characters:,}."
            raise RegardError(message, hint="Split it.")
        encoded = self.pipeline.encode_request(request)
        if encoded.size > limit:
            raise RegardError(f"The text has {encoded.size:,} tokens; the maximum is {limit:,}.", hint="Split it.")
        return encoded

    def confidence(self, result: GeneratedText) -> list[float]:
        """Return the probability of each token of a result whose request had `should_calibrate`."""
        return [math.exp(logprob) for logprob in result.logprobs]

    def _run(self, key: Hashable, items: list[EncodedRequest]) -> Sequence[Any]:
        assert isinstance(key, BatchOptions)  # noqa: S101 - `run_encoded` submits it
        loaded, options = self._loaded, replace(key, batch_tokens=2 * self.settings.queue.batch_tokens)
        loaded.activate(options.adapter)
        requests = [
            item.request if item.loaded is loaded else replace(item.request, tokens=None)  # of another tokenizer
            for item in items
        ]
        return loaded.pipeline.run(requests, options)

    def _observe(self, stats: BatchStats) -> None:
        self.metrics.batch_size.labels(self.name).observe(stats.requests)
        queue_seconds = self.metrics.queue_seconds.labels(self.name)
        for seconds in stats.queue_seconds:
            queue_seconds.observe(seconds)


def split_text(text: str) -> list[tuple[str, str]]:
    """Split a text into sentences with their trailing whitespace; joined, they equal the text."""
    return split_sentences(text) or [("", text)]


def describe(model: ServedModel, adapter: str | None = None) -> dict[str, Any]:
    """Return the `/v1/models` entry of the model or one of its adapters."""
    return {
        "id": adapter or model.name,
        "parent": None if adapter is None else model.name,
        "object": "model",
        "created": model.version // 10**9,
        "owned_by": "regard",
        "task": model.pipeline.settings.task,
        "capability": model.capability,
        "languages": list(model.languages),
        "targets": list(model.targets),
        "labels": list(getattr(model.pipeline, "labels", ())),
        "input": model.pipeline.input.describe(),
        "engine": model.pipeline.engine_name,
        "supports": [
            *(["stream", "alignment", "explain"] if getattr(model.pipeline, "has_torch_model", True) else []),
            *(["blame"] if adapter is None and model.has_blame else []),
            *(["quality"] if adapter is None and model.pipeline.quality else []),
        ],
        "parameters": model.pipeline.num_parameters,
    }
