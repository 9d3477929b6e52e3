"""Text in one language to text in another, with an encoder-decoder."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.decode.constraints import constrain
from regard.decode.filters import Filters
from regard.decode.lengths import LengthPenalty
from regard.decode.step import State, Step
from regard.models.encoder_decoder import EncoderDecoder
from regard.pipeline import wishes as wished
from regard.pipeline.answers import NOTHING, Translation, answer
from regard.pipeline.batches import by_length, seed_of, windows
from regard.pipeline.chance import generator_of
from regard.pipeline.limits import learned_positions
from regard.pipeline.quick import Quick
from regard.pipeline.searches import Beam, Search, Task
from regard.pipeline.sources import Into, check_list, padded, sources_of
from regard.pipeline.streaming import pieces
from regard.pipeline.wishes import Wishes
from regard.pipeline.written import never_written
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.vocabularies import TokenizerPair

EXTRA = 50  # tokens that a translation may have beyond what the model has seen sources grow to
WINDOW = 2048  # texts that are sorted by length and worked on together


class Translator:
    """translator = regard.load("my-model"); translator.translate(["Good morning."])[0].text."""

    def __init__(
        self, model: EncoderDecoder, vocabularies: TokenizerPair, settings: settings_of.EncoderDecoder
    ) -> None:
        if settings.task != "translate":
            raise RegardError(
                f"This model's task is '{settings.task}', not 'translate'.", fix="There is no pipeline for it yet."
            )
        check_vocabulary_sizes(settings, vocabularies, where="Translator")
        self.model = model
        self.vocabularies = vocabularies
        self.settings = settings
        self._quick = Quick(model)

    def translate(
        self,
        texts: Sequence[str],
        beam: int = 5,
        alpha: LengthPenalty = 1.0,
        batch_tokens: int = 4096,
        longest: int | None = None,
        into: Into = None,
        enough: int | None = None,
        report: Callable[[int], None] | None = None,
        *,
        search: Search | None = None,
        best: int = 1,
        wishes: Wishes | None = None,
        seed: int | None = None,
    ) -> list[Translation]:
        """One translation for each text, in their order.

        `beam` 1 is greedy. `alpha` is explained in `regard.decode.beam`. A batch holds `batch_tokens` tokens of
        source at most, padding and beams counted. `longest` is the most tokens that a translation may have, END
        included; if it is not given, the tokens of the source x `settings.growth` (2, or more where the corpus of
        training had more) + 50, or less if the model has learned fewer positions. `into` names the language to write,
        for all texts or for each, where the model was trained with tags of languages. `enough` stops a beam as soon as
        so many of its texts are finished, quicker than the exact bound by which it stops otherwise. `report` is told
        how many texts were translated, after each batch.

        `search` is any other way to look for a text (`regard.pipeline.searches`), instead of a beam. Of the `best`
        texts that it finds, the first is the translation and the others are its `alternatives`. `wishes` say what
        the translations must begin with, have, or not have. The same `seed` draws the same texts from the same batches.

        A text without words (empty or white space) has an empty translation. Tokens that are no text (pad, begin,
        mask, classify, separate, tags of languages) are never written. The model may be in training: it is used
        without dropout and left as it was.
        """
        check_list(texts, "text", "translate")
        if beam < 1 or batch_tokens < 1:
            raise RegardError(f"No beam of {beam} in batches of {batch_tokens} tokens.", fix="Use 1 or more for both.")
        search, wishes = search or Beam(beam, alpha, enough), wishes or Wishes()
        wishes.check(len(texts))
        sources = self.sources(texts, into)
        lengths = self.longest(sources, longest)
        translations = [NOTHING] * len(sources)
        places = [place for place, source in enumerate(sources) if source]
        if report is not None and len(places) < len(sources):
            report(len(sources) - len(places))
        generator, target, by_risk = generator_of(seed, self.device), self.vocabularies.target, search.by_risk
        with self.ready(), torch.inference_mode():
            copies = search.rows * wishes.copies(target)
            for batch in by_length([len(sources[place]) for place in places], batch_tokens, copies=copies):
                chosen = [places[number] for number in batch]
                task = self.task([sources[place] for place in chosen], [lengths[place] for place in chosen], generator)
                found = search.find(self._obeying(replace(task, best=best), wishes, chosen))
                for place, hypotheses in zip(chosen, found, strict=True):
                    translations[place] = answer(Translation, hypotheses, target, best, by_risk=by_risk)
                if report is not None:
                    report(len(chosen))
        return translations

    def translated(self, texts: Iterable[str], window: int = WINDOW, **options: Any) -> Iterator[Translation]:
        """Any number of texts, from a generator or a file: `window` of them are held, sorted and translated at a time.

        `options` are those of `translate`, but for what is said of each text; with a `seed`, every window draws by
        another one, so that no chance comes twice. Stop asking, and nothing more is done.
        """
        for number, some in enumerate(windows(texts, window)):
            yield from self.translate(some, **options | {"seed": seed_of(options.get("seed"), number)})

    def stream(
        self,
        text: str,
        longest: int | None = None,
        into: Into = None,
        filters: Filters | None = None,
        seed: int | None = None,
    ) -> Iterator[str]:
        """A translation piece by piece, as it is written: greedily, or drawn through `filters`.

        Stop asking, and nothing more is computed.
        """
        sources = self.sources([text], into)
        lengths = self.longest(sources, longest)  # faults are told now, not at the first piece
        filters = filters or Filters(temperature=0)
        return self._streamed(sources, lengths, filters, generator_of(seed, self.device)) if sources[0] else iter(())

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def ready(self) -> AbstractContextManager[None]:
        """The model without dropout, laid out for steps of one token."""
        return self._quick.ready()

    def sources(self, texts: Sequence[str], into: Into) -> list[list[int]]:
        """Their tokens, framed as in training; nothing for a text without words."""
        found = sources_of(texts, self.vocabularies, self.settings, into)
        normalise = self.vocabularies.source.normalise
        return [source if normalise(text).strip() else [] for text, source in zip(texts, found, strict=True)]

    def longest(self, sources: list[list[int]], longest: int | None) -> list[int]:
        """How many tokens the translation of each may have."""
        return self._longest(sources, longest, self.settings.max_length_ratio)

    def _longest(self, sources: list[list[int]], longest: int | None, growth: float) -> list[int]:
        limit = self.positions
        if longest is None:
            lengths = [math.ceil(growth * len(source)) + EXTRA for source in sources]
            return lengths if limit is None else [min(length, limit) for length in lengths]
        if longest < 1 or (limit is not None and longest > limit):
            most = "" if limit is None else f" and at most {limit}, which is where the learned positions end"
            raise RegardError(f"A translation cannot have {longest} tokens.", fix=f"Give at least 1{most}.")
        return [longest] * len(sources)

    @property
    def positions(self) -> int | None:
        """How many positions the decoder has learned; None: it knows no end."""
        return learned_positions(self.settings.decoder)

    def begin(self, source: Tensor, real: Tensor | None, capacity: int) -> tuple[Step[Any], State]:
        """Read sources (B, S); what comes back writes on, in at most `capacity` steps. Only while it is `ready`."""
        return self._quick.step, self.model.start(source, real, capacity=capacity)

    def task(self, sources: list[list[int]], longest: list[int], generator: torch.Generator) -> Task:
        """Sources that are read, and all that a search needs to write their translations."""
        target = self.vocabularies.target
        source, real = padded(sources, self.vocabularies.source.specials.pad, self.device)  # (B, S)
        step, state = self.begin(source, real, max(longest))
        first = source.new_full((len(sources), 1), target.specials.bos)
        never = never_written(target, self.device)
        return Task(step, state, first, target.specials.eos, longest, never, generator)

    def _obeying(self, task: Task, wishes: Wishes, places: list[int]) -> Task:
        """The same task under constraints, for the texts at these places."""
        target = self.vocabularies.target
        if wishes.required is not None:
            task = replace(task, required=[wished.required(target, wishes.required[place]) for place in places])
        if wishes.begins is None and not wishes.forbidden:
            return task
        begins = [""] * len(places) if wishes.begins is None else [wishes.begins[place] for place in places]
        step, state = constrain(
            task.step,
            task.state,
            len(places),
            sink=target.specials.pad,
            forbidden=wished.forbidden(target, wishes.forbidden),
            forced_prefixes=[tuple(ids) for ids in target.encode_ids(begins)],
        )
        return replace(task, step=step, state=state)

    @torch.inference_mode()
    def _streamed(
        self, sources: list[list[int]], lengths: list[int], filters: Filters, generator: torch.Generator
    ) -> Iterator[str]:
        with self.ready():
            task = self.task(sources, lengths, generator)
            yield from pieces(task, filters, self.vocabularies.target.make_streaming_decoder())
