"""Base class of captioning and transcription pipelines."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Generic

import torch
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.base.progress import begin
from regard.config.model import EncoderDecoderConfig, GenerationConfig
from regard.decode.constraints import ConstrainedStep
from regard.decode.filters import Generators
from regard.decode.protocol import State, Step
from regard.models.cpu_decoder import LazyCpuDecoder
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.record import Record
from regard.store.vocabulary_check import check_vocabulary_sizes
from regard.tasks.encoding import resolve_max_length
from regard.tasks.evaluation.options import EvaluationData, EvaluationOptions
from regard.tasks.inputs.adapter import MEDIA_TYPES, Item, MediaInput
from regard.tasks.pipeline import Pipeline
from regard.tasks.replay import Generation, ModelRun, ReplayInput
from regard.tasks.requests import DEFAULT_OPTIONS, BatchOptions, ModelRequest, ReplayOptions
from regard.tasks.results import GeneratedText, make_result
from regard.tasks.search import Beam, Search, SearchInput, make_generator
from regard.text.tokenizer_pair import TokenizerPair

EXTRA_TOKENS = 20  # added to max_length_ratio * length, because short inputs have proportionally longer texts


class MediaToText(Pipeline, Generic[Item]):
    """Base class of pipelines that generate text from media."""

    item_types = MEDIA_TYPES
    ability: ClassVar[str]
    """What the pipeline does, e.g. "caption images"."""
    output_name: ClassVar[str]
    """What the pipeline returns, e.g. "caption"."""
    stage: ClassVar[str]
    """The task name, e.g. "captioning"."""
    training_data: ClassVar[str]
    """The option of `regard train` that trains such a model."""
    input_class: ClassVar[type[MediaInput[Any, Any]]]

    def __init__(self, model: EncoderDecoder, tokenizers: TokenizerPair, settings: EncoderDecoderConfig) -> None:
        if not isinstance(settings.source, self.input_class.config_class):
            message = f"This model's task is '{settings.task}': it does not {self.ability}."
            raise RegardError(message, hint=f"Train a suitable model: `regard train {self.training_data} --out NEW`.")
        check_vocabulary_sizes(settings, tokenizers, location=type(self).__name__)
        self.model: EncoderDecoder = model
        self.tokenizers = tokenizers
        self.settings: EncoderDecoderConfig = settings
        self.input: MediaInput[Item, Any] = self.input_class(settings.source, settings.encoder.max_positions)
        self.rules = settings.generation or GenerationConfig()
        self._decoder = LazyCpuDecoder()

    def predict(
        self,
        inputs: Sequence[Item],
        *,
        n_best: int = 1,
        beam: int | None = None,
        length_penalty: float = 1.0,
        max_new_tokens: int | None = None,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[GeneratedText]:
        """Generate a text for each file, for `regard predict`."""
        search = self.make_search(beam, length_penalty, n_best)
        return self.generate_texts(inputs, search, n_best=n_best, max_new_tokens=max_new_tokens, report=report)

    def make_outputs(self, data: EvaluationData, options: EvaluationOptions) -> list[str]:
        """Generate a text for each test input."""
        search, inputs = self.make_search(options.beam, options.length_penalty), data.inputs or []
        results = self.generate_texts(inputs, search, report=begin(self.stage, len(inputs)))
        return [result.text for result in results]

    def generate_texts(
        self,
        items: Sequence[Item],
        search: Search | None = None,
        *,
        n_best: int = 1,
        max_new_tokens: int | None = None,
        seed: int | None = None,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[GeneratedText]:
        """Generate a text for each input; see the public method of each pipeline for the arguments."""
        search = search or self.make_search()
        generator = make_generator(seed, self.device)
        results: dict[int, GeneratedText] = {}
        with self.prepared(), torch.inference_mode():
            for indices, loaded in self.input.batches(items, search.rows_per_text):
                max_lengths = [self.resolve_max_length(self.input.measure(item), max_new_tokens) for item in loaded]
                inputs = self.make_search_input(loaded, max_lengths, generator)
                for index, hypotheses in zip(indices, search.find(replace(inputs, n_best=n_best)), strict=True):
                    result = make_result(
                        GeneratedText, hypotheses, self.tokenizers.target, n_best, should_rerank=search.reranks
                    )
                    results[index] = self._finish(result)
                report(len(indices))
        return [results[index] for index in range(len(items))]

    def run(self, requests: Sequence[ModelRequest], options: BatchOptions) -> list[GeneratedText]:
        """Generate a text for each request."""
        return self.generate_texts([request.item for request in requests], options.search, n_best=options.n_best)

    def make_search(self, beam_size: int | None = None, length_penalty: float = 1.0, n_best: int = 1) -> Beam:
        """Return a beam search of this size, at least `n_best`; default: 5, or the imported model's.

        For imported models the search stops once as many hypotheses have finished as the beam size. Continuing would
        favor long repetitions, whose tokens Whisper predicts with near certainty, because the score is a mean.
        """
        if self.settings.generation is None:
            return Beam(max(beam_size or Beam.beam_size, n_best), length_penalty)
        beam_size = max(beam_size or self.rules.beam_size, n_best)
        return Beam(beam_size, length_penalty, stop_after=beam_size)

    def prepared(self) -> AbstractContextManager[None]:
        """Return a context with the model in evaluation mode and its weights packed for single-token steps."""
        return self._decoder.prepared(self.model)

    def replay(self, text: str, options: ReplayOptions = DEFAULT_OPTIONS) -> ModelRun:
        """Generate a text for a file in a recordable way."""
        loaded = self.input.load(text)
        max_lengths = [self.resolve_max_length(self.input.measure(loaded), options.max_new_tokens)]
        generation = Generation(
            ReplayInput(
                self.model,
                target=self.prompt,
                media=self.input.stack([loaded], self.device)[0],
                vectors=self.input.count_vectors(loaded),
            ),
            self.tokenizers,
            self.prepared,
            lambda generators, record, rows: self.make_search_input(
                [loaded] * rows, max_lengths * rows, generators, record
            ),
            options.search or self.make_search(),
            options.seed,
            options.n_best,
        )
        return replace(generation.make_run(f"the {self.output_name}"), drawn=self.input.draw(loaded, text))

    @property
    def vocabulary_sizes(self) -> dict[str, int]:
        """Number of target tokens."""
        return {"target": self.tokenizers.target.size}

    def warm_up(self) -> None:
        """Generate a short text for the smallest input."""
        self.predict(self.input.samples(), max_new_tokens=2)

    def make_search_input(
        self,
        loaded: Sequence[NDArray[Any]],
        max_lengths: list[int],
        generator: Generators,
        record: Record | None = None,
    ) -> SearchInput:
        """Encode loaded inputs and return the search input.

        Args:
            loaded: The inputs, as `input.load` returns them.
            max_lengths: Maximum number of tokens per input.
            generator: Random generators for sampling.
            record: Records or changes the attention of every step; None uses the fast path.
        """
        specials, rules = self.tokenizers.target.specials, self.rules
        source, valid = self.input.stack(loaded, self.device)
        rows, capacity = len(loaded), max(max_lengths) + len(rules.prompt)
        state: State = self.model.start(source, valid, capacity=capacity, record=record)
        step: Step[Any] = self._decoder.step if record is None else partial(self.model.step, record=record)
        suppressed_ids = sorted({*specials.not_text, *rules.suppress_tokens})
        if rules.begin_suppress_tokens:
            absorbing_token = suppressed_ids[0] if suppressed_ids else None
            step = constrained = ConstrainedStep(
                step, absorbing_token=absorbing_token, forbidden_first=rules.begin_suppress_tokens
            )
            state = constrained.start(state, rows)
        prompt = torch.tensor([self.prompt], device=self.device).expand(rows, -1)
        suppress_tokens = torch.tensor(suppressed_ids, dtype=torch.long, device=self.device)
        return SearchInput(step, state, prompt, specials.eos, max_lengths, suppress_tokens, generator)

    @property
    def prompt(self) -> list[int]:
        """Decoder input tokens before generation."""
        return [self.tokenizers.target.specials.bos, *self.rules.prompt]

    def resolve_max_length(self, length: int, max_new_tokens: int | None) -> int:
        """Return the maximum number of tokens for an input of this length (`input.measure`)."""
        default = math.ceil(self.settings.max_length_ratio * length) + EXTRA_TOKENS
        limit = self.settings.decoder.max_positions
        return resolve_max_length(max_new_tokens, default, None if limit is None else limit - len(self.rules.prompt))

    def _finish(self, result: GeneratedText) -> GeneratedText:
        """Change a text before it is returned."""
        return result

    def _describe_input(self) -> str:
        return f"{self.input.summary}, {pluralize(self.tokenizers.target.size, 'token')}"
