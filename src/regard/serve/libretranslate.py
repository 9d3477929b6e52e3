"""LibreTranslate routes: /translate, /translate_file, /languages, /detect, /suggest, with additional fields."""

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, Response
from pydantic import ValidationError

from regard.base.errors import RegardError
from regard.data.readers.columns import LANGUAGE_CODES
from regard.data.suggestions import Suggestion
from regard.documents.html import HtmlFormat
from regard.documents.registry import find_format
from regard.documents.translate import DocumentTranslation, Sentence
from regard.look.build import look_into
from regard.look.document import Document
from regard.serve.batcher import QueueFullError
from regard.serve.detect import detect_language
from regard.serve.documents import KEPT_SECONDS, TranslatedFile, make_output_name, read_document
from regard.serve.model import EncodedRequest, ServedModel, split_text
from regard.serve.schemas import (
    DetectRequest,
    FileRequest,
    SuggestRequest,
    TranslateRequest,
    describe_form,
    describe_json,
)
from regard.serve.state import ServerState, http_errors, validate
from regard.serve.stream import DONE, Events, respond_with_events, to_event
from regard.serve.uploads import refuse_invalid
from regard.tasks.capabilities import TRANSLATES
from regard.tasks.requests import BatchOptions, ModelRequest
from regard.tasks.results import GeneratedText, Translation
from regard.tasks.search import Beam
from regard.tasks.translation.documents import to_sentence
from regard.tasks.translation.quality import find_min_quality
from regard.text.glossary import Glossary

Body = TypeVar("Body", TranslateRequest, DetectRequest, SuggestRequest)
DEFAULT_BEAM = 5
MAX_EXPLAINED_CHARACTERS = 500
NOT_WITH_HTML = (
    *("stream", "explain", "scores", "tokens", "alignment", "confidence", "quality", "min_quality"),
    *("prefix", "required"),
)
NOT_IN_STREAMS = ("explain", "scores", "tokens", "alignment", "confidence", "quality", "min_quality", "alternatives")
RETRY_SECONDS = 0.05  # between retries of a file translation when the queue is full
UNNAMED = "und"  # ISO 639-2 code for an undetermined language, because clients need a code
LANGUAGE_NAMES = {code: name.capitalize() for name, code in LANGUAGE_CODES.items()} | {UNNAMED: "Undetermined"}


def make_router(state: ServerState) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["LibreTranslate"])

    @router.post(
        "/translate",
        summary="Translate one text or several",
        openapi_extra=describe_json(TranslateRequest),
    )
    async def translate(request: Request) -> Response:
        body = await _read_request(request, TranslateRequest)
        texts = [body.q] if isinstance(body.q, str) else body.q
        state.check_texts(texts, body.alternatives + 1, [body.prefix, *body.required, *body.forbidden, *_forms(body)])
        if body.explain and len(texts) != 1:
            raise HTTPException(422, "`explain` takes exactly one text.")
        if body.explain and len(texts[0]) > MAX_EXPLAINED_CHARACTERS:
            raise HTTPException(422, f"`explain` takes at most {MAX_EXPLAINED_CHARACTERS} characters.")
        if body.format == "html" and (fields := [name for name in NOT_WITH_HTML if getattr(body, name)]):
            raise HTTPException(422, f"HTML cannot be combined with {fields[0]}.")
        if body.stream and (fields := [name for name in NOT_IN_STREAMS if getattr(body, name)]):
            raise HTTPException(422, f"A stream cannot be combined with {fields[0]}.")
        if body.explain and (body.prefix or body.required or body.forbidden or body.glossary):
            raise HTTPException(422, "`explain` cannot be combined with a glossary, prefix, or phrases.")
        job = _make_job(state, body)
        if body.stream:
            return await respond_with_events(job.stream(texts), "/translate")
        answers = await job.translate(texts)
        return JSONResponse(_join_answers(answers, is_list=not isinstance(body.q, str)))

    @router.post(
        "/translate_file",
        summary="Translate a file; returns the address of the translation and the segments to check",
        openapi_extra=describe_form(FileRequest),
    )
    async def translate_file(request: Request) -> Response:
        async with state.uploads.receive(request) as upload:
            if len(upload.files) > 1:
                raise HTTPException(422, "Send exactly one file.")
            values = {name: value for name, value in [*request.query_params.items(), *upload.fields.items()] if value}
            fields = replace(upload, fields=values).read_fields(FileRequest)
            job = _make_job(state, TranslateRequest(q="", **fields.model_dump()))
            (file,) = upload.files
            name, content = file.filename or "", await file.read()
            max_lines = state.settings.limits.file_lines
            work = state.uploads.run(lambda: DocumentTranslation(read_document(name, content, max_lines=max_lines)))
            translation: DocumentTranslation = await http_errors(work)
            await job.translate_document(translation)
            translated, report = await state.uploads.run(translation.finish)
        output = TranslatedFile(make_output_name(name), translated, find_format(name).media_type)
        url = request.url_for("download_file", key=state.files.add(output), name=output.name)
        return JSONResponse({"translatedFileUrl": str(url), "report": report.to_dict()})

    @router.get("/download_file/{key}/{name}", summary="Download a translated file")
    async def download_file(key: str, name: str) -> Response:  # noqa: ARG001 - `name` is for readers of the address
        if (file := state.files.find(key)) is None:
            raise HTTPException(404, f"The file does not exist: files are kept {KEPT_SECONDS / 60:.0f} minutes.")
        return Response(file.content, media_type=file.media_type, headers=file.headers)

    @router.get("/languages", summary="List the languages of the models")
    async def languages() -> list[dict[str, Any]]:
        targets: dict[str, set[str]] = {}
        for model in state.models.values():
            if model.can(TRANSLATES):
                for source, target in _language_pairs(model):
                    targets.setdefault(source, set()).add(target)
        return [
            {"code": code, "name": LANGUAGE_NAMES.get(code, code), "targets": sorted(codes)}
            for code, codes in sorted(targets.items())
        ]

    @router.post(
        "/detect",
        summary="Detect the language of a text",
        openapi_extra=describe_json(DetectRequest),
    )
    async def detect(request: Request) -> list[dict[str, Any]]:
        body = await _read_request(request, DetectRequest)
        state.check_texts([body.q], 1)
        return await asyncio.to_thread(detect_language, body.q, state.languages)

    @router.post("/suggest", summary="Suggest a better translation", openapi_extra=describe_json(SuggestRequest))
    async def suggest(request: Request) -> dict[str, bool]:
        body = await _read_request(request, SuggestRequest)
        state.check_texts([body.q, body.s], 1)
        if not (body.q.strip() and body.s.strip()):
            raise HTTPException(422, "Give the text (q) and a better translation of it (s).")
        model = _choose_model(state, TranslateRequest(q="", source=body.source, target=body.target, model=body.model))
        pairs = _language_pairs(model, body.source, body.target)
        if len(pairs) != 1:
            raise HTTPException(422, "Give source and target, because the model translates several languages.")
        address, key = (request.client.host if request.client else ""), getattr(request.state, "key", "")
        await state.suggestions.add(Suggestion(body.q, body.s, *pairs[0]), address=address, key=key)
        return {"success": True}

    @router.get("/frontend/settings", summary="Settings for LibreTranslate's clients")
    async def frontend_settings() -> dict[str, Any]:
        return {
            "charLimit": state.settings.limits.characters,
            "keyRequired": state.settings.keys_file is not None,
            "suggestions": state.suggestions.is_enabled,
        }

    return router


@dataclass(frozen=True)
class _TranslationJob:
    """A translation request: its model and options."""

    model: ServedModel
    body: TranslateRequest
    options: BatchOptions
    target_language: str | None
    glossary: Glossary
    min_quality: float | None = None

    async def translate(self, texts: list[str]) -> list[dict[str, Any]]:
        """Return the response for each text; queues all sentences or none."""
        if self.body.format == "html":
            return await self._translate_html(texts)
        split_texts = [split_text(text) for text in texts]
        pending = iter(await self._translate_sentences([[text for text, _ in sentences] for sentences in split_texts]))
        return [
            await self._answer(text, sentences, [next(pending) for _ in sentences])
            for text, sentences in zip(texts, split_texts, strict=True)
        ]

    async def _answer(
        self, text: str, sentences: list[tuple[str, str]], results: list[GeneratedText]
    ) -> dict[str, Any]:
        """Build the response for one text from the translations of its sentences."""
        spaces = [space for _, space in sentences]
        answer: dict[str, Any] = {"translatedText": _join_texts(results, spaces, 0)}
        if self.body.alternatives:
            count = min(self.body.alternatives, max(len(result.alternatives) for result in results))
            answer["alternatives"] = [_join_texts(results, spaces, number) for number in range(1, count + 1)]
        if self.body.explain:
            answer["explanation"] = await self._explain(text)
        return answer | self._describe(sentences, results)

    async def _explain(self, text: str) -> Document:
        """Return the document of `regard look`: attention, search and alignment of a short text."""
        search = self.options.search
        assert isinstance(search, Beam)  # noqa: S101 - `_make_job` makes it
        work = self.model.call(
            self.options.adapter,
            lambda: (
                look_into(
                    self.model.pipeline,
                    text,
                    name=self.options.adapter or self.model.name,
                    search=search,
                    target_language=self.target_language,
                    ablation=False,
                ).document
            ),
        )
        document: Document = await http_errors(work)
        return document

    async def stream(self, texts: list[str]) -> Events:
        """Yield events: text as it is generated with greedy search, otherwise sentence by sentence."""
        is_plain = not (self.body.prefix or self.body.required or self.body.forbidden or self.body.glossary)
        split_texts = [split_text(text) for text in texts]
        # Check the limits of all sentences before the first event.
        self.model.encode(self.options, self._make_requests([[text for text, _ in parts] for parts in split_texts]))
        for index, sentences in enumerate(split_texts):
            for sentence, space in sentences:
                if self.options.search == Beam(1) and is_plain and sentence:
                    parts = self.model.stream(
                        self.options.adapter,
                        lambda sentence=sentence: self.model.require(TRANSLATES).stream(  # type: ignore[misc]
                            sentence, max_new_tokens=self.options.max_new_tokens, target_language=self.target_language
                        ),
                    )
                    async with aclosing(parts):  # type: ignore[type-var]
                        async for part in parts:
                            yield to_event({"index": index, "text": part})
                elif sentence:
                    (result,) = await self._translate_sentences([[sentence]])
                    yield to_event({"index": index, "text": result.text})
                if space:
                    yield to_event({"index": index, "text": space})
        yield DONE

    async def translate_document(self, translation: DocumentTranslation) -> None:
        """Translate a file in chunks of sentences, so it does not fill the queue or delay other requests.

        All limits are checked before the first sentence is translated.
        """
        settings = self.model.settings
        if translation.report.sentences > settings.limits.file_sentences:
            message = f"The maximum is {settings.limits.file_sentences:,} sentences per file."
            raise HTTPException(422, f"{message} Split the file.")
        size = min(settings.queue.batch_texts, settings.queue.max_waiting)
        while sentences := translation.start_round():
            chunks, results = [], list[Translation]()
            for start in range(0, len(sentences), size):
                requests = [self._make_document_request(sentence) for sentence in sentences[start : start + size]]
                chunks.append(validate(partial(self.model.encode, self.options, requests)))
                await asyncio.sleep(0)  # other requests go on
            for chunk in chunks:
                async with self.model.file_turn:
                    results += await http_errors(self._run_patiently(chunk))
            translation.receive(list(map(partial(to_sentence, min_quality=self.min_quality), sentences, results)))

    def _make_document_request(self, sentence: Sentence) -> ModelRequest:
        pipeline = self.model.pipeline
        required = sentence.required if getattr(pipeline, "has_torch_model", True) else ()
        return ModelRequest(
            sentence.text,
            self.target_language,
            required=(*required, *self.glossary.find_terms(sentence.text)),
            should_align=sentence.should_align and getattr(pipeline, "can_align", False),
        )

    async def _run_patiently(self, items: list[EncodedRequest]) -> list[GeneratedText]:
        """Wait for free capacity in the queue, so a file does not fail because of other clients."""
        end = time.monotonic() + self.model.settings.queue.timeout
        while True:
            try:
                return await self.model.run_encoded(self.options, items)
            except QueueFullError:
                if time.monotonic() > end:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def _translate_html(self, texts: list[str]) -> list[dict[str, Any]]:
        """Translate parts of pages together; queues all sentences of a round or none."""
        parts = validate(lambda: [DocumentTranslation(HtmlFormat().read(text.encode())) for text in texts])
        missing = dict[str, None]()
        while any(rounds := [part.start_round() for part in parts]):
            requests = [self._make_document_request(sentence) for sentence in chain(*rounds)]
            results = iter(await http_errors(self.model.run(self.options, requests)))
            for part, sentences in zip(parts, rounds, strict=True):
                translations = [next(results) for _ in sentences]
                missing.update(dict.fromkeys(term for result in translations for term in result.unsatisfied_terms))
                part.receive(list(map(to_sentence, sentences, translations)))
        fields = {"unsatisfied_terms": list(missing)} if self.body.glossary else {}
        return [{"translatedText": part.finish()[0].decode(), "alternatives": [], **fields} for part in parts]

    async def _translate_sentences(self, texts: list[list[str]]) -> list[GeneratedText]:
        """Translate the sentences of each text."""
        results: list[GeneratedText] = await http_errors(self.model.run(self.options, self._make_requests(texts)))
        return results

    def _make_requests(self, texts: list[list[str]]) -> list[ModelRequest]:
        """Return a request for each sentence; a prefix and required phrases apply to the first one of each text."""
        body, glossary = self.body, self.glossary
        return [
            ModelRequest(
                sentence,
                self.target_language,
                prefix=body.prefix if number == 0 else "",
                required=(*(body.required if number == 0 else ()), *glossary.find_terms(sentence)),
                should_align=body.alignment,
                should_calibrate=body.confidence,
                should_score=body.scores or body.confidence,
            )
            for sentences in texts
            for number, sentence in enumerate(sentences)
        ]

    def _describe(self, sentences: list[tuple[str, str]], results: list[GeneratedText]) -> dict[str, Any]:
        """Return the requested additional fields."""
        body, fields = self.body, dict[str, Any]()
        if body.required or body.glossary:
            terms = [term for result in results for term in getattr(result, "unsatisfied_terms", ())]
            fields["unsatisfied_terms"] = list(dict.fromkeys(terms))
        if body.scores:
            fields["scores"] = [result.score for result in results]
        if body.tokens:
            fields["tokens"] = [list(result.token_texts) for result in results]
        if body.confidence:
            fields["confidence"] = [self.model.confidence(result) for result in results]
        if body.quality:
            fields["quality"] = [_describe_quality(result, self.min_quality) for result in results]
        if body.alignment:
            links, source_offset, target_offset = [], 0, 0
            for (sentence, _), result in zip(sentences, results, strict=True):
                pairs = result.alignment or () if isinstance(result, Translation) else ()
                links += [[source + source_offset, target + target_offset] for source, target in pairs]
                source_offset += len(sentence.split())
                target_offset += len(result.text.split())
            fields["alignment"] = links
        return fields


def _make_job(state: ServerState, body: TranslateRequest) -> _TranslationJob:
    limits = state.settings.limits
    beam_size, phrases = body.beam_size or DEFAULT_BEAM, [*body.required, *body.forbidden, *_forms(body)]
    for name, value, limit in (
        ("beam_size", beam_size, limits.beam_size),
        ("required phrases", len(body.required), limits.stop),
        ("forbidden phrases", len(body.forbidden), limits.stop),
        ("characters in a phrase", max(map(len, phrases), default=0), limits.stop_characters),
        ("characters in a prefix", len(body.prefix), limits.sentence_tokens),
    ):
        if value > limit:
            raise HTTPException(422, f"The request has {value} {name}; the maximum is {limit}.")
    model = _choose_model(state, body)
    n_best = body.alternatives + 1
    adapter = model.find_adapter(body.model)
    options = BatchOptions(Beam(max(beam_size, n_best)), n_best, forbidden=tuple(body.forbidden), adapter=adapter)
    target_language = None  # of a model without language tags
    if model.targets:
        only = model.languages[1] if len(model.languages) == 2 else model.targets[0] if len(model.targets) == 1 else ""
        target_language = body.target or only
        if not target_language:
            raise HTTPException(422, f"Choose a target language: {', '.join(model.targets)}.")
    try:
        glossary = Glossary(body.glossary)
    except RegardError as error:
        raise HTTPException(422, error.message) from None
    body.quality |= body.min_quality is not None
    minimum = validate(lambda: _find_min_quality(model, body, options)) if body.quality else None
    return _TranslationJob(model, body, options, target_language, glossary, minimum)


def _find_min_quality(model: ServedModel, body: TranslateRequest, options: BatchOptions) -> float:
    """Return the lowest accepted quality; raises `RegardError` if the model has no quality estimate."""
    if options.adapter is not None:
        raise RegardError("An adapter has no quality estimate.", hint="Merge it into a model, and fit one.")
    return find_min_quality(model.pipeline.quality, str(body.min_quality or 0), options.search)


def _describe_quality(result: GeneratedText, minimum: float | None) -> dict[str, Any]:
    """Return the quality of a sentence; an empty sentence has none and is accepted."""
    assert isinstance(result, Translation)  # noqa: S101 - of a translator
    is_accepted = minimum is None or not result.is_below(minimum)
    return {"score": result.quality, "rating": result.rating, "accepted": is_accepted, "warnings": result.warnings}


def _forms(body: TranslateRequest) -> list[str]:
    """Return the terms of a request's glossary and their target forms."""
    return [text for term, forms in body.glossary.items() for text in (term, *forms)]


def _choose_model(state: ServerState, body: TranslateRequest) -> ServedModel:
    """Return the model for the languages of a request."""
    models = [state.find(body.model, TRANSLATES)]
    if body.model is None:
        models = [model for model in state.models.values() if model.can(TRANSLATES)]
    sources_by_model = {
        model.name: {source for source, _ in _language_pairs(model, body.source, body.target)} for model in models
    }
    fitting = [model for model in models if sources_by_model[model.name]]
    sources = set().union(*sources_by_model.values())
    if len(fitting) > 1 and body.target and len(sources) > 1:  # the first model might not support the source language
        raise HTTPException(
            400, f"Several models translate to {body.target[:20]}: give source ({', '.join(sorted(sources))})."
        )
    if fitting:
        return fitting[0]
    pair_names = ", ".join(
        sorted({f"{source}-{target}" for model in models for source, target in _language_pairs(model)})
    )
    message = f"No model translates from {body.source[:20]} to {body.target[:20]}. Pairs: {pair_names}."
    if unnamed := [model.name for model in models if _language_pairs(model)[0][0] == UNNAMED]:
        message += (
            f" The model {unnamed[0]} does not name its languages: leave out source and target, or name them with"
            " `regard model set-languages`."
        )
    raise HTTPException(400, message)


def _language_pairs(model: ServedModel, source: str = "auto", target: str = "") -> list[tuple[str, str]]:
    """Return the language pairs (source, target) of a model that a request allows; unknown languages are `und`."""
    languages = model.languages
    sources, targets = languages or model.targets, model.targets or languages
    pairs = [(code, other) for code in sources for other in targets if code != other]
    if len(languages) == 2:
        pairs = [(languages[0], languages[1])]
    pairs = pairs or [(UNNAMED, other) for other in targets or (UNNAMED,)]
    return [pair for pair in pairs if source in ("auto", pair[0]) and target in ("", pair[1])]


async def _read_request(request: Request, kind: type[Body]) -> Body:
    """Read a JSON body, or a form as sent by LibreTranslate's page and clients."""
    content_type = request.headers.get("content-type", "")
    try:
        if content_type.startswith("application/json"):
            return kind.model_validate_json(await request.body())
        form = await request.form(max_files=0, max_fields=50)
        fields: dict[str, Any] = {name: value for name, value in form.items() if isinstance(value, str)}
        if len(form.getlist("q")) > 1:
            fields["q"] = form.getlist("q")
        return kind.model_validate(fields)
    except UnicodeError:  # a form may name any charset
        raise HTTPException(422, "The form cannot be decoded. Use UTF-8.") from None
    except ValidationError as error:
        raise refuse_invalid(error) from None


def _join_texts(results: list[GeneratedText], spaces: list[str], number: int) -> str:
    """Join the sentences of the best translation (0) or of an alternative, which falls back to the best."""
    texts = [
        result.alternatives[number - 1].text if 0 < number <= len(result.alternatives) else result.text
        for result in results
    ]
    return "".join(text + space for text, space in zip(texts, spaces, strict=True))


def _join_answers(answers: list[dict[str, Any]], *, is_list: bool) -> dict[str, Any]:
    """Return one response, or for a list of texts one response whose fields are lists."""
    if not is_list:
        return answers[0]
    return {name: [answer[name] for answer in answers] for name in (answers[0] if answers else ["translatedText"])}
