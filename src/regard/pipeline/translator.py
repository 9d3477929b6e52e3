"""Text in one language to text in another, with an encoder-decoder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.decode.beam import beam as beam_search
from regard.decode.greedy import greedy
from regard.decode.step import Hypothesis
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.swift import Swift
from regard.pipeline.batches import by_length
from regard.pipeline.limits import learned_positions
from regard.pipeline.quiet import quiet
from regard.pipeline.sources import Into, padded, sources_of
from regard.pipeline.written import never_written
from regard.store.model_folder import check_sizes
from regard.text.vocabularies import Vocabularies

FACTOR, EXTRA = 2, 50  # how long a translation may become, unless said otherwise


@dataclass(frozen=True)
class Translation:
    """A text, and how it came about."""

    text: str
    score: float
    """The log-probability of all tokens, END included, divided by their number to the power of alpha."""
    tokens: tuple[int, ...]
    """As they were written, END included if there was one."""
    logs: tuple[float, ...]
    """The log-probability of each token."""
    ended: bool
    """Whether it came to its end; a text that did not was cut off at its longest length."""


NOTHING = Translation("", 0.0, (), (), ended=True)


class Translator:
    """translator = regard.load("my-model"); translator.translate(["Good morning."])[0].text."""

    def __init__(self, model: EncoderDecoder, vocabularies: Vocabularies, settings: settings_of.EncoderDecoder) -> None:
        if settings.task != "translate":
            raise RegardError(
                f"This model's task is '{settings.task}', not 'translate'.", fix="There is no pipeline for it yet."
            )
        check_sizes(settings, vocabularies, where="Translator")
        self.model = model
        self.vocabularies = vocabularies
        self.settings = settings
        self._swift: Swift | None = None  # laid out anew when the weights have changed

    def translate(
        self,
        texts: Sequence[str],
        beam: int = 5,
        alpha: float = 1.0,
        batch_tokens: int = 4096,
        longest: int | None = None,
        into: Into = None,
        enough: int | None = None,
        report: Callable[[int], None] | None = None,
    ) -> list[Translation]:
        """One translation for each text, in their order.

        `beam` 1 is greedy. `alpha` is explained in `regard.decode.beam`. A batch holds `batch_tokens` tokens of
        source at most, padding and beams counted. `longest` is the most tokens that a translation may have, END
        included; if it is not given, 2 x the tokens of the source + 50, or less if the model has learned fewer
        positions. `into` names the language to write, for all texts or for each, where the model was trained with
        tags of languages. `enough` stops a beam as soon as so many of its texts are finished, quicker than the exact
        bound by which it stops otherwise. `report` is told how many texts were translated, after each batch.

        A text without words (empty or white space) has an empty translation. Tokens that are no text (pad, begin,
        mask, classify, separate, tags of languages) are never written. The model may be in training: it is used
        without dropout and left as it was.
        """
        if isinstance(texts, str):
            raise RegardError("One text was given, where a list is expected.", fix=f"translate([{texts[:20]!r}])")
        if beam < 1 or batch_tokens < 1:
            raise RegardError(f"No beam of {beam} in batches of {batch_tokens} tokens.", fix="Use 1 or more for both.")
        sources = self._sources(texts, into)
        lengths = self._longest(sources, longest)
        translations = [NOTHING] * len(sources)
        places = [place for place, source in enumerate(sources) if source]
        if report is not None and len(places) < len(sources):
            report(len(sources) - len(places))
        learning = self.model.training
        with quiet(self.model), torch.inference_mode():
            swift = self._laid_out(learning)
            for batch in by_length([len(sources[place]) for place in places], batch_tokens, copies=beam):
                chosen = [places[number] for number in batch]
                most = [lengths[place] for place in chosen]
                found = self._search(swift, [sources[place] for place in chosen], most, beam, alpha, enough)
                for place, hypothesis in zip(chosen, found, strict=True):
                    translations[place] = self._told(hypothesis)
                if report is not None:
                    report(len(chosen))
        return translations

    def _sources(self, texts: Sequence[str], into: Into) -> list[list[int]]:
        """As in training; nothing for a text without words."""
        found = sources_of(texts, self.vocabularies, self.settings, into)
        normalise = self.vocabularies.source.normalise
        return [source if normalise(text).strip() else [] for text, source in zip(texts, found, strict=True)]

    def _longest(self, sources: list[list[int]], longest: int | None) -> list[int]:
        limit = learned_positions(self.settings.decoder)
        if longest is None:
            lengths = [FACTOR * len(source) + EXTRA for source in sources]
            return lengths if limit is None else [min(length, limit) for length in lengths]
        if longest < 1 or (limit is not None and longest > limit):
            most = "" if limit is None else f" and at most {limit}, which is where the learned positions end"
            raise RegardError(f"A translation cannot have {longest} tokens.", fix=f"Give at least 1{most}.")
        return [longest] * len(sources)

    def _laid_out(self, learning: bool) -> Swift:
        """The model for steps of one token; while it learns, nothing of it is kept from one call to the next."""
        if learning:
            self._swift = None
            return Swift(self.model)
        if self._swift is None or not self._swift.fits():
            self._swift = Swift(self.model)
        return self._swift

    def _search(
        self, swift: Swift, sources: list[list[int]], longest: list[int], size: int, alpha: float, enough: int | None
    ) -> list[Hypothesis]:
        device = next(self.model.parameters()).device
        target = self.vocabularies.target
        source, real = padded(sources, self.vocabularies.source.specials.pad, device)  # (B, S)
        state = self.model.start(source, real, capacity=max(longest))
        first = source.new_full((len(sources), 1), target.specials.begin)
        end, never = target.specials.end, never_written(target, device)
        step = swift.step
        if size == 1:
            return greedy(step, state, first, end=end, longest=longest, alpha=alpha, never=never)
        found = beam_search(
            step, state, first, size=size, end=end, longest=longest, alpha=alpha, enough=enough, never=never
        )
        return [hypotheses[0] for hypotheses in found]

    def _told(self, found: Hypothesis) -> Translation:
        text = self.vocabularies.target.decode(found.text)
        return Translation(text, found.score, found.tokens, found.logs, found.ended)
