"""`TextGenerator` on the CTranslate2 engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.config.model import DecoderOnlyConfig
from regard.decode.protocol import Hypothesis
from regard.decode.speculative import SpeculativeResult
from regard.store.export_folder import ExportInfo
from regard.store.vocabulary_check import check_vocabulary_sizes
from regard.tasks.causal_lm.generator import DEFAULT_SEARCH, TextGenerator
from regard.tasks.ctranslate2 import GenerationEngine, find_obstacle
from regard.tasks.ctranslate2_pipelines import LazyTorch, OnCTranslate2
from regard.tasks.results import GeneratedText
from regard.tasks.search import Beam, Search
from regard.tasks.text_stream import TextStream
from regard.tasks.translation.constraints import Constraints
from regard.text.tokenizer_pair import TokenizerPair


class CTranslate2Generator(OnCTranslate2, TextGenerator):  # type: ignore[override]  # as above
    """Continues prompts with CTranslate2; created by `regard.load(folder, engine="ctranslate2")`."""

    def __init__(
        self,
        folder: Path,
        info: ExportInfo,
        tokenizers: TokenizerPair,
        settings: DecoderOnlyConfig,
        device: str,
        load_torch: Callable[[], TextGenerator] | None = None,
    ) -> None:
        check_vocabulary_sizes(settings, tokenizers, location=str(folder))
        self.tokenizers, self.settings = tokenizers, settings
        self._device, self._torch = device, LazyTorch(folder, load_torch)
        specials = tokenizers.source.specials
        self.engine = GenerationEngine(folder, info, specials.eos, specials.not_text, device)

    def generate(self, prompts: Any, max_new_tokens: int = 200, search: Search = DEFAULT_SEARCH, **options: Any) -> Any:
        """Continue prompts like `TextGenerator.generate`; searches that CTranslate2 does not support run in PyTorch."""
        constraints = Constraints(forbidden=options["forbidden"]) if options.get("forbidden") else None
        if reason := find_obstacle(search, options.get("n_best", 1), constraints):
            return self._torch.require(reason).generate(prompts, max_new_tokens, search, **options)
        return super().generate(prompts, max_new_tokens, search, **options)

    def stream(self, prompt: str = "", max_new_tokens: int = 200, **options: Any) -> TextStream:
        """Sample a continuation and yield it as it is generated, in PyTorch."""
        torch_pipeline = self._torch.require("CTranslate2 samples differently from Regard")
        stream: TextStream = torch_pipeline.stream(prompt, max_new_tokens, **options)
        return stream

    def generate_with_draft(
        self, draft: TextGenerator, prompt: str = "", max_new_tokens: int = 200, **options: Any
    ) -> tuple[GeneratedText, SpeculativeResult]:
        """Run speculative decoding in PyTorch."""
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
        for length in {
            len(ids) for ids in prompt_ids
        }:  # for prompts of unequal length CTranslate2 also returns part of the longer prompt
            indices = [index for index, ids in enumerate(prompt_ids) if len(ids) == length]
            rows = [prompt_ids[index] for index in indices]
            results |= zip(indices, self.engine.find(rows, [max_new_tokens] * len(rows), search, n_best), strict=True)
        return [results[index] for index in range(len(prompt_ids))]
