"""Text that goes on where a prompt stops, with a decoder-only model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import torch

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.decode.constraints import constrain
from regard.decode.filters import Filters
from regard.decode.speculative import SpeculativeResult, speculative
from regard.models.cpu_decoder import LazyCpuDecoder
from regard.models.decoder_only import DecoderOnly
from regard.pipeline.chance import make_generator
from regard.pipeline.constraints import forbidden_ids as forbidden_tokens
from regard.pipeline.encoding import check_list
from regard.pipeline.limits import max_positions
from regard.pipeline.results import GeneratedText, make_result
from regard.pipeline.search import Sampling, Search, SearchInput
from regard.pipeline.streaming import stream_text
from regard.pipeline.written import not_text
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.tokenizer_pair import TokenizerPair

DEFAULT = Filters(temperature=0.8, top_p=0.95)  # neither wild nor dull


class TextGenerator:
    """writer = regard.load("my-model"); "".join(writer.write("Once upon a time"))."""

    def __init__(self, model: DecoderOnly, tokenizers: TokenizerPair, settings: settings_of.DecoderOnly) -> None:
        if settings.task != "continue":
            raise RegardError(
                f"This model's task is '{settings.task}', not 'continue'.", fix="There is no pipeline for it yet."
            )
        check_vocabulary_sizes(settings, tokenizers, where="Writer")
        self.model = model
        self.tokenizers = tokenizers
        self.settings = settings
        self._decoder = LazyCpuDecoder(model)

    def stream(
        self,
        prompt: str = "",
        max_new_tokens: int = 200,
        temperature: float = 0.8,
        top_k: int | None = None,
        top_p: float | None = 0.95,
        seed: int | None = None,
        *,
        filters: Filters | None = None,
    ) -> Iterator[str]:
        """What follows the prompt, piece by piece as it is written; the prompt itself is not repeated.

        It ends where the model ends it, or after `tokens` tokens; stop asking, and nothing more is computed.
        `temperature` 0 always takes the likeliest word; the order of temperature, `top_k` and `top_p` is told in
        `regard.decode.filters`, and `filters` has more of them, instead of these three. The same `seed` writes the same
        text; without one it is another every time. Tokens that are no text (pad, begin, mask, classify, separate, tags
        of languages) are never written.

        The model reads [begin] and the prompt, as it was trained. It may be in training: it is used without dropout
        and left as it was when the text ends.
        """
        filters = filters or Filters(temperature, top_k, top_p)
        (prompt_ids,) = self._encode_prompts([prompt], max_new_tokens)  # faults are told now, not at the first piece
        return self._stream(prompt_ids, max_new_tokens, filters, make_generator(seed, self._device))

    def generate(
        self,
        prompts: Sequence[str],
        max_new_tokens: int = 200,
        search: Search | None = None,
        n_best: int = 1,
        forbidden: Sequence[str] = (),
        max_rows: int = 64,
        seed: int | None = None,
    ) -> list[GeneratedText]:
        """What follows each prompt, whole, with its probabilities and the next `best` texts as alternatives.

        Without a `search` (`regard.pipeline.search`) texts are drawn as by `write`. Prompts of the same length are
        written on together, at most `rows` texts at a time. No text has one of the phrases in `forbidden`.
        """
        check_list(prompts, "prompt", "complete")
        check_list(forbidden, "phrase", "forbidden")
        search = search or Sampling(filters=DEFAULT)
        prompt_ids, generator = self._encode_prompts(prompts, max_new_tokens), make_generator(seed, self._device)
        results: list[GeneratedText | None] = [None] * len(prompt_ids)
        with self._decoder.prepared(), torch.inference_mode():
            for indices in _same_length(prompt_ids, max(1, max_rows // search.rows_per_text)):
                inputs = self._make_search_input(
                    [prompt_ids[index] for index in indices], max_new_tokens, generator, forbidden
                )
                for index, hypotheses in zip(indices, search.find(replace(inputs, n_best=n_best)), strict=True):
                    tokenizer, prompt = self.tokenizers.source, prompt_ids[index]
                    results[index] = make_result(
                        GeneratedText, hypotheses, tokenizer, n_best, should_rerank=search.reranks, prompt=prompt
                    )
        return [result for result in results if result is not None]

    def generate_with_draft(
        self,
        draft: "TextGenerator",
        prompt: str = "",
        max_new_tokens: int = 200,
        draft_length: int = 4,
        filters: Filters = DEFAULT,
        seed: int | None = None,
    ) -> tuple[GeneratedText, SpeculativeResult]:
        """Texts as probable as those of `write`, sooner if `draft` is a quick model that guesses well.

        Chance is used otherwise, so that the same seed draws another text (at temperature 0 it is the same).

        Comes back: the text, and how well the draft did (`regard.decode.speculative`).
        """
        if draft.tokenizers.fingerprint != self.tokenizers.fingerprint:
            raise RegardError("The draft has another vocabulary.", fix="Train both with one vocabulary.")
        (prompt_ids,) = self._encode_prompts([prompt], max_new_tokens)
        draft._encode_prompts([prompt], max_new_tokens)
        generator = make_generator(seed, self._device)
        with self._decoder.prepared(), draft._decoder.prepared(), torch.inference_mode():
            inputs, draft_inputs = (
                pipeline._make_search_input([prompt_ids], max_new_tokens, generator, ()) for pipeline in (self, draft)
            )
            result = speculative(
                inputs.step, inputs.state, draft_inputs.step, draft_inputs.state, inputs.prompt, **inputs.shared_arguments,
                generator=generator, draft_length=draft_length, filters=filters,
            )  # fmt: skip
        return make_result(GeneratedText, result.hypotheses, self.tokenizers.source, 1, prompt=prompt_ids), result

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _make_search_input(
        self, prompt_ids: list[list[int]], max_new_tokens: int, generator: torch.Generator, forbidden: Sequence[str]
    ) -> SearchInput:
        """Prompts of one length, and all that a search needs to write on."""
        tokenizer = self.tokenizers.source
        prompt = torch.tensor(prompt_ids, device=self._device)  # (B, k)
        state, suppressed = self.model.start(prompt.size(1) + max_new_tokens), not_text(tokenizer, self._device)
        inputs = SearchInput(
            self._decoder.step,
            state,
            prompt,
            tokenizer.specials.eos,
            [max_new_tokens] * len(prompt_ids),
            suppressed,
            generator,
        )
        if not forbidden:
            return inputs
        phrases = forbidden_tokens(tokenizer, forbidden)
        step, constrained_state = constrain(
            inputs.step, state, len(prompt_ids), sink=tokenizer.specials.pad, forbidden=phrases
        )
        return replace(inputs, step=step, state=constrained_state)

    @torch.inference_mode()
    def _stream(
        self, prompt_ids: list[int], max_new_tokens: int, filters: Filters, generator: torch.Generator
    ) -> Iterator[str]:
        detokenizer = self.tokenizers.source.make_streaming_decoder()
        for token in prompt_ids:
            detokenizer.push(token)  # whether a space belongs before the first word depends on what stands there
        with self._decoder.prepared():
            inputs = self._make_search_input([prompt_ids], max_new_tokens, generator, ())
            yield from stream_text(inputs, filters, detokenizer)

    def _encode_prompts(self, prompts: Sequence[str], max_new_tokens: int) -> list[list[int]]:
        """What the model reads before it writes: [begin] and each prompt."""
        if max_new_tokens < 1:
            raise RegardError(f"{max_new_tokens} tokens cannot be written.", fix="Ask for 1 or more.")
        tokenizer = self.tokenizers.source
        prompt_ids = [[tokenizer.specials.bos, *ids] for ids in tokenizer.encode_ids(list(prompts))]
        for ids in prompt_ids:
            self._check_length(len(ids), max_new_tokens)
        return prompt_ids

    def _check_length(self, prompt_length: int, max_new_tokens: int) -> None:
        limit = max_positions(self.settings.decoder)
        if limit is None or prompt_length + max_new_tokens - 1 <= limit:
            return
        remaining = limit - prompt_length + 1
        raise RegardError(
            f"{prompt_length} tokens are read and {max_new_tokens} asked for, but the model has learned {limit} positions.",
            fix=f"Ask for at most {remaining} tokens." if remaining > 0 else "Shorten the prompt.",
        )


def _same_length(prompt_ids: list[list[int]], batch_size: int) -> Iterator[list[int]]:
    """The places of prompts that have as many tokens, at most so many at a time.

    >>> list(_same_length([[1], [1, 2], [3], [4]], 2))
    [[0, 2], [3], [1]]
    """
    order = sorted(range(len(prompt_ids)), key=lambda index: len(prompt_ids[index]))
    for _, group in groupby(order, key=lambda index: len(prompt_ids[index])):
        indices = list(group)
        yield from (indices[start : start + batch_size] for start in range(0, len(indices), batch_size))
