"""`Translator` and `TextGenerator` on the CTranslate2 engine: beam search runs there, everything else in PyTorch.

The PyTorch model is read when something first needs it: another search than beam search, constraints, streaming,
attention, a draft model. An export that was loaded by itself has no PyTorch model; there such calls are errors.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import torch

from regard.base.errors import RegardError
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig
from regard.decode.protocol import Hypothesis
from regard.decode.speculative import SpeculativeResult
from regard.pipeline.attention import RecordedAttention
from regard.pipeline.constraints import Constraints
from regard.pipeline.ctranslate2 import NAME, GenerationEngine, TranslationEngine, find_obstacle
from regard.pipeline.encoding import Pipeline
from regard.pipeline.generator import DEFAULT_SEARCH as SAMPLING
from regard.pipeline.generator import TextGenerator
from regard.pipeline.results import GeneratedText, Translation
from regard.pipeline.search import Beam, Search, TextStream
from regard.pipeline.translator import DEFAULT_SEARCH, Translator
from regard.store.export_folder import ExportInfo
from regard.store.model_folder import check_vocabulary_sizes
from regard.store.size_check import count_parameters
from regard.text.tokenizer_pair import TokenizerPair

Torch = TypeVar("Torch", bound=Pipeline)


class _LazyTorch:
    """The PyTorch pipeline beside an engine, loaded on first use."""

    def __init__(self, folder: Path, load: Callable[[], Pipeline] | None) -> None:
        self._folder, self._load = folder, load
        self._pipeline: Pipeline | None = None

    @property
    def is_available(self) -> bool:
        """Whether the folder has a PyTorch model."""
        return self._load is not None

    def require(self, reason: str) -> Any:
        """Return the PyTorch pipeline.

        Args:
            reason: Why it is needed, for the error of an export without it.
        """
        if self._load is None:
            hint = "Load the model folder instead of the export: regard.load(folder, engine='ctranslate2')."
            raise RegardError(f"{reason}, and the export has no PyTorch model.", location=str(self._folder), hint=hint)
        if self._pipeline is None:
            self._pipeline = self._load()
        return self._pipeline


class _OnCTranslate2:
    """What both pipelines have in common: the engine, and the PyTorch model behind it."""

    engine_name = NAME
    settings: Any
    engine: Any
    _device: torch.device
    _torch: _LazyTorch

    @property
    def has_torch_model(self) -> bool:
        """Whether there is a PyTorch model, which streams and alignment need."""
        return self._torch.is_available

    @property
    def in_torch(self) -> Any:
        """The PyTorch pipeline."""
        return self._torch.require("This needs the PyTorch model")

    @property
    def model(self) -> Any:
        """The PyTorch model."""
        return self.in_torch.model

    @property
    def device(self) -> torch.device:
        """Device of the engine."""
        return self._device

    @cached_property
    def num_parameters(self) -> int:
        """Number of the model's parameters; shared ones count once."""
        return count_parameters(self.settings)

    def prepared(self) -> AbstractContextManager[None]:
        """Return a context that changes nothing: the engine needs no preparation."""
        return nullcontext()

    def _describe(self) -> list[str]:
        return [f"ctranslate2 {self.engine.compute_type}"]


class CTranslate2Translator(_OnCTranslate2, Translator):  # type: ignore[override]  # `model` is read when needed
    """Translates with CTranslate2; `regard.load(folder, engine="ctranslate2")` makes it."""

    def __init__(
        self,
        folder: Path,
        info: ExportInfo,
        tokenizers: TokenizerPair,
        settings: EncoderDecoderConfig,
        device: torch.device,
        load_torch: Callable[[], Translator] | None = None,
    ) -> None:
        check_vocabulary_sizes(settings, tokenizers, location=str(folder))
        self.tokenizers, self.settings = tokenizers, settings
        self._device, self._torch = device, _LazyTorch(folder, load_torch)
        specials = tokenizers.target.specials
        self.engine = TranslationEngine(folder, info, specials.eos, specials.not_text, device)
        _ = tokenizers.target.token_bytes  # as in `Translator`

    def translate_sources(
        self, sources: Sequence[list[int]], search: Search = DEFAULT_SEARCH, **options: Any
    ) -> list[Translation]:
        """Translate as `Translator.translate_sources`; searches that CTranslate2 lacks run in PyTorch."""
        if reason := find_obstacle(search, options.get("n_best", 1), options.get("constraints")):
            translations: list[Translation] = self._torch.require(reason).translate_sources(sources, search, **options)
            return translations
        return super().translate_sources(sources, search, **options)

    def stream(self, text: str, **options: Any) -> TextStream:
        """Translate one text and yield it as it is generated, in PyTorch."""
        stream: TextStream = self._torch.require("CTranslate2 does not stream as Regard does").stream(text, **options)
        return stream

    def record(self, text: str, translation: Any = None, **options: Any) -> RecordedAttention:
        """Record the attention of the PyTorch model."""
        recorded: RecordedAttention = self._torch.require("CTranslate2 records no attention").record(
            text, self.translate(text, **options) if translation is None else translation, **options
        )
        return recorded

    def _count_rows(self, search: Search) -> int:
        """Count a text half: with the default of `batch_tokens`, batches of about 64 sentences, its fastest size."""
        return max(1, search.rows_per_text // 2)

    def _find(
        self,
        sources: list[list[int]],
        max_lengths: list[int],
        search: Search,
        *,
        n_best: int,
        with_scores: bool,
        **_: Any,
    ) -> list[list[Hypothesis]]:
        assert isinstance(search, Beam)  # noqa: S101 - `translate` runs other searches in PyTorch
        return self.engine.find(sources, max_lengths, search, n_best, with_scores=with_scores)


class CTranslate2Generator(_OnCTranslate2, TextGenerator):  # type: ignore[override]  # as above
    """Continues prompts with CTranslate2; `regard.load(folder, engine="ctranslate2")` makes it."""

    def __init__(
        self,
        folder: Path,
        info: ExportInfo,
        tokenizers: TokenizerPair,
        settings: DecoderOnlyConfig,
        device: torch.device,
        load_torch: Callable[[], TextGenerator] | None = None,
    ) -> None:
        check_vocabulary_sizes(settings, tokenizers, location=str(folder))
        self.tokenizers, self.settings = tokenizers, settings
        self._device, self._torch = device, _LazyTorch(folder, load_torch)
        specials = tokenizers.source.specials
        self.engine = GenerationEngine(folder, info, specials.eos, specials.not_text, device)

    def generate(self, prompts: Any, max_new_tokens: int = 200, search: Search = SAMPLING, **options: Any) -> Any:
        """Continue prompts as `TextGenerator.generate`; searches that CTranslate2 lacks run in PyTorch."""
        constraints = Constraints(forbidden=options["forbidden"]) if options.get("forbidden") else None
        if reason := find_obstacle(search, options.get("n_best", 1), constraints):
            return self._torch.require(reason).generate(prompts, max_new_tokens, search, **options)
        return super().generate(prompts, max_new_tokens, search, **options)

    def stream(self, prompt: str = "", max_new_tokens: int = 200, **options: Any) -> TextStream:
        """Sample a continuation and yield it as it is generated, in PyTorch."""
        torch_pipeline = self._torch.require("CTranslate2 does not sample as Regard does")
        stream: TextStream = torch_pipeline.stream(prompt, max_new_tokens, **options)
        return stream

    def generate_with_draft(
        self, draft: TextGenerator, prompt: str = "", max_new_tokens: int = 200, **options: Any
    ) -> tuple[GeneratedText, SpeculativeResult]:
        """Decode speculatively, in PyTorch."""
        torch_pipeline = self._torch.require("CTranslate2 has no speculative decoding")
        result: tuple[GeneratedText, SpeculativeResult] = torch_pipeline.generate_with_draft(
            draft, prompt, max_new_tokens, **options
        )
        return result

    def _find(
        self, prompt_ids: list[list[int]], max_new_tokens: int, search: Search, *, n_best: int, **_: Any
    ) -> list[list[Hypothesis]]:
        assert isinstance(search, Beam)  # noqa: S101 - `generate` runs other searches in PyTorch
        results: dict[int, list[Hypothesis]] = {}
        for length in {len(ids) for ids in prompt_ids}:  # of unequal prompts CTranslate2 returns a part of the longer
            indices = [index for index, ids in enumerate(prompt_ids) if len(ids) == length]
            rows = [prompt_ids[index] for index in indices]
            results |= zip(indices, self.engine.find(rows, [max_new_tokens] * len(rows), search, n_best), strict=True)
        return [results[index] for index in range(len(prompt_ids))]
