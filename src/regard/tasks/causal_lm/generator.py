"""Continue prompts with a decoder-only model."""

import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from regard.base.errors import RegardError, RegardWarning
from regard.base.formatting import pluralize
from regard.config.model import DecoderOnlyConfig
from regard.config.task_spec import find_spec
from regard.decode.filters import Filters, Generators
from regard.decode.protocol import Hypothesis, Step
from regard.decode.speculative import SpeculativeResult, speculative
from regard.models.cpu_decoder import LazyCpuDecoder
from regard.models.decoder_only import DecoderOnly
from regard.nn.kv_cache import DecodingState
from regard.nn.record import Record
from regard.store.vocabulary_check import check_vocabulary_sizes
from regard.tasks.attention import RecordedAttention, record_attention
from regard.tasks.encoding import add_bos, check_list
from regard.tasks.evaluation.evaluable import ScoresTexts
from regard.tasks.evaluation.options import Evaluation, EvaluationData, EvaluationOptions
from regard.tasks.pipeline import Pipeline, one_or_many
from regard.tasks.replay import Generation, ModelRun, ReplayInput
from regard.tasks.requests import DEFAULT_OPTIONS, BatchOptions, ModelRequest, ReplayOptions
from regard.tasks.results import GeneratedText, make_result
from regard.tasks.search import Sampling, Search, SearchInput, Seed, make_generator, make_generators, select_generators
from regard.tasks.text_stream import TextStream, stream_text
from regard.tasks.translation.constraints import Constraints
from regard.text.tokenizer_pair import TokenizerPair

DEFAULT_FILTERS = Filters(temperature=0.8, top_p=0.95)
DEFAULT_SEARCH = Sampling(filters=DEFAULT_FILTERS)
DEFAULT_NEW_TOKENS = 200
REPLAYED_TOKENS = 40  # default `max_new_tokens` of a replay


class TextGenerator(ScoresTexts, Pipeline):
    """Continues prompts with a decoder-only model.

        text_generator = regard.load_generator("my-model")
        "".join(text_generator.stream("Once upon a time"))

    The model reads [bos] + prompt, as in training. It runs in evaluation mode, and the mode of every module is restored
    afterwards. Special tokens (pad, mask, cls, sep, language tags) are never generated.
    """

    kind = "language model"
    loader = "load_generator"
    command = "generate"
    test_data = "text"

    def __init__(self, model: DecoderOnly, tokenizers: TokenizerPair, settings: DecoderOnlyConfig) -> None:
        if find_spec(settings.task).command != self.command or settings.raster is not None:
            raise RegardError(
                f"This model's task is '{settings.task}', not 'causal_lm'.", hint="There is no pipeline for it yet."
            )
        check_vocabulary_sizes(settings, tokenizers, location="TextGenerator")
        self.model: DecoderOnly = model
        self.tokenizers = tokenizers
        self.settings: DecoderOnlyConfig = settings
        self._decoder = LazyCpuDecoder()

    def stream(
        self,
        prompt: str = "",
        max_new_tokens: int = DEFAULT_NEW_TOKENS,
        *,
        filters: Filters = DEFAULT_FILTERS,
        seed: int | None = None,
    ) -> TextStream:
        """Sample a continuation and yield it as it is generated, without the prompt.

        The text ends with eos or after `max_new_tokens` tokens. Steps are computed lazily, as the caller iterates.

        Args:
            prompt: Text to continue.
            max_new_tokens: Maximum number of generated tokens.
            filters: Temperature and filters (`regard.decode.filters`): `Filters(temperature=0)` is greedy, the
                default is temperature 0.8 and top-p 0.95.
            seed: Random seed; by default every call samples a different text.
        """
        (prompt_ids,) = self.encode_prompts([prompt], max_new_tokens)  # errors are raised here, not at `next`
        generator = make_generator(seed, self.device)
        return TextStream(
            lambda tokens: self._stream(prompt_ids, max_new_tokens, filters, generator, tokens),
            self.tokenizers.source.specials.eos,
        )

    @one_or_many
    def generate(
        self,
        prompts: Sequence[str],
        max_new_tokens: int = DEFAULT_NEW_TOKENS,
        search: Search = DEFAULT_SEARCH,
        *,
        n_best: int = 1,
        forbidden: Sequence[str] = (),
        max_rows: int = 64,
        seed: Seed = None,
    ) -> list[GeneratedText]:
        """Continue one or several prompts.

        Args:
            prompts: One or several texts to continue.
            max_new_tokens: Maximum number of generated tokens per prompt.
            search: Search strategy (`regard.tasks.search`); the default samples like `stream`.
            n_best: Number of texts per prompt: the best, and the others as its `alternatives`.
            forbidden: Phrases that no text may contain.
            max_rows: Maximum number of rows in a batch; prompts of similar length are batched together.
            seed: Random seed for sampling. With a list of one seed per prompt, a text does not depend on the other
                prompts.

        Returns:
            The generated text, without the prompt, or a list of texts for several prompts.
        """
        check_list(forbidden, "phrase", "forbidden")
        prompt_ids = self.encode_prompts(prompts, max_new_tokens)
        generators = make_generators(seed, self.device, len(prompt_ids))
        results: list[GeneratedText | None] = [None] * len(prompt_ids)
        with self.prepared(), torch.inference_mode():
            for indices in _batch_similar_lengths(prompt_ids, max(1, max_rows // max(1, search.rows_per_text))):
                batch_ids = [prompt_ids[index] for index in indices]
                generator = select_generators(generators, indices)
                outputs = self._find(
                    batch_ids, max_new_tokens, search, n_best=n_best, forbidden=forbidden, generator=generator
                )
                for index, hypotheses in zip(indices, outputs, strict=True):
                    results[index] = make_result(
                        GeneratedText,
                        hypotheses,
                        self.tokenizers.source,
                        n_best,
                        should_rerank=search.reranks,
                        prompt=prompt_ids[index],
                    )
        return [result for result in results if result is not None]

    def generate_with_draft(
        self,
        draft: "TextGenerator",
        prompt: str = "",
        max_new_tokens: int = DEFAULT_NEW_TOKENS,
        *,
        draft_length: int = 4,
        filters: Filters = DEFAULT_FILTERS,
        seed: int | None = None,
    ) -> tuple[GeneratedText, SpeculativeResult]:
        """Continue a prompt by speculative decoding (`regard.decode.speculative`).

        The text has the same distribution as with `stream` and is generated faster if the small `draft` model often
        proposes the right tokens. Random numbers are used in a different order, so the same seed gives a different text
        (the same text at temperature 0).

        Args:
            draft: A faster model with the same vocabulary, which proposes tokens for this model to accept or reject.
            prompt: Text to continue.
            max_new_tokens: Maximum number of generated tokens.
            draft_length: Number of draft tokens to propose at a time.
            filters: Temperature and filters.
            seed: Random seed.

        Returns:
            The text and statistics of accepted proposals.
        """
        if draft.tokenizers.fingerprint != self.tokenizers.fingerprint:
            raise RegardError(
                "The draft model has a different vocabulary.", hint="Train both models with the same vocabulary."
            )
        (prompt_ids,) = self.encode_prompts([prompt], max_new_tokens)
        draft.encode_prompts([prompt], max_new_tokens)
        generator = make_generator(seed, self.device)
        with self.prepared(), draft.prepared(), torch.inference_mode():
            inputs, draft_inputs = (
                pipeline.make_search_input([prompt_ids], max_new_tokens, generator) for pipeline in (self, draft)
            )
            result = speculative(
                inputs.step,
                inputs.state,
                draft_inputs.step,
                draft_inputs.state,
                inputs.prompt,
                **inputs.shared_arguments,
                generator=generator,
                draft_length=draft_length,
                filters=filters,
            )
        return make_result(GeneratedText, result.hypotheses, self.tokenizers.source, 1, prompt=prompt_ids), result

    def record(self, text: str) -> RecordedAttention:
        """Record the model's attention for [bos] + text."""
        (ids,) = self.encode_prompts([text], max_new_tokens=1)
        return record_attention(self.model, self.tokenizers, target=ids)

    def replay(self, text: str, options: ReplayOptions = DEFAULT_OPTIONS) -> ModelRun:
        """Continue a prompt in a recordable way."""
        max_new_tokens = options.max_new_tokens or REPLAYED_TOKENS
        prompts = self.encode_prompts([text], max_new_tokens)
        return Generation(
            ReplayInput(self.model, target=prompts[0]),
            self.tokenizers,
            self.prepared,
            lambda generators, record, rows: self.make_search_input(
                prompts * rows, max_new_tokens, generators, record=record
            ),
            options.search or DEFAULT_SEARCH,
            options.seed,
            options.n_best,
            text_before=prompts[0],
        ).make_run("the continuation")

    def evaluate(self, data: EvaluationData, options: EvaluationOptions) -> Evaluation:
        """Compute the likelihood of texts."""
        options.check_used("texts", ("--window", "--fit-temperature"))
        texts = data.inputs or []
        return {"texts": len(texts), **self.score_texts(texts, None, options)}

    def prepared(self) -> AbstractContextManager[None]:
        """Return a context with the model in evaluation mode and its weights packed for single-token steps."""
        return self._decoder.prepared(self.model)

    def run(self, requests: Sequence[ModelRequest], options: BatchOptions) -> list[GeneratedText]:
        """Continue the prompts of requests."""
        return self.generate(
            [request.item for request in requests],
            options.max_new_tokens or DEFAULT_NEW_TOKENS,
            options.search,
            n_best=options.n_best,
            forbidden=options.forbidden,
            seed=[request.seed for request in requests],
        )

    def warm_up(self) -> None:
        """Continue short texts."""
        self.generate(self.input.samples(), max_new_tokens=2)

    @property
    def has_packed_weights(self) -> bool:
        """Whether running searches and streams read only a packed copy of the weights."""
        return self._decoder.has_packed_weights

    def make_search_input(
        self,
        prompt_ids: list[list[int]],
        max_new_tokens: int,
        generator: Generators,
        forbidden: Sequence[str] = (),
        record: Record | None = None,
    ) -> SearchInput:
        """Return the search input for prompts, which may have different lengths.

        `record` records or changes the attention of every step; None uses the fast path.
        """
        tokenizer = self.tokenizers.source
        lengths, pad = [len(ids) for ids in prompt_ids], tokenizer.specials.pad
        longest = max(lengths)
        # Padding comes first: what a search generates follows the prompt, and filters read both as one history. If pad
        # may be generated, as it is eos too, another token that is not text takes its place; without one, the first
        # token is repeated: the history then has no further token.
        specials = tokenizer.specials
        fillers = [token for token in (pad, specials.mask, specials.cls, specials.sep) if token in specials.not_text]
        paddings = [fillers[0] if fillers else ids[0] for ids in prompt_ids]
        rows = [[token] * (longest - len(ids)) + ids for token, ids in zip(paddings, prompt_ids, strict=True)]
        prompt = torch.tensor(rows, device=self.device)  # (B, k)
        state = self.model.start(longest + max_new_tokens)
        step = self._decoder.step if record is None else partial(self.model.step, record=record)
        if min(lengths) < longest:
            step = _step_with_padded_prompts(step, torch.tensor(lengths, device=self.device))
        suppress_tokens = torch.tensor(tokenizer.specials.not_text, dtype=torch.long, device=self.device)
        max_lengths = [max_new_tokens] * len(prompt_ids)
        inputs = SearchInput(step, state, prompt, tokenizer.specials.eos, max_lengths, suppress_tokens, generator)
        return Constraints(forbidden=forbidden).apply(inputs, tokenizer, range(len(prompt_ids)))

    def _find(
        self,
        prompt_ids: list[list[int]],
        max_new_tokens: int,
        search: Search,
        *,
        n_best: int,
        forbidden: Sequence[str],
        generator: Generators,
    ) -> list[list[Hypothesis]]:
        """Run the search for a batch; overridden by other engines."""
        inputs = self.make_search_input(prompt_ids, max_new_tokens, generator, forbidden)
        return search.find(replace(inputs, n_best=n_best))

    def _stream(
        self,
        prompt_ids: list[int],
        max_new_tokens: int,
        filters: Filters,
        generator: torch.Generator,
        tokens: list[int],
    ) -> Generator[str, None, None]:
        detokenizer = self.tokenizers.source.make_streaming_decoder()
        for token in prompt_ids:
            detokenizer.push(token)  # the prompt determines whether the continuation begins with a space
        with self.prepared():
            inputs = self.make_search_input([prompt_ids], max_new_tokens, generator)
            yield from stream_text(inputs, filters, detokenizer, tokens)

    def encode_prompts(self, prompts: Sequence[str], max_new_tokens: int) -> list[list[int]]:
        """Encode prompts as [bos] + prompt and check their lengths."""
        if max_new_tokens < 1:
            raise RegardError(f"max_new_tokens must be at least 1, got {max_new_tokens}.", hint="Use 1 or more.")
        tokenizer = self.tokenizers.source
        prompt_ids = [add_bos(self.settings, tokenizer, ids) for ids in tokenizer.encode_ids(list(prompts))]
        for ids in prompt_ids:
            self._check_length(len(ids), max_new_tokens)
        context, length = self.settings.context_length, max(map(len, prompt_ids), default=0) + max_new_tokens
        if context is not None and length > context:
            message = (
                f"The model was trained on texts of {pluralize(context, 'token')}, but prompt and new tokens can reach "
                f"{length:,}. Text beyond the training length may be of lower quality."
            )
            warnings.warn(message, RegardWarning, stacklevel=2)
        return prompt_ids

    def _check_length(self, prompt_length: int, max_new_tokens: int) -> None:
        limit = self.settings.decoder.max_positions
        if limit is None or prompt_length + max_new_tokens - 1 <= limit:  # the model never reads the last new token
            return
        remaining = limit - prompt_length + 1
        raise RegardError(
            f"A prompt of {pluralize(prompt_length, 'token')} and {pluralize(max_new_tokens, 'new token')} "
            f"exceed the model's {limit} learned positions.",
            hint=f"Generate at most {pluralize(remaining, 'token')}." if remaining > 0 else "Shorten the prompt.",
        )


def _batch_similar_lengths(prompt_ids: list[list[int]], batch_size: int) -> Iterator[list[int]]:
    """Group the indices of prompts of similar length, at most `batch_size` in a group.

    A group also ends where padding would exceed half of its longest row, because reading it would cost more than a
    step.

    >>> list(_batch_similar_lengths([[1], [1, 2], [3], [4], [5] * 9], 3))
    [[0, 2, 3], [1], [4]]
    """
    group: list[int] = []
    for index in sorted(range(len(prompt_ids)), key=lambda index: len(prompt_ids[index])):
        if group and (len(group) == batch_size or 2 * len(prompt_ids[group[0]]) < len(prompt_ids[index])):
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def _step_with_padded_prompts(step: Step[DecodingState], text_lengths: Tensor) -> Step[DecodingState]:
    """Return a step whose first call reads left-padded prompts of these lengths (B).

    The model reads them right-padded, so no prompt token attends to padding. The padding is then removed from the
    state, and every row continues at its own length.
    """
    has_read_prompts = False

    def padded_step(tokens: Tensor, state: DecodingState) -> Tensor:
        nonlocal has_read_prompts
        if has_read_prompts:
            return step(tokens, state)
        has_read_prompts = True
        lengths = text_lengths.repeat_interleave(tokens.size(0) // len(text_lengths))  # (R): several rows per text
        columns = torch.arange(tokens.size(1), device=tokens.device)  # (k)
        rows = torch.arange(tokens.size(0), device=tokens.device)[:, None]  # (R, 1)
        logits = step(tokens[rows, (columns - lengths[:, None]) % tokens.size(1)], state)  # (R, k, V)
        state.crop(lengths.tolist())
        return logits[rows, (columns + lengths[:, None]) % tokens.size(1)]  # padding first again

    return padded_step
