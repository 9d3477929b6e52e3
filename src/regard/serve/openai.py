"""OpenAI routes: /v1/models, /v1/completions, /v1/chat/completions, /v1/embeddings."""

import base64
import secrets
import time
from contextlib import aclosing
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, HTTPException
from fastapi.responses import JSONResponse, Response
from numpy.typing import NDArray

from regard.decode.filters import Filters
from regard.serve.model import ServedModel, describe
from regard.serve.schemas import ChatRequest, CompletionRequest, EmbeddingRequest
from regard.serve.state import ServerState, http_errors, validate
from regard.serve.stream import DONE, Events, StopStrings, respond_with_events, stop_at, to_event
from regard.tasks.capabilities import EMBEDS, GENERATES
from regard.tasks.requests import BatchOptions, ModelRequest
from regard.tasks.results import GeneratedText
from regard.tasks.search import Beam, Sampling, Search
from regard.tasks.text_stream import TextStream

DEFAULT_CHAT_TOKENS = 256
Form = Literal["text_completion", "chat.completion"]


def make_router(state: ServerState) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1", tags=["OpenAI"])

    @router.get("/models", summary="List the models")
    async def models() -> dict[str, Any]:
        data = [describe(model, adapter) for model in state.models.values() for adapter in (None, *model.adapters)]
        return {"object": "list", "data": data}

    @router.get("/models/{name}", summary="Describe a model")
    async def model(name: str) -> dict[str, Any]:
        served = state.find(name)
        return describe(served, served.find_adapter(name))

    @router.post("/completions", summary="Continue a text")
    async def completions(body: CompletionRequest) -> Response:
        prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
        job = _make_job(state, body.model, prompts, body, "text_completion", body.max_tokens)
        job.echo, job.logprobs = body.echo, body.logprobs is not None
        return await job.respond(body.stream)

    @router.post("/chat/completions", summary="Respond in a conversation")
    async def chat(body: ChatRequest) -> Response:
        served = state.find(body.model)
        messages = [{"role": message.role, "content": _read_content(message.content)} for message in body.messages]
        template = validate(lambda: served.chat_template(served.find_adapter(body.model)))
        prompt = await http_errors(state.render(template, messages))
        max_tokens = body.max_completion_tokens or body.max_tokens or DEFAULT_CHAT_TOKENS
        return await _make_job(state, body.model, [prompt], body, "chat.completion", max_tokens).respond(body.stream)

    @router.post("/embeddings", summary="Embed texts")
    async def embeddings(body: EmbeddingRequest) -> dict[str, Any]:
        texts = [body.input] if isinstance(body.input, str) else body.input
        state.check_texts(texts, 1)
        served, requests = state.find(body.model, EMBEDS), [ModelRequest(text) for text in texts]
        tokens = validate(lambda: served.count_tokens(requests))
        adapter = served.find_adapter(body.model)
        # The model may be reloaded before its turn, so it is looked up then, with its adapter.
        embed = lambda: served.require(EMBEDS).embedder.run(requests, BatchOptions())  # noqa: E731
        vectors = await http_errors(served.call(adapter, embed))
        data = [
            {"object": "embedding", "index": index, "embedding": _encode_vector(vector, body.encoding_format)}
            for index, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": adapter or served.name, "data": data, "usage": usage}

    return router


def _encode_vector(vector: NDArray[np.float32], form: str) -> str | list[float]:
    """Return a vector as numbers, or as base64 of little-endian float32, which OpenAI's client requests."""
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(value) for value in vector]


@dataclass
class _CompletionJob:
    """A request for generated text."""

    model: ServedModel
    prompts: list[str]
    form: Form
    options: BatchOptions
    filters: Filters
    n: int
    stop: list[str]
    seed: int | None
    echo: bool = False
    logprobs: bool = False

    def __post_init__(self) -> None:
        self.id = f"{'chatcmpl' if self.form == 'chat.completion' else 'cmpl'}-{secrets.token_hex(12)}"
        self.created = int(time.time())

    async def respond(self, should_stream: bool) -> Response:
        """Return the full response, or a stream of events."""
        if not should_stream:
            return JSONResponse(await self._complete())
        if len(self.prompts) > 1 or self.n > 1:
            raise HTTPException(422, "Streaming supports only one prompt and n = 1.")
        if self.echo or self.logprobs:
            raise HTTPException(422, "Streaming does not support echo and logprobs.")
        has_parts = not isinstance(self.options.search, Beam)
        return await respond_with_events(self._stream() if has_parts else self._stream_whole(), "/v1")

    async def _complete(self) -> dict[str, Any]:
        requests = [ModelRequest(prompt, seed=self.seed) for prompt in self.prompts]
        prompt_tokens = validate(lambda: self.model.count_tokens(requests))
        results: list[GeneratedText] = await http_errors(self.model.run(self.options, requests))
        choices, completion_tokens = list[dict[str, Any]](), 0
        for prompt, result in zip(self.prompts, results, strict=True):
            for text in (result, *result.alternatives)[: self.n]:
                choices.append(self._make_choice(len(choices), prompt, text))
                completion_tokens += len(text.tokens)
        usage = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        }
        return {**self._head(self.form), "choices": choices, "usage": usage}

    def _make_choice(self, index: int, prompt: str, result: GeneratedText) -> dict[str, Any]:
        stop = StopStrings(self.stop)
        text = stop.push(result.text) + stop.finish()
        reason = "stop" if stop.is_stopped or result.ended else "length"
        if self.form == "chat.completion":
            return {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
        choice: dict[str, Any] = {"index": index, "text": prompt + text if self.echo else text, "finish_reason": reason}
        choice["logprobs"] = None
        if self.logprobs:
            starts = list(accumulate(map(len, result.token_texts), initial=0))[:-1]
            count = sum(start < len(text) for start in starts) if stop.is_stopped else len(starts)  # of the text above
            tokens, logprobs = list(result.token_texts)[:count], list(result.logprobs)[:count]
            choice["logprobs"] = {"tokens": tokens, "token_logprobs": logprobs}
        return choice

    async def _stream(self) -> Events:
        streams, prompt_tokens = list[TextStream](), self.model.count_tokens([ModelRequest(self.prompts[0])])

        def start() -> TextStream:
            stream = self.model.require(GENERATES).stream(
                self.prompts[0], self.options.max_new_tokens or 1, filters=self.filters, seed=self.seed
            )
            streams.append(stream)
            return stream

        stop, parts = StopStrings(self.stop), self.model.stream(self.options.adapter, start)
        head = {"role": "assistant"} if self.form == "chat.completion" else {}  # of the first event
        start_time, is_first = time.perf_counter(), True
        async with aclosing(parts):  # type: ignore[type-var]
            async for part in stop_at(parts, stop):
                if is_first:
                    seconds, is_first = time.perf_counter() - start_time, False
                    self.model.metrics.first_token_seconds.labels(self.model.name).observe(seconds)
                yield to_event(self._chunk({**head, "content": part}, None))
                head = {}
        self.model.count(prompt_tokens, len(streams[0].tokens) if streams else 0)
        has_ended = stop.is_stopped or (bool(streams) and streams[0].ended)
        yield to_event(self._chunk(head, "stop" if has_ended else "length"))
        yield DONE

    async def _stream_whole(self) -> Events:
        """Yield the text of a beam search as one event, because no part of it is final before the end."""
        answer = await self._complete()
        (choice,) = answer["choices"]
        text = choice["message"]["content"] if "message" in choice else choice["text"]
        yield to_event(self._chunk({"content": text}, None))
        yield to_event(self._chunk({}, choice["finish_reason"]))
        yield DONE

    def _chunk(self, delta: dict[str, str], reason: str | None) -> dict[str, Any]:
        if self.form == "chat.completion":
            choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": reason}
            return {**self._head("chat.completion.chunk"), "choices": [choice]}
        choice = {"index": 0, "text": delta.get("content", ""), "finish_reason": reason, "logprobs": None}
        return {**self._head("text_completion"), "choices": [choice]}

    def _head(self, form: str) -> dict[str, Any]:
        name = self.options.adapter or self.model.name
        return {"id": self.id, "object": form, "created": self.created, "model": name}


def _make_job(
    state: ServerState,
    name: str,
    prompts: list[str],
    body: CompletionRequest | ChatRequest,
    form: Form,
    max_tokens: int,
) -> _CompletionJob:
    limits = state.settings.limits
    state.check_texts(prompts, body.n)
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    for message, value, limit in (
        ("generated tokens", max_tokens, limits.new_tokens),
        ("stop strings", len(stop), limits.stop),
        ("characters in a stop string", max(map(len, stop), default=0), limits.stop_characters),
        ("beams", getattr(body, "beam_size", None) or 1, limits.beam_size),
    ):
        if value > limit:
            raise HTTPException(422, f"The request has {value:,} {message}; the maximum is {limit:,}.")
    if not prompts or "" in stop:
        raise HTTPException(422, "A prompt is missing, or a stop string is empty.")
    model = state.find(name, GENERATES)
    filters = validate(lambda: _make_filters(body))
    beam_size = getattr(body, "beam_size", None)
    search: Search = Beam(max(beam_size, body.n)) if beam_size else Sampling(body.n, filters)
    options = BatchOptions(search, body.n, max_tokens, adapter=model.find_adapter(name))
    return _CompletionJob(model, prompts, form, options, filters, body.n, stop, body.seed)


def _make_filters(body: CompletionRequest | ChatRequest) -> Filters:
    if isinstance(body, ChatRequest):
        return Filters(body.temperature, top_p=body.top_p)
    return Filters(
        body.temperature,
        top_k=body.top_k,
        top_p=body.top_p,
        min_p=body.min_p,
        repetition_penalty=body.repetition_penalty,
    )


def _read_content(content: str | list[dict[str, Any]]) -> str:
    """Return the text of a message; raises an error for parts that are not text."""
    if isinstance(content, str):
        return content
    if any(part.get("type") != "text" or not isinstance(part.get("text"), str) for part in content):
        raise HTTPException(422, "Messages may only contain text.")
    return "".join(part["text"] for part in content)
