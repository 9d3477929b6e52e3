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
from regard.models.decoder_only import DecoderOnly
from regard.pipeline.answers import Written, answer
from regard.pipeline.chance import generator_of
from regard.pipeline.limits import learned_positions
from regard.pipeline.quick import Quick
from regard.pipeline.searches import Sampling, Search, Task
from regard.pipeline.sources import check_list
from regard.pipeline.streaming import pieces
from regard.pipeline.wishes import forbidden as forbidden_tokens
from regard.pipeline.written import never_written
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.vocabularies import TokenizerPair

USUAL = Filters(temperature=0.8, top_p=0.95)  # neither wild nor dull


class Writer:
    """writer = regard.load("my-model"); "".join(writer.write("Once upon a time"))."""

    def __init__(self, model: DecoderOnly, vocabularies: TokenizerPair, settings: settings_of.DecoderOnly) -> None:
        if settings.task != "continue":
            raise RegardError(
                f"This model's task is '{settings.task}', not 'continue'.", fix="There is no pipeline for it yet."
            )
        check_vocabulary_sizes(settings, vocabularies, where="Writer")
        self.model = model
        self.vocabularies = vocabularies
        self.settings = settings
        self._quick = Quick(model)

    def write(
        self,
        prompt: str = "",
        tokens: int = 200,
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
        (ids,) = self._read([prompt], tokens)  # faults are told now, not at the first piece
        return self._written(ids, tokens, filters, generator_of(seed, self._device))

    def complete(
        self,
        prompts: Sequence[str],
        tokens: int = 200,
        search: Search | None = None,
        best: int = 1,
        forbidden: Sequence[str] = (),
        rows: int = 64,
        seed: int | None = None,
    ) -> list[Written]:
        """What follows each prompt, whole, with its probabilities and the next `best` texts as alternatives.

        Without a `search` (`regard.pipeline.searches`) texts are drawn as by `write`. Prompts of the same length are
        written on together, at most `rows` texts at a time. No text has one of the phrases in `forbidden`.
        """
        check_list(prompts, "prompt", "complete")
        check_list(forbidden, "phrase", "forbidden")
        search = search or Sampling(filters=USUAL)
        read, generator = self._read(prompts, tokens), generator_of(seed, self._device)
        found: list[Written | None] = [None] * len(read)
        with self._quick.ready(), torch.inference_mode():
            for places in _alike(read, max(1, rows // search.rows)):
                task = self._task([read[place] for place in places], tokens, generator, forbidden)
                for place, texts in zip(places, search.find(replace(task, best=best)), strict=True):
                    tokenizer, after = self.vocabularies.source, read[place]
                    found[place] = answer(Written, texts, tokenizer, best, by_risk=search.by_risk, after=after)
        return [one for one in found if one is not None]

    def drafted(
        self,
        draft: "Writer",
        prompt: str = "",
        tokens: int = 200,
        ahead: int = 4,
        filters: Filters = USUAL,
        seed: int | None = None,
    ) -> tuple[Written, SpeculativeResult]:
        """Texts as probable as those of `write`, sooner if `draft` is a quick model that guesses well.

        Chance is used otherwise, so that the same seed draws another text (at temperature 0 it is the same).

        Comes back: the text, and how well the draft did (`regard.decode.speculative`).
        """
        if draft.vocabularies.fingerprint != self.vocabularies.fingerprint:
            raise RegardError("The draft has another vocabulary.", fix="Train both with one vocabulary.")
        (ids,) = self._read([prompt], tokens)
        draft._read([prompt], tokens)
        generator = generator_of(seed, self._device)
        with self._quick.ready(), draft._quick.ready(), torch.inference_mode():
            mine, its = (one._task([ids], tokens, generator, ()) for one in (self, draft))
            found = speculative(
                mine.step, mine.state, its.step, its.state, mine.first, **mine.limits,
                generator=generator, draft_length=ahead, filters=filters,
            )  # fmt: skip
        return answer(Written, found.hypotheses, self.vocabularies.source, 1, after=ids), found

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _task(self, read: list[list[int]], tokens: int, generator: torch.Generator, forbidden: Sequence[str]) -> Task:
        """Prompts of one length, and all that a search needs to write on."""
        tokenizer = self.vocabularies.source
        first = torch.tensor(read, device=self._device)  # (B, k)
        state, never = self.model.start(first.size(1) + tokens), never_written(tokenizer, self._device)
        task = Task(self._quick.step, state, first, tokenizer.specials.eos, [tokens] * len(read), never, generator)
        if not forbidden:
            return task
        phrases = forbidden_tokens(tokenizer, forbidden)
        step, watched = constrain(task.step, state, len(read), sink=tokenizer.specials.pad, forbidden=phrases)
        return replace(task, step=step, state=watched)

    @torch.inference_mode()
    def _written(self, ids: list[int], tokens: int, filters: Filters, generator: torch.Generator) -> Iterator[str]:
        stream = self.vocabularies.source.make_streaming_decoder()
        for token in ids:
            stream.push(token)  # whether a space belongs before the first word depends on what stands there
        with self._quick.ready():
            task = self._task([ids], tokens, generator, ())
            yield from pieces(task, filters, stream)

    def _read(self, prompts: Sequence[str], tokens: int) -> list[list[int]]:
        """What the model reads before it writes: [begin] and each prompt."""
        if tokens < 1:
            raise RegardError(f"{tokens} tokens cannot be written.", fix="Ask for 1 or more.")
        tokenizer = self.vocabularies.source
        found = [[tokenizer.specials.bos, *ids] for ids in tokenizer.encode_ids(list(prompts))]
        for ids in found:
            self._check_length(len(ids), tokens)
        return found

    def _check_length(self, read: int, tokens: int) -> None:
        limit = learned_positions(self.settings.decoder)
        if limit is None or read + tokens - 1 <= limit:
            return
        room = limit - read + 1
        raise RegardError(
            f"{read} tokens are read and {tokens} asked for, but the model has learned {limit} positions.",
            fix=f"Ask for at most {room} tokens." if room > 0 else "Shorten the prompt.",
        )


def _alike(read: list[list[int]], most: int) -> Iterator[list[int]]:
    """The places of prompts that have as many tokens, at most so many at a time.

    >>> list(_alike([[1], [1, 2], [3], [4]], 2))
    [[0, 2], [3], [1]]
    """
    order = sorted(range(len(read)), key=lambda place: len(read[place]))
    for _, some in groupby(order, key=lambda place: len(read[place])):
        places = list(some)
        yield from (places[begin : begin + most] for begin in range(0, len(places), most))
