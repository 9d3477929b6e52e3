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
from regard.decode.length_penalty import LengthPenalty
from regard.decode.protocol import State, Step
from regard.models.cpu_decoder import LazyCpuDecoder
from regard.models.encoder_decoder import EncoderDecoder
from regard.pipeline import constraints as wished
from regard.pipeline.batches import batch_by_length, chunk_seed, chunks
from regard.pipeline.chance import make_generator
from regard.pipeline.constraints import Constraints
from regard.pipeline.encoding import TargetLanguage, check_list, encode_sources, padded
from regard.pipeline.limits import max_positions
from regard.pipeline.results import EMPTY, Translation, make_result
from regard.pipeline.search import Beam, Search, SearchInput
from regard.pipeline.streaming import stream_text
from regard.pipeline.written import not_text
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.tokenizer_pair import TokenizerPair

EXTRA_TOKENS = 50  # tokens that a translation may have beyond what the model has seen sources grow to
CHUNK_SIZE = 2048  # texts that are sorted by length and worked on together


class Translator:
    """translator = regard.load("my-model"); translator.translate(["Good morning."])[0].text."""

    def __init__(self, model: EncoderDecoder, tokenizers: TokenizerPair, settings: settings_of.EncoderDecoder) -> None:
        if settings.task != "translate":
            raise RegardError(
                f"This model's task is '{settings.task}', not 'translate'.", fix="There is no pipeline for it yet."
            )
        check_vocabulary_sizes(settings, tokenizers, where="Translator")
        self.model = model
        self.tokenizers = tokenizers
        self.settings = settings
        self._decoder = LazyCpuDecoder(model)

    def translate(
        self,
        texts: Sequence[str],
        beam_size: int = 5,
        length_penalty: LengthPenalty = 1.0,
        batch_tokens: int = 4096,
        max_length: int | None = None,
        target_language: TargetLanguage = None,
        stop_after: int | None = None,
        report: Callable[[int], None] | None = None,
        *,
        search: Search | None = None,
        n_best: int = 1,
        constraints: Constraints | None = None,
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

        `search` is any other way to look for a text (`regard.pipeline.search`), instead of a beam. Of the `best`
        texts that it finds, the first is the translation and the others are its `alternatives`. `wishes` say what
        the translations must begin with, have, or not have. The same `seed` draws the same texts from the same batches.

        A text without words (empty or white space) has an empty translation. Tokens that are no text (pad, begin,
        mask, classify, separate, tags of languages) are never written. The model may be in training: it is used
        without dropout and left as it was.
        """
        check_list(texts, "text", "translate")
        if beam_size < 1 or batch_tokens < 1:
            raise RegardError(
                f"No beam of {beam_size} in batches of {batch_tokens} tokens.", fix="Use 1 or more for both."
            )
        search, constraints = search or Beam(beam_size, length_penalty, stop_after), constraints or Constraints()
        constraints.check(len(texts))
        sources = self.encode_sources(texts, target_language)
        max_lengths = self.resolve_max_lengths(sources, max_length)
        translations = [EMPTY] * len(sources)
        nonempty = [index for index, source in enumerate(sources) if source]
        if report is not None and len(nonempty) < len(sources):
            report(len(sources) - len(nonempty))
        generator, target, should_rerank = make_generator(seed, self.device), self.tokenizers.target, search.reranks
        with self.prepared(), torch.inference_mode():
            rows_per_text = search.rows_per_text * constraints.beam_multiplier(target)
            for batch in batch_by_length(
                [len(sources[index]) for index in nonempty], batch_tokens, rows_per_text=rows_per_text
            ):
                batch_indices = [nonempty[number] for number in batch]
                inputs = self.make_search_input(
                    [sources[index] for index in batch_indices],
                    [max_lengths[index] for index in batch_indices],
                    generator,
                )
                results = search.find(self._constrain(replace(inputs, n_best=n_best), constraints, batch_indices))
                for index, hypotheses in zip(batch_indices, results, strict=True):
                    translations[index] = make_result(
                        Translation, hypotheses, target, n_best, should_rerank=should_rerank
                    )
                if report is not None:
                    report(len(batch_indices))
        return translations

    def translate_iter(
        self, texts: Iterable[str], chunk_size: int = CHUNK_SIZE, **options: Any
    ) -> Iterator[Translation]:
        """Any number of texts, from a generator or a file: `window` of them are held, sorted and translated at a time.

        `options` are those of `translate`, but for what is said of each text; with a `seed`, every window draws by
        another one, so that no chance comes twice. Stop asking, and nothing more is done.
        """
        for number, chunk in enumerate(chunks(texts, chunk_size)):
            yield from self.translate(chunk, **options | {"seed": chunk_seed(options.get("seed"), number)})

    def stream(
        self,
        text: str,
        max_length: int | None = None,
        target_language: TargetLanguage = None,
        filters: Filters | None = None,
        seed: int | None = None,
    ) -> Iterator[str]:
        """A translation piece by piece, as it is written: greedily, or drawn through `filters`.

        Stop asking, and nothing more is computed.
        """
        sources = self.encode_sources([text], target_language)
        max_lengths = self.resolve_max_lengths(sources, max_length)  # faults are told now, not at the first piece
        filters = filters or Filters(temperature=0)
        return (
            self._stream(sources, max_lengths, filters, make_generator(seed, self.device)) if sources[0] else iter(())
        )

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def prepared(self) -> AbstractContextManager[None]:
        """The model without dropout, laid out for steps of one token."""
        return self._decoder.prepared()

    def encode_sources(self, texts: Sequence[str], target_language: TargetLanguage) -> list[list[int]]:
        """Their tokens, framed as in training; nothing for a text without words."""
        encoded = encode_sources(texts, self.tokenizers, self.settings, target_language)
        normalise = self.tokenizers.source.normalise
        return [source if normalise(text).strip() else [] for text, source in zip(texts, encoded, strict=True)]

    def resolve_max_lengths(self, sources: list[list[int]], max_length: int | None) -> list[int]:
        """How many tokens the translation of each may have."""
        return self._resolve_max_lengths(sources, max_length, self.settings.max_length_ratio)

    def _resolve_max_lengths(
        self, sources: list[list[int]], max_length: int | None, max_length_ratio: float
    ) -> list[int]:
        limit = self.max_positions
        if max_length is None:
            lengths = [math.ceil(max_length_ratio * len(source)) + EXTRA_TOKENS for source in sources]
            return lengths if limit is None else [min(length, limit) for length in lengths]
        if max_length < 1 or (limit is not None and max_length > limit):
            upper_bound = "" if limit is None else f" and at most {limit}, which is where the learned positions end"
            raise RegardError(f"A translation cannot have {max_length} tokens.", fix=f"Give at least 1{upper_bound}.")
        return [max_length] * len(sources)

    @property
    def max_positions(self) -> int | None:
        """How many positions the decoder has learned; None: it knows no end."""
        return max_positions(self.settings.decoder)

    def start(self, source: Tensor, valid: Tensor | None, capacity: int) -> tuple[Step[Any], State]:
        """Read sources (B, S); what comes back writes on, in at most `capacity` steps. Only while it is `ready`."""
        return self._decoder.step, self.model.start(source, valid, capacity=capacity)

    def make_search_input(
        self, sources: list[list[int]], max_lengths: list[int], generator: torch.Generator
    ) -> SearchInput:
        """Sources that are read, and all that a search needs to write their translations."""
        target = self.tokenizers.target
        source, valid = padded(sources, self.tokenizers.source.specials.pad, self.device)  # (B, S)
        step, state = self.start(source, valid, max(max_lengths))
        prompt = source.new_full((len(sources), 1), target.specials.bos)
        suppressed = not_text(target, self.device)
        return SearchInput(step, state, prompt, target.specials.eos, max_lengths, suppressed, generator)

    def _constrain(self, inputs: SearchInput, constraints: Constraints, indices: list[int]) -> SearchInput:
        """The same task under constraints, for the texts at these places."""
        target = self.tokenizers.target
        if constraints.required is not None:
            inputs = replace(
                inputs, required=[wished.required_ids(target, constraints.required[index]) for index in indices]
            )
        if constraints.prefixes is None and not constraints.forbidden:
            return inputs
        prefixes = (
            [""] * len(indices) if constraints.prefixes is None else [constraints.prefixes[index] for index in indices]
        )
        step, state = constrain(
            inputs.step,
            inputs.state,
            len(indices),
            sink=target.specials.pad,
            forbidden=wished.forbidden_ids(target, constraints.forbidden),
            forced_prefixes=[tuple(ids) for ids in target.encode_ids(prefixes)],
        )
        return replace(inputs, step=step, state=state)

    @torch.inference_mode()
    def _stream(
        self, sources: list[list[int]], max_lengths: list[int], filters: Filters, generator: torch.Generator
    ) -> Iterator[str]:
        with self.prepared():
            inputs = self.make_search_input(sources, max_lengths, generator)
            yield from stream_text(inputs, filters, self.tokenizers.target.make_streaming_decoder())
