"""Translate texts with an encoder-decoder."""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypedDict, Unpack, overload

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.config.model import EncoderDecoderConfig
from regard.decode.filters import Filters, Generators
from regard.decode.protocol import Hypothesis, State, Step
from regard.models.cpu_decoder import LazyCpuDecoder
from regard.models.encoder_decoder import EncoderDecoder
from regard.pipeline.attention import RecordedAttention, record_attention
from regard.pipeline.constraints import Constraints
from regard.pipeline.encoding import (
    Pipeline,
    TargetLanguage,
    as_list,
    batch_by_length,
    chunk_seed,
    chunks,
    encode_sources,
    pad,
    resolve_max_length,
)
from regard.pipeline.results import EMPTY, TranslatedDocument, Translation, make_result
from regard.pipeline.search import (
    Beam,
    Search,
    SearchInput,
    Seed,
    TextStream,
    make_generator,
    make_generators,
    select_generators,
    stream_text,
)
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.sentences import split_sentences
from regard.text.tokenizer_pair import TokenizerPair

DEFAULT_SEARCH = Beam()
GREEDY = Filters(temperature=0)
EXTRA_TOKENS = 50  # added to max_length_ratio * source length: short sources have proportionally longer targets
CHUNK_SIZE = 2048  # texts that `translate_iter` holds, sorts by length and translates at a time


class TranslateOptions(TypedDict, total=False):
    """The options of `Translator.translate`, which explains them."""

    n_best: int
    constraints: Constraints | None
    max_new_tokens: int | None
    target_language: TargetLanguage
    batch_tokens: int
    seed: Seed
    with_scores: bool
    report: Callable[[int], None] | None


class Translator(Pipeline):
    """Translates with an encoder-decoder.

        translator = regard.load_translator("my-model")
        translator.translate("Good morning.").text

    The model may be in training mode: a translator uses it in evaluation mode and restores the mode of every module.
    It never generates tokens that are not text (pad, bos, mask, cls, sep, language tags).
    """

    kind = "translation model"
    command = "translate"
    engine_name = "torch"

    def __init__(self, model: EncoderDecoder, tokenizers: TokenizerPair, settings: EncoderDecoderConfig) -> None:
        if settings.task != "translate":
            raise RegardError(
                f"This model's task is '{settings.task}', not 'translate'.", hint="There is no pipeline for it yet."
            )
        check_vocabulary_sizes(settings, tokenizers, location="Translator")
        self.model: EncoderDecoder = model
        self.tokenizers = tokenizers
        self.settings: EncoderDecoderConfig = settings
        self._decoder = LazyCpuDecoder()
        self._suppressed = tokenizers.target.specials.not_text
        _ = tokenizers.target.token_bytes  # build the detokenizer's table now, not during the first translation

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, texts: str, search: Search = DEFAULT_SEARCH, **options: Unpack[TranslateOptions]
    ) -> Translation: ...
    @overload
    def translate(
        self, texts: Sequence[str], search: Search = DEFAULT_SEARCH, **options: Unpack[TranslateOptions]
    ) -> list[Translation]: ...

    def translate(
        self,
        texts: str | Sequence[str],
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
    ) -> Translation | list[Translation]:
        """Translate one text or each of several texts.

        Args:
            texts: One source or several. An empty text, or one of white space, has an empty translation.
            search: Search strategy (`regard.pipeline.search`): `Beam(1)` is greedy, default `Beam(5)`.
            n_best: Number of hypotheses per text: the best is the translation, the next ones its `alternatives`.
            constraints: Prefixes, required phrases and forbidden phrases.
            max_new_tokens: Maximum number of target tokens, eos included. Default: `max_length_ratio * source_length +
                50` (the ratio is in the model's settings), at most the number of learned positions.
            target_language: Language to translate into, one for all texts or one for each (multilingual models).
            batch_tokens: Maximum number of source tokens in a batch, padding and beams included.
            seed: Random seed of a search that samples; the same seed, texts and batches give the same translations.
                With a list of one seed for each text, a translation does not depend on the other texts.
            with_scores: Whether results need `score` and `logprobs`. Without them CTranslate2 saves a pass; PyTorch
                computes them in any case.
            report: Called after each batch with the number of texts that it finished.

        Returns:
            The translation of one text, or a list with that of each text in their order.

        Raises:
            RegardError: A text is too long for the model, or an argument is invalid.
        """
        sources = self.encode_sources(as_list(texts), target_language)
        translations = self.translate_sources(
            sources,
            search,
            n_best=n_best,
            constraints=constraints,
            max_new_tokens=max_new_tokens,
            batch_tokens=batch_tokens,
            seed=seed,
            with_scores=with_scores,
            report=report,
        )
        return translations[0] if isinstance(texts, str) else translations

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
        """Translate sources that `encode_sources` made; for the rest see `translate`."""
        if batch_tokens < 1:
            raise RegardError(f"batch_tokens must be at least 1, got {batch_tokens}.", hint="Use 1 or more.")
        if constraints is not None:
            constraints.check(len(sources))
        max_lengths = self.resolve_max_lengths(sources, max_new_tokens)
        translations = [EMPTY] * len(sources)
        nonempty = [index for index, source in enumerate(sources) if source]
        if report is not None and len(nonempty) < len(sources):
            report(len(sources) - len(nonempty))
        generators, target = make_generators(seed, self.device, len(sources)), self.tokenizers.target
        rows_per_text = self._count_rows(search) * (constraints.beam_multiplier(target) if constraints else 1)
        with self.prepared(), torch.inference_mode():
            for batch in batch_by_length([len(sources[index]) for index in nonempty], batch_tokens, rows_per_text):
                indices = [nonempty[number] for number in batch]
                results = self._find(
                    [sources[index] for index in indices],
                    [max_lengths[index] for index in indices],
                    search,
                    n_best=n_best,
                    indices=indices,
                    constraints=constraints,
                    generator=select_generators(generators, indices),
                    with_scores=with_scores,
                )
                for index, hypotheses in zip(indices, results, strict=True):
                    translations[index] = make_result(
                        Translation, hypotheses, target, n_best, should_rerank=search.reranks
                    )
                if report is not None:
                    report(len(indices))
        return translations

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
            chunk_size: Number of texts to hold, sort by length and translate at a time.
            options: Further options of `translate` that hold for all texts. With a `seed`, chunk n uses `seed + n`.

        Yields:
            One translation for each text, in their order.
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
        self, text: str, search: Search = DEFAULT_SEARCH, **options: Unpack[TranslateOptions]
    ) -> TranslatedDocument:
        """Translate a text of any length sentence by sentence and keep its white space.

        Args:
            text: The document.
            search: Search strategy, as for `translate`.
            options: Further options of `translate`.
        """
        stripped = text.strip()
        before, _, after = text.partition(stripped) if stripped else (text, "", "")
        sentences = split_sentences(stripped)
        translations = self.translate([sentence for sentence, _ in sentences], search, **options)
        joined = "".join(result.text + space for result, (_, space) in zip(translations, sentences, strict=True))
        return TranslatedDocument(
            before + joined + after, tuple(sentence for sentence, _ in sentences), tuple(translations)
        )

    def stream(
        self,
        text: str,
        *,
        filters: Filters = GREEDY,
        max_new_tokens: int | None = None,
        target_language: TargetLanguage = None,
        seed: int | None = None,
    ) -> TextStream:
        """Translate one text and yield the translation as it is generated.

        The model computes a step only when the caller asks for more text.

        Args:
            text: The source.
            filters: Temperature and filters of sampling; the default is greedy search.
            max_new_tokens: Maximum number of target tokens, as for `translate`.
            target_language: Language to translate into (multilingual models).
            seed: Random seed of sampling.
        """
        sources = self.encode_sources([text], target_language)
        max_lengths = self.resolve_max_lengths(
            sources, max_new_tokens
        )  # errors are raised here, not at the first `next`
        generator = make_generator(seed, self.device)
        return TextStream(
            lambda tokens: self._stream(sources, max_lengths, filters, generator, tokens),
            self.tokenizers.target.specials.eos,
        )

    def record(
        self, text: str, translation: str | Translation | None = None, *, target_language: TargetLanguage = None
    ) -> RecordedAttention:
        """Record the attention of the model while it reads a text and its translation.

        Args:
            text: The source.
            translation: The translation; by default the one that `translate` returns.
            target_language: Language to translate into (multilingual models).
        """
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
        if self.max_positions is not None:  # a translation that was cut off there: its last token is not read
            target = target[: self.max_positions - 1]
        return record_attention(self.model, self.tokenizers, source=source, target=[tokenizer.specials.bos, *target])

    @property
    def max_positions(self) -> int | None:
        """Number of positions that the decoder has learned; None: no upper limit."""
        return self.settings.decoder.max_positions

    def prepared(self) -> AbstractContextManager[None]:
        """Return a context with the model in evaluation mode and its weights packed for steps of one token."""
        return self._decoder.prepared(self.model)

    @property
    def has_packed_weights(self) -> bool:
        """Whether the steps of a search or stream that has begun read a packed copy of the weights only."""
        return self._decoder.has_packed_weights

    def encode_sources(self, texts: Sequence[str], target_language: TargetLanguage) -> list[list[int]]:
        """Encode each source as in training; an empty list for a text of white space."""
        encoded = encode_sources(texts, self.tokenizers, self.settings, target_language)
        normalize = self.tokenizers.source.normalize
        return [source if normalize(text).strip() else [] for text, source in zip(texts, encoded, strict=True)]

    @property
    def max_length_ratio(self) -> float:
        """Maximum number of target tokens per source token, where `max_new_tokens` is not given."""
        return self.settings.max_length_ratio

    def resolve_max_lengths(self, sources: Sequence[list[int]], max_new_tokens: int | None) -> list[int]:
        """Return the maximum number of target tokens of each source (see `translate`)."""
        defaults = [math.ceil(self.max_length_ratio * len(source)) + EXTRA_TOKENS for source in sources]
        return [resolve_max_length(max_new_tokens, default, self.max_positions) for default in defaults]

    def start(self, source: Tensor, valid: Tensor | None, capacity: int) -> tuple[Step[Any], State]:
        """Encode sources (B, S) and return the decoder's step and state. Call it inside `prepared()`.

        Args:
            source: Source tokens (B, S).
            valid: True where a source token is not padding (B, S); None: no padding.
            capacity: Maximum number of decoder steps.
        """
        return self._decoder.step, self.model.start(source, valid, capacity=capacity)

    def make_search_input(self, sources: list[list[int]], max_lengths: list[int], generator: Generators) -> SearchInput:
        """Encode sources and return the input of a search over their translations."""
        specials = self.tokenizers.target.specials
        source, valid = pad(sources, self.tokenizers.source.specials.pad, self.device)  # (B, S)
        step, state = self.start(source, valid, max(max_lengths))
        prompt = source.new_full((len(sources), 1), specials.bos)
        suppress_tokens = torch.tensor(self._suppressed, dtype=torch.long, device=self.device)
        return SearchInput(step, state, prompt, specials.eos, max_lengths, suppress_tokens, generator)

    def _count_rows(self, search: Search) -> int:
        """Return how many rows of a batch one text counts."""
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
        generator: Generators,
        with_scores: bool,  # noqa: ARG002 - this engine always has them
    ) -> list[list[Hypothesis]]:
        """Search for the translations of a batch; other engines override this."""
        inputs = replace(self.make_search_input(sources, max_lengths, generator), n_best=n_best)
        if constraints is not None:
            inputs = constraints.apply(inputs, self.tokenizers.target, indices)
        return search.find(inputs)

    @torch.inference_mode()
    def _stream(
        self,
        sources: list[list[int]],
        max_lengths: list[int],
        filters: Filters,
        generator: torch.Generator,
        tokens: list[int],
    ) -> Generator[str, None, None]:
        if not sources[0]:
            return  # an empty text has an empty translation
        with self.prepared():
            inputs = self.make_search_input(sources, max_lengths, generator)
            yield from stream_text(inputs, filters, self.tokenizers.target.make_streaming_decoder(), tokens)
