"""`Translator` on the CTranslate2 engine."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.config.model import EncoderDecoderConfig
from regard.decode.protocol import Hypothesis
from regard.store.export_folder import ExportInfo
from regard.store.vocabulary_check import check_vocabulary_sizes
from regard.tasks.ctranslate2 import PositionsError, TranslationEngine, find_obstacle
from regard.tasks.ctranslate2_pipelines import LazyTorch, OnCTranslate2
from regard.tasks.results import Translation
from regard.tasks.search import Beam, Search, Seed
from regard.tasks.translation.translator import DEFAULT_SEARCH, Translator
from regard.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    from regard.decode.filters import Generators
    from regard.tasks.attention import RecordedAttention
    from regard.tasks.text_stream import TextStream


class CTranslate2Translator(OnCTranslate2, Translator):  # type: ignore[override]  # `model` is read when needed
    """Translates with CTranslate2; created by `regard.load(folder, engine="ctranslate2")`."""

    def __init__(
        self,
        folder: Path,
        info: ExportInfo,
        tokenizers: TokenizerPair,
        settings: EncoderDecoderConfig,
        device: str,
        load_torch: Callable[[], Translator] | None = None,
    ) -> None:
        check_vocabulary_sizes(settings, tokenizers, location=str(folder))
        self.tokenizers, self.settings = tokenizers, settings
        self._device, self._torch = device, LazyTorch(folder, load_torch)
        specials = tokenizers.target.specials
        self.engine = TranslationEngine(folder, info, specials.eos, specials.not_text, device)
        _ = tokenizers.target.token_bytes  # as in `Translator`

    def translate_sources(
        self, sources: Sequence[list[int]], search: Search = DEFAULT_SEARCH, **options: Any
    ) -> list[Translation]:
        """Translate like `Translator.translate_sources`; searches that CTranslate2 does not support run in PyTorch."""
        if reason := find_obstacle(search, options.get("n_best", 1), options.get("constraints")):
            translations: list[Translation] = self._torch.require(reason).translate_sources(sources, search, **options)
            return translations
        return super().translate_sources(sources, search, **options)

    def stream(self, text: str, **options: Any) -> "TextStream":
        """Translate one text and yield it as it is generated, in PyTorch."""
        stream: TextStream = self._torch.require("CTranslate2 does not support streaming like Regard").stream(
            text, **options
        )
        return stream

    def record(self, text: str, translation: Any = None, **options: Any) -> "RecordedAttention":
        """Record the attention of the PyTorch model."""
        recorded: RecordedAttention = self._torch.require("CTranslate2 cannot record attention").record(
            text, self.translate(text, **options) if translation is None else translation, **options
        )
        return recorded

    @contextmanager
    def _searching(self, seed: Seed, texts: int) -> "Iterator[Generators]":  # noqa: ARG002
        """Yield no random generators: the engine does not sample."""
        yield ()

    def _count_rows(self, search: Search) -> int:
        """Count each text as half a row, for batches of about 64 sentences, the fastest size."""
        return max(1, search.rows_per_text // 2)

    def _find(
        self,
        sources: list[list[int]],
        max_lengths: list[int],
        search: Search,
        *,
        n_best: int,
        with_scores: bool,
        **options: Any,
    ) -> list[list[Hypothesis]]:
        assert isinstance(search, Beam)  # noqa: S101 - `translate` runs other searches in PyTorch
        try:
            return self.engine.find(sources, max_lengths, search, n_best, with_scores=with_scores)
        except PositionsError:
            if not self.has_torch_model:
                raise
        translator = self.in_torch  # its positions may have no limit
        with translator._searching(None, 1) as generators:
            found: list[list[Hypothesis]] = translator._find(
                sources,
                max_lengths,
                search,
                n_best=n_best,
                with_scores=with_scores,
                **options | {"generators": generators},
            )
        return found
