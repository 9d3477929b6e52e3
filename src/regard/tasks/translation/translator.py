"""Translate texts with an encoder-decoder.

PyTorch is imported lazily, because a translator on CTranslate2 does not need it.
"""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from regard.base.errors import RegardError
from regard.base.progress import begin
from regard.config.model import EncoderDecoderConfig
from regard.config.parts import FixedVectorConfig
from regard.config.task_spec import find_spec
from regard.decode.protocol import Hypothesis, State, Step
from regard.store.calibration import QUALITY_FILE, copy_with
from regard.store.model_path import find_model
from regard.store.vocabulary_check import check_vocabulary_sizes
from regard.tasks.encoding import (
    TargetLanguage,
    batch_by_length,
    chunk_seed,
    chunks,
    encode_sources,
    resolve_max_length,
)
from regard.tasks.evaluation.evaluable import ScoresTexts
from regard.tasks.evaluation.options import Evaluation, EvaluationData, EvaluationOptions
from regard.tasks.pipeline import Pipeline, one_or_many
from regard.tasks.requests import DEFAULT_OPTIONS, BatchOptions, ModelRequest, ReplayOptions
from regard.tasks.results import EMPTY, Translation, make_result
from regard.tasks.search import (
    Beam,
    Sampling,
    Search,
    SearchInput,
    Seed,
    make_generator,
    make_generators,
    select_generators,
)
from regard.tasks.translation.constraints import Constraints
from regard.tasks.translation.defects import find_defects
from regard.tasks.translation.quality import Quality, fit_quality, read_quality
from regard.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from regard.decode.filters import Filters, Generators
    from regard.documents.translate import DocumentReport
    from regard.models.encoder_decoder import EncoderDecoder
    from regard.nn.record import Record
    from regard.tasks.attention import RecordedAttention
    from regard.tasks.replay import ModelRun
    from regard.tasks.text_stream import TextStream

DEFAULT_SEARCH = Beam()
EXTRA_TOKENS = 50  # added to max_length_ratio * source length, because short sources have proportionally longer targets
CHUNK_SIZE = 2048  # texts that `translate_iter` sorts by length and translates at a time


class TranslateOptions(TypedDict, total=False):
    """Options of `Translator.translate`."""

    n_best: int
    constraints: Constraints | None
    max_new_tokens: int | None
    target_language: TargetLanguage
    batch_tokens: int
    seed: Seed
    with_scores: bool
    report: Callable[[int], None] | None


class Translator(ScoresTexts, Pipeline):
    """Translates with an encoder-decoder.

        translator = regard.load_translator("my-model")
        translator.translate("Good morning.").text

    The model runs in evaluation mode, and the mode of every module is restored afterwards. Special tokens (pad, bos,
    mask, cls, sep, language tags) are never generated.
    """

    kind = "translation model"
    loader = "load_translator"
    command = "translate"
    test_data = "pairs"
    reads_sentences = True

    def __init__(self, model: "EncoderDecoder", tokenizers: TokenizerPair, settings: EncoderDecoderConfig) -> None:
        from regard.models.cpu_decoder import LazyCpuDecoder

        if find_spec(settings.task).command != self.command:
            raise RegardError(
                f"This model's task is '{settings.task}', not 'translation'.", hint="There is no pipeline for it yet."
            )
        check_vocabulary_sizes(settings, tokenizers, location="Translator")
        self.model: EncoderDecoder = model
        self.tokenizers = tokenizers
        self.settings: EncoderDecoderConfig = settings
        self._decoder = LazyCpuDecoder()
        self._suppressed = tokenizers.target.specials.not_text
        _ = tokenizers.target.token_bytes  # build the detokenizer's table now, not during the first translation

    @one_or_many
    def translate(
        self,
        texts: Sequence[str],
        search: Search = DEFAULT_SEARCH,
        *,
        n_best: int = 1,
        constraints: Constraints | None = None,
        max_new_tokens: int | None = None,
        target_language: TargetLanguage = None,
        batch_tokens: int = 4096,
        seed: Seed = None,
        with_scores: bool = True,
        report: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """Translate one or several texts.

        Args:
            texts: One or several sources. Empty or whitespace-only texts have empty translations.
            search: Search strategy (`regard.tasks.search`): `Beam(1)` is greedy, default `Beam(5)`.
            n_best: Number of hypotheses per text: the best is the translation, the others its `alternatives`.
            constraints: Prefixes, a glossary, required and forbidden phrases. Required phrases and terms that a
                translation lacks are in its `unsatisfied_terms`.
            max_new_tokens: Maximum number of target tokens, eos included. Default: `max_length_ratio * source_length +
                50` (the ratio is in the model's settings), at most the number of learned positions.
            target_language: Language to translate into, one for all texts or one for each (multilingual models).
            batch_tokens: Maximum number of source tokens in a batch, padding and beams included.
            seed: Random seed for sampling; the same seed, texts and batches give the same translations. With a list of
                one seed per text, a translation does not depend on the other texts.
            with_scores: Whether to compute `logprobs` and exact scores. False saves a pass with CTranslate2; PyTorch
                always computes them.
            report: Called after each batch with the number of translated texts.

        Returns:
            The translation of one text, or a list of translations.

        Raises:
            RegardError: A text is too long for the model, or an argument is invalid.
        """
        sources = self.encode_sources(texts, target_language)
        return self.translate_sources(
            sources,
            search,
            n_best=n_best,
            constraints=None if constraints is None else constraints.find_terms(texts),
            max_new_tokens=max_new_tokens,
            batch_tokens=batch_tokens,
            seed=seed,
            with_scores=with_scores,
            report=report,
        )

    def translate_sources(
        self,
        sources: Sequence[list[int]],
        search: Search = DEFAULT_SEARCH,
        *,
        n_best: int = 1,
        constraints: Constraints | None = None,
        max_new_tokens: int | None = None,
        batch_tokens: int = 4096,
        seed: Seed = None,
        with_scores: bool = True,
        report: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """Translate sources encoded by `encode_sources`; see `translate` for the other arguments."""
        if batch_tokens < 1:
            raise RegardError(f"batch_tokens must be at least 1, got {batch_tokens}.", hint="Use 1 or more.")
        options: dict[str, Any] = {
            "n_best": n_best,
            "max_new_tokens": max_new_tokens,
            "batch_tokens": batch_tokens,
            "with_scores": with_scores,
        }
        if constraints is not None:
            constraints.check(len(sources))
            if constraints.required is not None:
                from regard.tasks.translation.required import translate_required

                return translate_required(self, sources, search, constraints, options | {"seed": seed}, report)
        return self._translate_batches(sources, search, constraints=constraints, seed=seed, report=report, **options)

    def _translate_batches(
        self,
        sources: Sequence[list[int]],
        search: Search,
        *,
        n_best: int,
        constraints: Constraints | None,
        max_new_tokens: int | None,
        batch_tokens: int,
        seed: Seed,
        with_scores: bool,
        report: Callable[[int], None] | None,
    ) -> list[Translation]:
        """Translate sources in batches of similar length; required phrases are forced by the search."""
        max_lengths = self.resolve_max_lengths(sources, max_new_tokens)
        translations = [EMPTY] * len(sources)
        nonempty = [index for index, source in enumerate(sources) if source]
        if report is not None and len(nonempty) < len(sources):
            report(len(sources) - len(nonempty))
        target = self.tokenizers.target
        rows_per_text = self._count_rows(search)
        if constraints is not None:
            rows_per_text = constraints.count_slots(target, rows_per_text)
        with self._searching(seed, len(sources)) as generators:
            for batch in batch_by_length([len(sources[index]) for index in nonempty], batch_tokens, rows_per_text):
                indices = [nonempty[number] for number in batch]
                results = self._find(
                    [sources[index] for index in indices],
                    [max_lengths[index] for index in indices],
                    search,
                    n_best=n_best,
                    indices=indices,
                    constraints=constraints,
                    generators=generators,
                    with_scores=with_scores,
                )
                for index, hypotheses in zip(indices, results, strict=True):
                    result = make_result(Translation, hypotheses, target, n_best, should_rerank=search.reranks)
                    translations[index] = self._check_result(sources[index], result, search)
                if report is not None:
                    report(len(indices))
        return translations

    @cached_property
    def quality(self) -> Quality | None:
        """The quality estimate in the model folder, if there is one (`regard evaluate --fit-quality`)."""
        path = None if self.folder is None else find_model(self.folder) / QUALITY_FILE
        return None if path is None or not path.exists() else read_quality(path)

    def _check_result(self, source: Sequence[int], result: Translation, search: Search) -> Translation:
        """Add warnings and the estimated quality to a translation."""
        if defects := find_defects(source, result):
            result = replace(result, warnings=defects)
        return result if self.quality is None else self.quality.annotate(source, result, search)

    def translate_iter(
        self,
        texts: Iterable[str],
        search: Search = DEFAULT_SEARCH,
        *,
        chunk_size: int = CHUNK_SIZE,
        **options: Unpack[TranslateOptions],
    ) -> Iterator[Translation]:
        """Translate any number of texts lazily, for example the lines of a file.

        Args:
            texts: Sources.
            search: Search strategy, as for `translate`.
            chunk_size: Number of texts to sort by length and translate at a time.
            options: Further options of `translate`. With a `seed`, chunk n uses `seed + n`.

        Yields:
            One translation per text, in order.
        """
        seed = options.get("seed")
        if not (seed is None or isinstance(seed, int)):
            raise RegardError(
                "`translate_iter` takes one seed for all texts.", hint="Use `translate` for a list of seeds."
            )
        for number, chunk in enumerate(chunks(texts, chunk_size)):
            chunk_options: TranslateOptions = {**options, "seed": chunk_seed(seed, number)}
            yield from self.translate(chunk, search, **chunk_options)

    def translate_document(
        self, content: bytes, name: str, search: Search = DEFAULT_SEARCH, **options: Unpack[TranslateOptions]
    ) -> "tuple[bytes, DocumentReport]":
        """Translate a document sentence by sentence; everything but its text is preserved.

        Args:
            content: The content of the file.
            name: Its name; the suffix names the format (`regard.documents.registry`).
            search: Search strategy, as for `translate`.
            options: Further options of `translate`.

        Returns:
            The content of the translated file, and which segments to check.

        Raises:
            RegardError: The format is unknown, or the file is damaged.
        """
        from regard.documents.registry import find_format
        from regard.documents.translate import translate_document
        from regard.tasks.translation.documents import translate_sentences

        document = find_format(name).read(content)
        return translate_document(document, lambda texts: translate_sentences(self, texts, search, {**options}))

    def stream(
        self,
        text: str,
        *,
        filters: "Filters | None" = None,
        max_new_tokens: int | None = None,
        target_language: TargetLanguage = None,
        seed: int | None = None,
    ) -> "TextStream":
        """Translate one text and yield the translation as it is generated.

        Steps are computed lazily, as the caller iterates.

        Args:
            text: The source.
            filters: Temperature and filters of sampling (`regard.decode.filters`); the default is greedy search.
            max_new_tokens: Maximum number of target tokens, as for `translate`.
            target_language: Language to translate into (multilingual models).
            seed: Random seed of sampling.
        """
        from regard.decode.filters import Filters
        from regard.tasks.text_stream import TextStream

        sources = self.encode_sources([text], target_language)  # errors are raised here, not at the first `next`
        max_lengths = self.resolve_max_lengths(sources, max_new_tokens)
        generator = make_generator(seed, self.device)
        return TextStream(
            lambda tokens: self._stream(sources, max_lengths, filters or Filters(temperature=0), generator, tokens),
            self.tokenizers.target.specials.eos,
        )

    def record(
        self, text: str, translation: str | Translation | None = None, *, target_language: TargetLanguage = None
    ) -> "RecordedAttention":
        """Record the model's attention for a text and its translation.

        Args:
            text: The source.
            translation: The translation; by default the one that `translate` returns.
            target_language: Language to translate into (multilingual models).
        """
        from regard.tasks.attention import record_attention

        (source,) = self.encode_sources([text], target_language)
        if not source:
            raise RegardError("The text is empty: the model reads nothing.", hint="Give a text with words.")
        if translation is None:
            translation = self.translate(text, target_language=target_language)
        tokenizer = self.tokenizers.target
        if isinstance(translation, Translation):
            target = list(translation.tokens[:-1] if translation.ended else translation.tokens)
        else:
            (target,) = tokenizer.encode_ids([translation])
        if self.max_positions is not None:  # a truncated translation, whose last token is not read
            target = target[: self.max_positions - 1]
        return record_attention(self.model, self.tokenizers, source=source, target=[tokenizer.specials.bos, *target])

    def replay(self, text: str, options: ReplayOptions = DEFAULT_OPTIONS) -> "ModelRun":
        """Translate a text in a recordable way."""
        from regard.tasks.replay import Generation, ReplayInput

        sources = self.encode_sources([text], options.target_language)
        if not sources[0]:
            raise RegardError("The text is empty: the model reads nothing.", hint="Give a text with words.")
        max_lengths = self.resolve_max_lengths(sources, options.max_new_tokens)
        return Generation(
            ReplayInput(self.model, sources[0], [self.tokenizers.target.specials.bos]),
            self.tokenizers,
            self.prepared,
            lambda generators, record, rows: self.make_search_input(
                sources * rows, max_lengths * rows, generators, record
            ),
            options.search or DEFAULT_SEARCH,
            options.seed,
            options.n_best,
        ).make_run("the translation")

    def evaluate(self, data: EvaluationData, options: EvaluationOptions) -> Evaluation:
        """Score translations and the likelihood of the references, and run the probes if requested."""
        evaluation = super().evaluate(data, options)
        if options.fit_quality is not None:
            evaluation["quality"] = self._fit_quality(data, options, Path(options.fit_quality))
        if options.probes:
            from regard.tasks.probes import probe  # only this option needs it

            begin("translating the probes")
            sources, target = data.inputs or [], options.target_language
            results = probe(partial(self._translate_texts, options), sources, self.settings.languages, target)
            evaluation["probes"] = asdict(results)
        return evaluation

    def _fit_quality(self, data: EvaluationData, options: EvaluationOptions, path: Path) -> Evaluation:
        """Fit a quality estimate, write a copy of the model with it, and return its main figures."""
        if self.folder is None:
            hint = "Give the model as a folder, or as regard.load returns it."
            raise RegardError("--fit-quality needs a model folder to copy.", hint=hint)
        from regard.measure.sentence_chrf import sentence_chrf  # imports all metrics

        search = Beam(options.beam_size, options.length_penalty)
        sources = self.encode_sources(data.inputs or [], options.target_language)
        report = begin("translating for the quality estimate", len(sources))
        translations = self.translate_sources(sources, search, with_scores=False, report=report)
        texts = zip([translation.text for translation in translations], data.first_references, strict=True)
        chrf = [sentence_chrf(text, reference) for text, reference in texts]
        quality = fit_quality(sources, translations, chrf, search, self.tokenizers.source.size)
        copy_with(self.folder, path, QUALITY_FILE, quality.model_dump_json() + "\n")
        return quality.model_dump(include={"pairs", "chrf", "good", "accepted", "bound"})

    def make_outputs(self, data: EvaluationData, options: EvaluationOptions) -> list[str]:
        """Translate the test data."""
        sources = data.inputs or []
        return self._translate_texts(options, sources, begin("translating", len(sources)))

    def _translate_texts(
        self, options: EvaluationOptions, texts: Sequence[str], report: Callable[[int], None] | None = None
    ) -> list[str]:
        search = Beam(options.beam_size, options.length_penalty)
        results = self.translate(
            texts, search, target_language=options.target_language, with_scores=False, report=report
        )
        return [translation.text for translation in results]

    def evaluate_likelihood(self, data: EvaluationData, options: EvaluationOptions) -> Evaluation:
        """Return the likelihood of the first reference of each text."""
        return self.score_texts(data.first_references, data.inputs, options)

    @property
    def has_torch_model(self) -> bool:
        """Whether there is a PyTorch model, which required phrases and word alignment need."""
        return True

    @property
    def can_align(self) -> bool:
        """Whether cross-attention can align the words of a translation with its source."""
        return self.has_torch_model and not isinstance(self.settings.decoder.cross, FixedVectorConfig)

    @property
    def max_positions(self) -> int | None:
        """Number of learned decoder positions; None if unlimited."""
        return self.settings.decoder.max_positions

    def prepared(self) -> AbstractContextManager[None]:
        """Return a context with the model in evaluation mode and its weights packed for single-token steps."""
        return self._decoder.prepared(self.model)

    @property
    def target_languages(self) -> tuple[str, ...]:
        """Target languages of a multilingual model; empty if there is no choice."""
        return tuple(self.tokenizers.source.specials.languages)

    def encode_request(self, request: ModelRequest) -> ModelRequest:
        """Encode the source of a request once."""
        (source,) = self.encode_sources([request.item], request.target_language)
        return replace(request, size=len(source), tokens=source)

    def count_rows(self, request: ModelRequest, options: BatchOptions) -> int:
        """Return the number of beams of a request: required phrases of n tokens need at least n + 1."""
        rows = super().count_rows(request, options)
        return Constraints(required=[request.required]).count_slots(self.tokenizers.target, rows)

    def run(self, requests: Sequence[ModelRequest], options: BatchOptions) -> list[Translation]:
        """Translate the texts of requests; add calibrated log-probabilities and alignments if requested."""
        encoded = [request if request.tokens is not None else self.encode_request(request) for request in requests]
        translations = self.translate_sources(
            [request.tokens or [] for request in encoded],
            options.search,
            n_best=options.n_best,
            constraints=_make_constraints(requests, options),
            max_new_tokens=options.max_new_tokens,
            seed=[request.seed for request in requests] if isinstance(options.search, Sampling) else None,
            batch_tokens=options.batch_tokens,
            with_scores=options.n_best > 1 or any(request.should_score for request in requests),
        )
        calibrated = [index for index, request in enumerate(requests) if request.should_calibrate]
        if calibrated and self.temperature != 1:
            # The fitted temperature needs the log-probabilities of all tokens of the vocabulary.
            logprobs = self.make_scorer(self.temperature).score_translations(
                [translations[index] for index in calibrated],
                [requests[index].item for index in calibrated],
                target_language=_join_languages([requests[index] for index in calibrated]),
            )
            for index, values in zip(calibrated, logprobs, strict=True):
                translations[index] = replace(translations[index], logprobs=values)
        aligned = [index for index, request in enumerate(requests) if request.should_align and translations[index].text]
        if not aligned:
            return translations
        from regard.tasks.translation.word_alignment import with_alignment

        alignments = with_alignment(
            self,
            [requests[index].item for index in aligned],
            [translations[index] for index in aligned],
            target_language=_join_languages([requests[index] for index in aligned]),
        )
        for index, translation in zip(aligned, alignments, strict=True):
            translations[index] = translation
        return translations

    def warm_up(self) -> None:
        """Translate short texts."""
        language = next(iter(self.target_languages), None)
        self.translate(self.input.samples(), max_new_tokens=4, target_language=language)

    @property
    def has_packed_weights(self) -> bool:
        """Whether running searches and streams read only a packed copy of the weights."""
        return self._decoder.has_packed_weights

    def encode_sources(self, texts: Sequence[str], target_language: TargetLanguage) -> list[list[int]]:
        """Encode each source as in training; an empty list for a whitespace-only text."""
        encoded = encode_sources(texts, self.tokenizers, self.settings, target_language)
        normalize = self.tokenizers.source.normalize
        return [source if normalize(text).strip() else [] for text, source in zip(texts, encoded, strict=True)]

    @property
    def max_length_ratio(self) -> float:
        """Maximum number of target tokens per source token if `max_new_tokens` is not given."""
        return self.settings.max_length_ratio

    def resolve_max_lengths(self, sources: Sequence[list[int]], max_new_tokens: int | None) -> list[int]:
        """Return the maximum number of target tokens of each source (see `translate`)."""
        defaults = [math.ceil(self.max_length_ratio * len(source)) + EXTRA_TOKENS for source in sources]
        return [resolve_max_length(max_new_tokens, default, self.max_positions) for default in defaults]

    def start(
        self, source: "Tensor", valid: "Tensor | None", capacity: int, record: "Record | None" = None
    ) -> tuple[Step[Any], State]:
        """Encode sources (B, S) and return the decoder's step and state. Call it inside `prepared()`.

        Args:
            source: Source tokens (B, S).
            valid: True where a source token is not padding (B, S); None if there is no padding.
            capacity: Maximum number of decoder steps.
            record: Records or changes the attention of every step; None uses the fast path.
        """
        step = self._decoder.step if record is None else partial(self.model.step, record=record)
        return step, self.model.start(source, valid, capacity=capacity, record=record)

    def make_search_input(
        self,
        sources: list[list[int]],
        max_lengths: list[int],
        generator: "Generators",
        record: "Record | None" = None,
    ) -> SearchInput:
        """Encode sources and return the search input; for `record` see `start`."""
        from regard.models.inputs import pad

        specials = self.tokenizers.target.specials
        source, valid = pad(sources, self.tokenizers.source.specials.pad, self.device)  # (B, S)
        step, state = self.start(source, valid, max(max_lengths), record)
        prompt = source.new_full((len(sources), 1), specials.bos)
        suppress_tokens = source.new_tensor(self._suppressed)
        return SearchInput(step, state, prompt, specials.eos, max_lengths, suppress_tokens, generator)

    @contextmanager
    def _searching(self, seed: Seed, texts: int) -> "Iterator[Generators]":
        """Prepare the model for the searches of a call and yield their random generators."""
        import torch

        with self.prepared(), torch.inference_mode():
            yield make_generators(seed, self.device, texts)

    def _count_rows(self, search: Search) -> int:
        """Return the number of batch rows per text."""
        return search.rows_per_text

    def _find(
        self,
        sources: list[list[int]],
        max_lengths: list[int],
        search: Search,
        *,
        n_best: int,
        indices: Sequence[int],
        constraints: Constraints | None,
        generators: "Generators",
        with_scores: bool,  # noqa: ARG002 - this engine always has them
    ) -> list[list[Hypothesis]]:
        """Run the search for a batch; overridden by other engines."""
        generator = select_generators(generators, indices)
        inputs = replace(self.make_search_input(sources, max_lengths, generator), n_best=n_best)
        if constraints is not None:
            inputs = constraints.apply(inputs, self.tokenizers.target, indices)
        return search.find(inputs)

    def _stream(
        self,
        sources: list[list[int]],
        max_lengths: list[int],
        filters: "Filters",
        generator: "torch.Generator",
        tokens: list[int],
    ) -> Generator[str, None, None]:
        from regard.tasks.text_stream import stream_text

        if not sources[0]:
            return  # an empty text has an empty translation
        with self.prepared():
            inputs = self.make_search_input(sources, max_lengths, generator)
            yield from stream_text(inputs, filters, self.tokenizers.target.make_streaming_decoder(), tokens)


def _join_languages(requests: Sequence[ModelRequest]) -> list[str] | None:
    """Return the target language of each text; None for a model without language tags."""
    return [request.target_language for request in requests if request.target_language is not None] or None


def _make_constraints(requests: Sequence[ModelRequest], options: BatchOptions) -> Constraints | None:
    prefixes, required = [request.prefix for request in requests], [request.required for request in requests]
    if not any(prefixes) and not any(required) and not options.forbidden:
        return None
    return Constraints(prefixes if any(prefixes) else None, required if any(required) else None, options.forbidden)
