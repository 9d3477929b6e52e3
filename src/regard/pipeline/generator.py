"""Continue prompts with a decoder-only model."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TypedDict, Unpack, overload

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.model import DecoderOnlyConfig
from regard.decode.filters import Filters, Generators
from regard.decode.protocol import Hypothesis, Step
from regard.decode.speculative import SpeculativeResult, speculative
from regard.models.cpu_decoder import LazyCpuDecoder
from regard.models.decoder_only import DecoderOnly
from regard.nn.kv_cache import DecodingState
from regard.pipeline.attention import RecordedAttention, record_attention
from regard.pipeline.constraints import Constraints
from regard.pipeline.encoding import Pipeline, add_bos, as_list, check_list
from regard.pipeline.results import GeneratedText, make_result
from regard.pipeline.search import (
    Sampling,
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
from regard.text.tokenizer_pair import TokenizerPair

DEFAULT_FILTERS = Filters(temperature=0.8, top_p=0.95)
DEFAULT_SEARCH = Sampling(filters=DEFAULT_FILTERS)


class GenerateOptions(TypedDict, total=False):
    """The options of `TextGenerator.generate`, which explains them."""

    n_best: int
    forbidden: Sequence[str]
    max_rows: int
    seed: Seed


class TextGenerator(Pipeline):
    """Continues prompts with a decoder-only model.

        text_generator = regard.load_generator("my-model")
        "".join(text_generator.stream("Once upon a time"))

    The model reads [bos] + prompt, as in training. It may be in training mode: a generator uses it in evaluation mode
    and restores the mode of every module. It never generates tokens that are not text (pad, mask, cls, sep, language
    tags).
    """

    kind = "language model"
    command = "generate"
    engine_name = "torch"

    def __init__(self, model: DecoderOnly, tokenizers: TokenizerPair, settings: DecoderOnlyConfig) -> None:
        if settings.task != "causal_lm":
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
        max_new_tokens: int = 200,
        *,
        filters: Filters = DEFAULT_FILTERS,
        seed: int | None = None,
    ) -> TextStream:
        """Sample a continuation and yield it as it is generated, without the prompt.

        The text ends with eos or after `max_new_tokens` tokens. The model computes a step only when the caller asks for
        more text.

        Args:
            prompt: Text to continue.
            max_new_tokens: Maximum number of generated tokens.
            filters: Temperature and filters (`regard.decode.filters`): `Filters(temperature=0)` is greedy, the
                default is temperature 0.8 and top-p 0.95.
            seed: Random seed; without one, every call samples another text.
        """
        (prompt_ids,) = self.encode_prompts([prompt], max_new_tokens)  # errors are raised here, not at `next`
        generator = make_generator(seed, self.device)
        return TextStream(
            lambda tokens: self._stream(prompt_ids, max_new_tokens, filters, generator, tokens),
            self.tokenizers.source.specials.eos,
        )

    @overload
    def generate(  # type: ignore[overload-overlap]
        self,
        prompts: str,
        max_new_tokens: int = 200,
        search: Search = DEFAULT_SEARCH,
        **options: Unpack[GenerateOptions],
    ) -> GeneratedText: ...
    @overload
    def generate(
        self,
        prompts: Sequence[str],
        max_new_tokens: int = 200,
        search: Search = DEFAULT_SEARCH,
        **options: Unpack[GenerateOptions],
    ) -> list[GeneratedText]: ...

    def generate(
        self,
        prompts: str | Sequence[str],
        max_new_tokens: int = 200,
        search: Search = DEFAULT_SEARCH,
        *,
        n_best: int = 1,
        forbidden: Sequence[str] = (),
        max_rows: int = 64,
        seed: Seed = None,
    ) -> GeneratedText | list[GeneratedText]:
        """Continue one prompt or each of several prompts.

        Args:
            prompts: One text to continue or several.
            max_new_tokens: Maximum number of generated tokens per prompt.
            search: Search strategy (`regard.pipeline.search`); the default samples as `stream` does.
            n_best: Number of texts per prompt: the best, and the next ones as its `alternatives`.
            forbidden: Phrases that no text may contain.
            max_rows: Maximum number of rows in a batch; prompts of similar length share one.
            seed: Random seed of a search that samples. With a list of one seed for each prompt, a text does not depend
                on the other prompts.

        Returns:
            The text for one prompt, or a list with that of each prompt in their order, without the prompts.
        """
        check_list(forbidden, "phrase", "forbidden")
        prompt_ids = self.encode_prompts(as_list(prompts), max_new_tokens)
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
        texts = [result for result in results if result is not None]
        return texts[0] if isinstance(prompts, str) else texts

    def generate_with_draft(
        self,
        draft: "TextGenerator",
        prompt: str = "",
        max_new_tokens: int = 200,
        *,
        draft_length: int = 4,
        filters: Filters = DEFAULT_FILTERS,
        seed: int | None = None,
    ) -> tuple[GeneratedText, SpeculativeResult]:
        """Continue a prompt by speculative decoding (`regard.decode.speculative`).

        The text has the same distribution as that of `stream`; it is generated faster if `draft` is a small model
        that often proposes the right tokens. The random numbers are used in another order, so the same seed gives
        another text (the same text at temperature 0).

        Args:
            draft: A faster model with the same vocabulary; it proposes tokens that this model accepts or rejects.
            prompt: Text to continue.
            max_new_tokens: Maximum number of generated tokens.
            draft_length: Number of tokens that the draft proposes at a time.
            filters: Temperature and filters.
            seed: Random seed.

        Returns:
            The text, and how many proposals were accepted.
        """
        if draft.tokenizers.fingerprint != self.tokenizers.fingerprint:
            raise RegardError(
                "The vocabularies of the draft and of this model differ.", hint="Train both with one vocabulary."
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
        """Record the attention of the model while it reads [bos] + text."""
        (ids,) = self.encode_prompts([text], max_new_tokens=1)
        return record_attention(self.model, self.tokenizers, target=ids)

    def prepared(self) -> AbstractContextManager[None]:
        """Return a context with the model in evaluation mode and its weights packed for steps of one token."""
        return self._decoder.prepared(self.model)

    @property
    def has_packed_weights(self) -> bool:
        """Whether the steps of a search or stream that has begun read a packed copy of the weights only."""
        return self._decoder.has_packed_weights

    def make_search_input(
        self,
        prompt_ids: list[list[int]],
        max_new_tokens: int,
        generator: Generators,
        forbidden: Sequence[str] = (),
    ) -> SearchInput:
        """Return the input of a search over continuations of prompts, which may have different lengths."""
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
        step = self._decoder.step
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
        """Search for the continuations of a batch; other engines override this."""
        inputs = self.make_search_input(prompt_ids, max_new_tokens, generator, forbidden)
        return search.find(replace(inputs, n_best=n_best))

    @torch.inference_mode()
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
            detokenizer.push(token)  # the prompt decides whether the continuation begins with a space
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
        return prompt_ids

    def _check_length(self, prompt_length: int, max_new_tokens: int) -> None:
        limit = self.settings.decoder.max_positions
        if limit is None or prompt_length + max_new_tokens - 1 <= limit:  # the model never reads the last new token
            return
        remaining = limit - prompt_length + 1
        raise RegardError(
            f"A prompt of {pluralize(prompt_length, 'token')} and {pluralize(max_new_tokens, 'new token')} need more "
            f"than the {limit} positions that the model has learned.",
            hint=f"Generate at most {pluralize(remaining, 'token')}." if remaining > 0 else "Shorten the prompt.",
        )


def _batch_similar_lengths(prompt_ids: list[list[int]], batch_size: int) -> Iterator[list[int]]:
    """Group the indices of prompts of similar length, at most `batch_size` in a group.

    A group also ends where padding would be more than half of its longest row: reading it would cost more than a step.

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
    """Return a step that reads prompts, of these lengths (B), with padding before them in its first call.

    The model reads them with the padding behind, where no token of the prompt attends to it, and the padding is then
    removed from the state: every row continues at its own length.
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
