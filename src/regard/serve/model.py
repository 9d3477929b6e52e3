"""A model in a server: its pipeline, its batcher, and requests in the form that a batch needs."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from regard.base.errors import RegardError
from regard.pipeline.audio_classifier import AudioClassifier
from regard.pipeline.classifier import Classifier, Label, TaggedText
from regard.pipeline.constraints import Constraints
from regard.pipeline.embedder import Embedder
from regard.pipeline.generator import TextGenerator
from regard.pipeline.image_captioner import ImageCaptioner
from regard.pipeline.image_classifier import ImageClassifier
from regard.pipeline.load import AnyPipeline
from regard.pipeline.results import GeneratedText, Translation
from regard.pipeline.scorer import Scorer
from regard.pipeline.search import Sampling, Search
from regard.pipeline.transcriber import Transcriber
from regard.pipeline.translator import Translator
from regard.pipeline.word_alignment import with_alignment
from regard.serve.batcher import Batcher, BatchStats
from regard.serve.loaded import LoadedModel, load_model
from regard.serve.media import Media, MediaPipeline, count_vectors, describe_input
from regard.serve.metrics import Metrics
from regard.serve.settings import ServeConfig
from regard.store.adapter_folder import find_adapter
from regard.store.model_path import find_model
from regard.text.chat_template import ChatTemplate, find_chat_template, read_chat_template
from regard.text.sentences import split_sentences

Required = TypeVar("Required", bound=AnyPipeline)
Value = TypeVar("Value")
Result = GeneratedText | Label | TaggedText
ROUTES = {
    Translator.kind: "Use /translate.",
    TextGenerator.kind: "Use /v1/completions.",
    Embedder.kind: "Use /v1/embeddings.",
    Classifier.kind: "Use /classify with texts.",
    ImageClassifier.kind: "Use /classify with images.",
    AudioClassifier.kind: "Use /classify with audio clips.",
    Transcriber.kind: "Use /v1/audio/transcriptions.",
    ImageCaptioner.kind: "Use /caption.",
}
"""What a model of each kind is for."""


@dataclass(frozen=True)
class Options:
    """What all requests of a batch have in common."""

    search: Search
    n_best: int = 1
    max_new_tokens: int | None = None
    forbidden: tuple[str, ...] = ()
    adapter: str | None = None


@dataclass(frozen=True)
class TextRequest:
    """One text of a request."""

    text: str
    target_language: str | None = None
    prefix: str = ""
    required: tuple[str, ...] = ()
    seed: int | None = None
    should_align: bool = False
    should_calibrate: bool = False
    should_score: bool = False


@dataclass(frozen=True, eq=False)
class EncodedRequest:
    """A text with its tokens and the rows of a batch that it needs; the tokens are stale after a reload."""

    request: TextRequest
    tokens: list[int]
    rows: int
    loaded: LoadedModel


class ServedModel:
    """A loaded model that answers requests in batches.

    Args:
        name: Its name for clients.
        folder: The model folder.
        settings: Settings of the server.
        metrics: Counters of the server.
        adapters: LoRA adapters beside the model, by their names for clients.
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
        self.file_turn = asyncio.Lock()  # files share the queue with other requests, one part of one file at a time
        queue = settings.queue
        self.batcher: Batcher[EncodedRequest | Media, Any] = Batcher(
            self._run,
            max_tokens=queue.batch_tokens,
            max_requests=queue.batch_texts,
            max_waiting=queue.max_waiting,
            window=queue.window_ms / 1000,
            observe=self._observe,
        )

    async def reload(self) -> None:
        """Load the folder again. Requests go on meanwhile; the new model takes over between two batches.

        Raises:
            RegardError: The folder cannot be loaded, or its model has another task.
        """
        loaded, templates = await asyncio.to_thread(self._load)
        if loaded.pipeline.kind != self.kind:
            message = f"The folder has a {loaded.pipeline.kind} now; this model is a {self.kind}."
            raise RegardError(message, hint="Start the server again.")

        def replace() -> None:
            self._loaded, self._chat_templates = loaded, templates

        await self.batcher.call(replace)

    def _load(self) -> tuple[LoadedModel, dict[str, ChatTemplate]]:
        loaded = load_model(self.folder, self.settings.engine, self.adapters)
        return loaded, self._read_templates(loaded)

    def _read_templates(self, loaded: LoadedModel) -> dict[str, ChatTemplate]:
        """Return the chat templates of the model and its adapters: those of the settings, or of their folders."""
        pipeline, templates = loaded.pipeline, dict[str, ChatTemplate]()
        if not isinstance(pipeline, TextGenerator):
            return templates
        adapter_folders = {name: find_adapter(path) for name, path in self.adapters.items()}
        for name, folder in {self.name: find_model(self.folder), **adapter_folders}.items():
            path = self.settings.chat_templates.get(name)
            text = find_chat_template(folder) if path is None else read_chat_template(path)
            if text is not None:
                bos = pipeline.settings.starts_with_bos
                templates[name] = ChatTemplate(text, pipeline.tokenizers.source, starts_with_bos=bos)
        return templates

    @property
    def pipeline(self) -> AnyPipeline:
        """The pipeline."""
        return self._loaded.pipeline

    @property
    def version(self) -> int:
        """Time of the folder's last change when it was loaded, in nanoseconds."""
        return self._loaded.version

    @property
    def kind(self) -> str:
        """What the model does: "translation model", "language model" ..."""
        return self.pipeline.kind

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the model's settings: of a translator source and target, or all of a multilingual one."""
        return tuple(self.pipeline.settings.languages)

    @property
    def targets(self) -> tuple[str, ...]:
        """The target languages of a multilingual translator; empty if it needs no choice."""
        is_translator = isinstance(self.pipeline, Translator)
        return tuple(self.translator.tokenizers.source.specials.languages) if is_translator else ()

    @property
    def translator(self) -> Translator:
        """The pipeline of a translation model; `RegardError` if the model has another task."""
        return self.require_kind(Translator)

    @property
    def generator(self) -> TextGenerator:
        """The pipeline of a language model; `RegardError` if the model has another task."""
        return self.require_kind(TextGenerator)

    @property
    def embedder(self) -> Embedder:
        """The pipeline of an encoder; `RegardError` if the model has another task."""
        return self._loaded.embedder or self.require_kind(Embedder)

    def find_adapter(self, name: str | None) -> str | None:
        """Return the adapter that a client's name of a model means; None: the model as it is."""
        return name if name in self.adapters else None

    def chat_template(self, adapter: str | None = None) -> ChatTemplate:
        """Return the template of conversations, an adapter's own if it has one; `RegardError` if there is none."""
        for name in (adapter, self.name):
            if name in self._chat_templates:
                return self._chat_templates[name]
        hint = "Use /v1/completions, or start the server with a template for this model."
        raise RegardError(f"The model '{adapter or self.name}' has no chat template.", hint=hint)

    def require_kind(self, *classes: type[Required]) -> Required:
        """Return the pipeline if it is one of these; `RegardError` if the model has another task."""
        for pipeline_class in classes:
            if isinstance(self.pipeline, pipeline_class):
                return self.pipeline
        expected = " or ".join(pipeline_class.kind for pipeline_class in classes)
        raise RegardError(f"The model '{self.name}' is a {self.kind}, not a {expected}.", hint=ROUTES.get(self.kind))

    async def call(self, adapter: str | None, function: Callable[[], Value]) -> Value:
        """Run a function that uses the model between two batches, with an adapter."""

        def adapted() -> Value:
            self._loaded.activate(adapter)
            return function()

        return await self.batcher.call(adapted)

    def stream(self, adapter: str | None, start: Callable[[], Iterator[str]]) -> AsyncIterator[str]:
        """Yield the parts of an iterator that `start` creates; other batches run between them, with other adapters."""

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

    async def run(self, options: Options, requests: Sequence[TextRequest]) -> list[Any]:
        """Answer the texts of one request, in batches with those of other clients: generated texts, or labels."""
        return await self.run_encoded(options, self.encode(options, requests))

    def encode(self, options: Options, requests: Sequence[TextRequest]) -> list[EncodedRequest]:
        """Return the requests with their tokens and rows; raises `RegardError` if one exceeds a limit."""
        loaded = self._loaded
        return [
            EncodedRequest(request, self._encode(request), self._count_rows(options, request), loaded)
            for request in requests
        ]

    async def run_encoded(self, options: Options, items: Sequence[EncodedRequest]) -> list[Any]:
        """Answer encoded inputs, batched with other requests."""
        source_tokens = [max(1, len(item.tokens)) for item in items]
        tokens = [count * item.rows for count, item in zip(source_tokens, items, strict=True)]
        return await self._submit(options, items, tokens, sum(source_tokens))

    async def run_media(self, options: Options, media: Sequence[Media]) -> list[Any]:
        """Answer the images or audio clips of one request, in batches with those of other clients."""
        vectors = [self.count_vectors([item]) for item in media]
        tokens = [count * options.search.rows_per_text for count in vectors]
        return await self._submit(options, media, tokens, sum(vectors))

    async def _submit(
        self, options: Options, items: Sequence[EncodedRequest | Media], tokens: list[int], read_tokens: int
    ) -> list[Any]:
        results = await self.batcher.submit_all(options, items, tokens=tokens, timeout=self.settings.queue.timeout)
        self.count(read_tokens, sum(len(result.tokens) for result in results if isinstance(result, GeneratedText)))
        return results

    def count_vectors(self, media: Sequence[Media]) -> int:
        """Return how many vectors images or audio clips become."""
        pipeline = self.pipeline
        assert isinstance(pipeline, MediaPipeline)  # noqa: S101 - its routes decoded them
        return sum(count_vectors(pipeline, item) for item in media)

    def _count_rows(self, options: Options, request: TextRequest) -> int:
        """Return the rows of a batch that a text needs; raises `RegardError` for too many.

        Required phrases multiply the beams of a search, by one more than their number of tokens.
        """
        rows, limit = options.search.rows_per_text, self.settings.limits.rows
        if request.required:
            rows *= Constraints(required=[request.required]).beam_multiplier(self.translator.tokenizers.target)
        if rows > limit:
            message = f"A text may have {limit:,} beams, those for required phrases included; this one needs {rows:,}."
            raise RegardError(message, hint="Use a smaller beam_size or shorter phrases.")
        return rows

    def count(self, prompt_tokens: int, generated_tokens: int) -> None:
        """Count the tokens of a request in the metrics."""
        self.metrics.prompt_tokens.labels(self.name).inc(prompt_tokens)
        self.metrics.generation_tokens.labels(self.name).inc(generated_tokens)

    def count_tokens(self, request: TextRequest) -> int:
        """Return how many tokens the model reads; raises `RegardError` for a text that it cannot read."""
        return max(1, len(self._encode(request)))

    def _encode(self, request: TextRequest) -> list[int]:
        """Return the tokens that the model reads; raises `RegardError` for a text that it cannot read."""
        limits, limit = self.settings.limits, self.settings.limits.tokens
        if len(request.text) > limits.characters:  # before it is encoded
            message = f"A text may have {limits.characters:,} characters, this one has {len(request.text):,}."
            raise RegardError(message, hint="Split it.")
        if isinstance(self.pipeline, Translator):
            limit = limits.sentence_tokens
            (ids,) = self.pipeline.encode_sources([request.text], request.target_language)
        else:
            (ids,) = self.pipeline.tokenizers.source.encode_ids([request.text])
        if len(ids) > limit:
            raise RegardError(f"A text may have {limit:,} tokens, this one has {len(ids):,}.", hint="Split it.")
        return ids

    def confidence(self, result: GeneratedText) -> list[float]:
        """Return the probability of each token of a result whose request had `should_calibrate`."""
        return [math.exp(logprob) for logprob in result.logprobs]

    def _run(self, key: Hashable, items: list[Any]) -> Sequence[Result]:
        assert isinstance(key, Options)  # noqa: S101 - `run` and `run_media` make it
        self._loaded.activate(key.adapter)
        pipeline = self.pipeline
        if isinstance(pipeline, ImageClassifier | AudioClassifier):
            return pipeline.classify(items)
        if isinstance(pipeline, Transcriber):
            return pipeline.transcribe(items, key.search, n_best=key.n_best)
        if isinstance(pipeline, ImageCaptioner):
            return pipeline.caption(items, key.search, n_best=key.n_best)
        return self._run_texts(key, items)

    def _run_texts(self, key: Options, items: list[EncodedRequest]) -> Sequence[Result]:
        requests = [item.request for item in items]
        if isinstance(self.pipeline, Classifier):
            texts = [request.text for request in requests]
            return self.pipeline.tag(texts) if self.pipeline.settings.task == "tag" else self.pipeline.classify(texts)
        seeds = [request.seed for request in requests]
        if isinstance(self.pipeline, TextGenerator):
            texts = [request.text for request in requests]
            new_tokens = key.max_new_tokens or self.settings.limits.new_tokens
            return self.pipeline.generate(
                texts, new_tokens, key.search, n_best=key.n_best, forbidden=key.forbidden, seed=seeds
            )
        translations = self.translator.translate_sources(
            [item.tokens if item.loaded is self._loaded else self._encode(item.request) for item in items],
            key.search,
            n_best=key.n_best,
            constraints=_make_constraints(key, requests),
            max_new_tokens=key.max_new_tokens,
            seed=seeds if isinstance(key.search, Sampling) else None,
            batch_tokens=2 * self.settings.queue.batch_tokens,
            with_scores=key.n_best > 1 or any(request.should_score for request in requests),
        )
        return self._align(requests, self._calibrate(requests, translations))

    def _calibrate(self, requests: list[TextRequest], translations: list[Translation]) -> list[Translation]:
        """Compute log-probabilities with the fitted temperature, which needs those of all tokens of the vocabulary."""
        temperature = self._loaded.temperature
        indices = [index for index, request in enumerate(requests) if request.should_calibrate]
        if not indices or temperature == 1:
            return translations
        scorer = Scorer.from_pipeline(self.translator, temperature)
        logprobs = scorer.score_translations(
            [translations[index] for index in indices],
            [requests[index].text for index in indices],
            target_language=_join_languages([requests[index] for index in indices]),
        )
        for index, values in zip(indices, logprobs, strict=True):
            translations[index] = replace(translations[index], logprobs=values)
        return translations

    def _align(self, requests: list[TextRequest], translations: list[Translation]) -> list[Translation]:
        indices = [index for index, request in enumerate(requests) if request.should_align and translations[index].text]
        if indices:
            aligned = with_alignment(
                self.translator,
                [requests[index].text for index in indices],
                [translations[index] for index in indices],
                target_language=_join_languages([requests[index] for index in indices]),
            )
            for index, translation in zip(indices, aligned, strict=True):
                translations[index] = translation
        return translations

    def _observe(self, stats: BatchStats) -> None:
        self.metrics.batch_size.labels(self.name).observe(stats.requests)
        queue_seconds = self.metrics.queue_seconds.labels(self.name)
        for seconds in stats.queue_seconds:
            queue_seconds.observe(seconds)


def _join_languages(requests: Sequence[TextRequest]) -> list[str] | None:
    """Return the target language of each text; None for a model without language tags."""
    languages = [request.target_language for request in requests if request.target_language is not None]
    return languages or None


def _make_constraints(options: Options, requests: Sequence[TextRequest]) -> Constraints | None:
    prefixes, required = [request.prefix for request in requests], [request.required for request in requests]
    if not any(prefixes) and not any(required) and not options.forbidden:
        return None
    return Constraints(prefixes if any(prefixes) else None, required if any(required) else None, options.forbidden)


def split_text(text: str) -> list[tuple[str, str]]:
    """Split a text into sentences, each with the white space after it; joined, they are the text."""
    return split_sentences(text) or [("", text)]


def describe(model: ServedModel, adapter: str | None = None) -> dict[str, Any]:
    """Return what `/v1/models` says of a model, or of an adapter beside it."""
    return {
        "id": adapter or model.name,
        "parent": None if adapter is None else model.name,
        "object": "model",
        "created": model.version // 10**9,
        "owned_by": "regard",
        "task": model.pipeline.settings.task,
        "languages": list(model.languages),
        "targets": list(model.targets),
        "labels": list(getattr(model.pipeline, "labels", ())),
        "input": describe_input(model.pipeline),
        "supports": ["stream", "alignment"] if getattr(model.pipeline, "has_torch_model", True) else [],
        "parameters": model.pipeline.num_parameters,
    }
