"""Score texts: the log-probability of each token under teacher forcing.

    scorer = regard.load("my-model").make_scorer()
    scorer.score("Zwei Hunde.", "Two dogs.").logprobs

An encoder-decoder scores one text per source. A decoder-only model reads texts longer than `window` tokens in windows
that overlap by half and scores each token once, with the longest context.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, Unpack, overload

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig
from regard.decode.protocol import nan_error
from regard.measure.calibration import NllDerivatives
from regard.models.cpu_decoder import eval_mode
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.inputs import pad
from regard.store.vocabulary_check import check_vocabulary_sizes
from regard.tasks.encoding import as_list, batch_by_length, check_both_lists, check_list, encode_sources
from regard.tasks.results import Translation
from regard.tasks.teacher_forcing import Row, encode_pairs, encode_windows
from regard.text.tokenizer_pair import TokenizerPair

MAX_LOGITS = 1 << 22  # logits in memory at once: positions x vocabulary size


@dataclass(frozen=True)
class ScoredText:
    """A text with the log-probabilities of its tokens."""

    text: str
    tokens: tuple[int, ...]
    """Token ids, eos included."""
    logprobs: tuple[float, ...]
    """Log-probability of each token."""
    best_logprobs: tuple[float, ...]
    """Log-probability of the most probable token at each position."""
    correct: tuple[bool, ...]
    """Whether each token is the most probable one."""

    @property
    def total_logprob(self) -> float:
        """Log-probability of the text."""
        return sum(self.logprobs)

    def __repr__(self) -> str:
        return f"ScoredText(text={self.text!r}, total_logprob={self.total_logprob:.4g}, {len(self.tokens)} tokens)"

    @property
    def byte_count(self) -> int:
        """Number of UTF-8 bytes."""
        return len(self.text.encode("utf-8", "surrogatepass"))


@dataclass
class _TokenScores:
    """Token scores of a text or row, in order."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    best_logprobs: list[float] = field(default_factory=list)
    correct: list[bool] = field(default_factory=list)

    def add(self, scores: "_TokenScores", start: int = 0, end: int | None = None) -> None:
        self.tokens += scores.tokens[start:end]
        self.logprobs += scores.logprobs[start:end]
        self.best_logprobs += scores.best_logprobs[start:end]
        self.correct += scores.correct[start:end]


class ScoreOptions(TypedDict, total=False):
    """Options of `Scorer.score`."""

    target_language: str | Sequence[str] | None
    window: int | None
    batch_tokens: int
    report: Callable[[int], None] | None


class Scorer:
    """Scores texts with a model.

    Args:
        model: The model; it runs in evaluation mode, and the mode of every module is restored.
        tokenizers: The model's tokenizers.
        settings: The model's settings.
        temperature: Divides the logits; 1 does not change the probabilities.
    """

    def __init__(
        self,
        model: EncoderDecoder | DecoderOnly,
        tokenizers: TokenizerPair,
        settings: EncoderDecoderConfig | DecoderOnlyConfig,
        temperature: float = 1.0,
    ) -> None:
        if not 0 < temperature < float("inf"):
            raise RegardError(
                f"The temperature must be above 0 and finite, got {temperature}.",
                hint="Use 1.0 to leave the probabilities unchanged.",
            )
        check_vocabulary_sizes(settings, tokenizers, location="Scorer")
        self.model, self.tokenizers, self.settings = model, tokenizers, settings
        self.temperature = temperature

    def __repr__(self) -> str:
        temperature = "" if self.temperature == 1 else f", temperature={self.temperature:.4g}"
        size = f"{sum(parameter.numel() for parameter in self.model.parameters()):,} parameters"
        return f"Scorer({self.settings.family}, {size}{temperature})"

    @property
    def reads_sources(self) -> bool:
        """Whether a text needs a source."""
        return isinstance(self.settings, EncoderDecoderConfig)

    @overload
    def score(  # type: ignore[overload-overlap]
        self, texts: str, sources: str | None = None, **options: Unpack[ScoreOptions]
    ) -> ScoredText: ...
    @overload
    def score(
        self, texts: Sequence[str], sources: Sequence[str] | None = None, **options: Unpack[ScoreOptions]
    ) -> list[ScoredText]: ...

    def score(
        self,
        texts: str | Sequence[str],
        sources: str | Sequence[str] | None = None,
        *,
        target_language: str | Sequence[str] | None = None,
        window: int | None = None,
        batch_tokens: int = 4096,
        report: Callable[[int], None] | None = None,
    ) -> ScoredText | list[ScoredText]:
        """Score one or several texts.

        Args:
            texts: One or several texts to score.
            sources: The source of each text (encoder-decoder only).
            target_language: Language of the texts, one for all or one for each (multilingual models).
            window: Number of tokens that a decoder-only model reads at once. Default: the model's context
                length, else 1024; at most the number of learned positions.
            batch_tokens: Maximum number of tokens in a batch, padding included.
            report: Called after each batch with its number of rows; a row is a pair or a window.

        Returns:
            The scores of one text, or a list of scores.
        """
        check_both_lists(texts, sources)
        scored_texts, source_texts = as_list(texts), None if sources is None else as_list(sources)
        rows = self.make_rows(scored_texts, source_texts, target_language=target_language, window=window)
        row_scores = self._score_rows(rows, batch_tokens, report)
        text_scores = [_TokenScores() for _ in scored_texts]
        for row, scores in zip(rows, row_scores, strict=True):  # windows are in the order of the text
            text_scores[row.text_index].add(scores)
        results = [
            ScoredText(
                text, tuple(scores.tokens), tuple(scores.logprobs), tuple(scores.best_logprobs), tuple(scores.correct)
            )
            for text, scores in zip(scored_texts, text_scores, strict=True)
        ]
        return results[0] if isinstance(texts, str) else results

    def score_rows(
        self, rows: Sequence[Row], batch_tokens: int = 4096, report: Callable[[int], None] | None = None
    ) -> list[tuple[float, ...]]:
        """Return the log-probabilities of the new labels of each row (see `score` for the arguments)."""
        return [tuple(scores.logprobs) for scores in self._score_rows(rows, batch_tokens, report)]

    def _score_rows(
        self, rows: Sequence[Row], batch_tokens: int, report: Callable[[int], None] | None
    ) -> list[_TokenScores]:
        row_scores = [_TokenScores() for _ in rows]
        with eval_mode(self.model, bypasses=("forward",)), torch.inference_mode():
            for batch, hidden_states, labels in self._iter_batches(rows, batch_tokens):
                batch_scores, start = self._score_tokens(hidden_states, labels), 0
                for index in batch:
                    end = start + len(rows[index].new_labels)
                    row_scores[index].add(batch_scores, start, end)
                    start = end
                if report is not None:
                    report(len(batch))
        return row_scores

    def score_translations(
        self,
        translations: Sequence[Translation],
        sources: Sequence[str],
        *,
        target_language: str | Sequence[str] | None = None,
        batch_tokens: int = 4096,
    ) -> list[tuple[float, ...]]:
        """Return the log-probability of each token of translations, with this scorer's temperature.

        Args:
            translations: Translations; their tokens are scored without encoding the text again.
            sources: The source of each.
            target_language: Language of the translations, one for all or one for each (multilingual models).
            batch_tokens: Maximum number of tokens in a batch, padding included.
        """
        if not isinstance(self.settings, EncoderDecoderConfig):
            raise RegardError("A decoder-only model has no translations.", hint="Use `score`.")
        bos = self.tokenizers.target.specials.bos
        encoded = encode_sources(sources, self.tokenizers, self.settings, target_language)
        rows = [
            Row(number, source, [bos, *translation.tokens[:-1]], list(translation.tokens))
            for number, (source, translation) in enumerate(zip(encoded, translations, strict=True))
            if translation.tokens
        ]
        logprobs: list[tuple[float, ...]] = [()] * len(translations)
        for row, row_logprobs in zip(rows, self.score_rows(rows, batch_tokens), strict=True):
            logprobs[row.text_index] = row_logprobs
        return logprobs

    def curve(
        self,
        texts: Sequence[str],
        sources: Sequence[str] | None = None,
        *,
        target_language: str | Sequence[str] | None = None,
        window: int | None = None,
        batch_tokens: int = 4096,
    ) -> NllDerivatives:
        """Return the derivatives of the texts' negative log-likelihood with respect to the inverse temperature.

        `regard.measure.fit_temperature` uses them for Newton's method. The scorer's own temperature is ignored. The
        model reads the texts once; the last hidden state of each token stays in memory.

        Args:
            texts: Texts to score.
            sources: The source of each text (encoder-decoder only).
            target_language: Language of the texts (multilingual models).
            window: Number of tokens that a decoder-only model reads at once, as for `score`.
            batch_tokens: Maximum number of tokens in a batch, padding included.

        Returns:
            A function that maps the inverse temperature to the first and second derivative.
        """
        with eval_mode(self.model, bypasses=("forward",)), torch.inference_mode():
            rows = self.make_rows(texts, sources, target_language=target_language, window=window)
            batches = list(self._iter_batches(rows, batch_tokens))
        hidden_states = torch.cat([batch_states for _, batch_states, _ in batches])  # (N, D)
        labels = torch.cat([batch_labels for _, _, batch_labels in batches])  # (N)

        @torch.inference_mode()
        def curve(b: float) -> tuple[float, float]:
            slope = curvature = 0.0
            for z, targets in self._iter_logits(hidden_states, labels):  # (n, V), (n)
                p = (b * z).softmax(dim=1)
                mean = (p * z).sum(dim=1, keepdim=True)  # (n, 1)
                slope += float((mean - z.gather(1, targets[:, None])).double().sum())
                curvature += float((p * (z - mean).square()).sum(dim=1).double().sum())
            return slope, curvature

        return curve

    def hidden_states(self, rows: Sequence[Row], batch_tokens: int = 4096) -> Tensor:
        """Return the hidden states from which the new labels of all rows are predicted, in order, (N, D)."""
        row_states: list[Tensor] = [torch.empty(0)] * len(rows)
        with eval_mode(self.model, bypasses=("forward",)), torch.inference_mode():
            for batch, hidden_states, _ in self._iter_batches(rows, batch_tokens):
                parts = hidden_states.split([len(rows[index].new_labels) for index in batch])
                for index, states in zip(batch, parts, strict=True):
                    row_states[index] = states
        return torch.cat(row_states)

    def make_rows(
        self,
        texts: Sequence[str],
        sources: Sequence[str] | None = None,
        *,
        target_language: str | Sequence[str] | None = None,
        window: int | None = None,
    ) -> list[Row]:
        """Encode texts as rows of model input and labels, in their order (see `score` for the arguments)."""
        check_list(texts, "text", "score")
        check_list(sources or (), "source", "score")
        if not texts:
            raise RegardError("No texts were given.", hint="Give at least one text.")
        if isinstance(self.settings, DecoderOnlyConfig):
            if sources is not None:
                raise RegardError("A decoder-only model does not take sources.", hint="Leave sources out.")
            if target_language is not None:
                raise RegardError("A decoder-only model has no target language.", hint="Leave target_language out.")
            return encode_windows(texts, self.tokenizers, self.settings, window)
        if sources is None or len(sources) != len(texts):
            source_count = "no sources" if sources is None else pluralize(len(sources), "source")
            raise RegardError(f"{pluralize(len(texts), 'text')} but {source_count}.", hint="Give one source per text.")
        if window is not None:
            raise RegardError("An encoder-decoder does not support a window.", hint="Leave window out.")
        return encode_pairs(texts, sources, self.tokenizers, self.settings, target_language)

    def _iter_batches(self, rows: Sequence[Row], batch_tokens: int) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Yield batches: row indices, hidden states (N, D) and labels (N) of all scored tokens."""
        device = next(self.model.parameters()).device
        for batch in batch_by_length([max(len(row.source), len(row.inputs)) for row in rows], batch_tokens):
            batch_rows = [rows[index] for index in batch]
            hidden_states = self._hidden_states(batch_rows, device)  # (B, T, D)
            scored_states = [
                hidden_states[number, row.overlap : len(row.labels)] for number, row in enumerate(batch_rows)
            ]
            labels = torch.tensor([label for row in batch_rows for label in row.new_labels], device=device)  # (N)
            yield batch, torch.cat(scored_states), labels

    def _hidden_states(self, rows: list[Row], device: torch.device) -> Tensor:
        inputs, _ = pad([row.inputs for row in rows], self.tokenizers.target.specials.pad, device)  # (B, T)
        if isinstance(self.model, DecoderOnly):
            return self.model.hidden_states(inputs)
        source, valid = pad([row.source for row in rows], self.tokenizers.source.specials.pad, device)  # (B, S)
        return self.model.hidden_states(source, inputs, valid)

    def _iter_logits(self, hidden_states: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits (n, V) and labels (n), at most `MAX_LOGITS` logits at a time to bound memory."""
        chunk_size = max(1, MAX_LOGITS // self.tokenizers.target.size)
        for chunk, chunk_labels in zip(hidden_states.split(chunk_size), labels.split(chunk_size), strict=True):
            yield self.model.head(chunk[None])[0].float(), chunk_labels

    def _score_tokens(self, hidden_states: Tensor, labels: Tensor) -> _TokenScores:
        scores = _TokenScores()
        for logits, targets in self._iter_logits(hidden_states, labels):
            logprobs = (logits / self.temperature).log_softmax(dim=1)  # (n, V)
            best = logprobs.max(dim=1)
            target_logprobs = logprobs.gather(1, targets[:, None])[:, 0]
            correct = best.indices == targets
            scores.add(_TokenScores(targets.tolist(), target_logprobs.tolist(), best.values.tolist(), correct.tolist()))
        if any(logprob != logprob for logprob in scores.logprobs):
            raise nan_error()
        return scores
