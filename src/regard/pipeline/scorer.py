"""How likely a model finds texts that are given: teacher forcing, every token told the true ones before it.

    scorer = Scorer.load("my-model")
    scorer.score(["Zwei Hunde."], sources=["Two dogs."])[0].logs

An encoder-decoder scores a text for each source. A decoder-only model scores texts; one that is longer than `window`
tokens is read in windows that overlap by half, each token scored once, where it sees the most.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.decode.protocol import nan_error
from regard.measure.calibration import NllDerivatives
from regard.models.cpu_decoder import eval_mode
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.pipeline.batches import batch_by_length
from regard.pipeline.encoding import padded
from regard.pipeline.ensemble import EnsembleTranslator
from regard.pipeline.generator import TextGenerator
from regard.pipeline.teacher_forcing import Row, encode_pairs, encode_windows
from regard.pipeline.translator import Translator
from regard.store.calibration import read_temperature
from regard.store.model_folder import check_vocabulary_sizes, read_model
from regard.text.tokenizer_pair import TokenizerPair

MAX_LOGITS = 1 << 22  # logits that are held at once: places x words


@dataclass(frozen=True)
class ScoredText:
    """A text as a model sees it."""

    text: str
    tokens: tuple[int, ...]
    """END included."""
    logprobs: tuple[float, ...]
    """The log-probability of each token."""
    best_logprobs: tuple[float, ...]
    """The log-probability of the likeliest token at each place..."""
    correct: tuple[bool, ...]
    """...and whether it was the text's own."""

    @property
    def total_logprob(self) -> float:
        """The log-probability of the whole text."""
        return sum(self.logprobs)

    @property
    def byte_count(self) -> int:
        """Bytes of UTF-8."""
        return len(self.text.encode("utf-8", "surrogatepass"))


@dataclass
class _TokenScores:
    """What was found about the tokens of a text, or of a row, in their order."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    best_logprobs: list[float] = field(default_factory=list)
    correct: list[bool] = field(default_factory=list)

    def add(self, scores: "_TokenScores", start: int = 0, end: int | None = None) -> None:
        self.tokens += scores.tokens[start:end]
        self.logprobs += scores.logprobs[start:end]
        self.best_logprobs += scores.best_logprobs[start:end]
        self.correct += scores.correct[start:end]


class Scorer:
    """Log-probabilities of given texts; `temperature` divides the logits."""

    def __init__(
        self,
        model: EncoderDecoder | DecoderOnly,
        tokenizers: TokenizerPair,
        settings: settings_of.EncoderDecoder | settings_of.DecoderOnly,
        temperature: float = 1.0,
    ) -> None:
        if settings.task not in ("translate", "continue"):
            raise RegardError(
                f"A model for the task '{settings.task}' cannot score texts.",
                fix="Use one that translates or writes on.",
            )
        if not 0 < temperature < float("inf"):
            raise RegardError(f"There is no temperature of {temperature}.", fix="Use one above 0.")
        check_vocabulary_sizes(settings, tokenizers, where="Scorer")
        self.model, self.tokenizers, self.settings = model, tokenizers, settings
        self.temperature = temperature

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> "Scorer":
        """The scorer of a model's folder, with the temperature that was fitted for it, if one was."""
        stored = read_model(Path(folder))
        model, settings = stored.model.to(device), stored.settings
        if isinstance(model, EncoderDecoder | DecoderOnly) and not isinstance(settings, settings_of.EncoderOnly):
            return cls(model, stored.tokenizers, settings, read_temperature(stored.path))
        raise RegardError(
            f"A model of the family '{settings.family}' gives no text a probability.",
            where=str(stored.path),
            fix="Use one that translates or writes on.",
        )

    @classmethod
    def from_pipeline(cls, pipeline: Translator | TextGenerator, temperature: float = 1.0) -> "Scorer":
        """The scorer of a model that is loaded already."""
        if isinstance(pipeline, EnsembleTranslator):
            raise RegardError("Several models give different probabilities.", fix="Score with one of them.")
        return cls(pipeline.model, pipeline.tokenizers, pipeline.settings, temperature)

    def score(
        self,
        texts: Sequence[str],
        sources: Sequence[str] | None = None,
        *,
        target_language: str | Sequence[str] | None = None,
        window: int | None = None,
        batch_tokens: int = 4096,
        report: Callable[[int], None] | None = None,
    ) -> list[ScoredText]:
        """One result for each text, in their order; an encoder-decoder needs a source for each.

        `into` names the language that is written, as for `Translator.translate`. `window` is how many tokens of a text
        a decoder-only model reads at once: 1024 if not given, or as many positions as it has learned. `report` is told
        how many rows were read, after each batch: a row is a pair, or a window.
        """
        rows = self.make_rows(texts, sources, target_language=target_language, window=window)
        row_scores = [_TokenScores() for _ in rows]
        with eval_mode(self.model), torch.inference_mode():
            for batch, hidden_states, labels in self._iter_batches(rows, batch_tokens):
                batch_scores, start = self._score_tokens(hidden_states, labels), 0
                for index in batch:
                    end = start + len(rows[index].new_labels)
                    row_scores[index].add(batch_scores, start, end)
                    start = end
                if report is not None:
                    report(len(batch))
        text_scores = [_TokenScores() for _ in texts]
        for row, scores in zip(rows, row_scores, strict=True):  # the windows of a text come in its order
            text_scores[row.text_index].add(scores)
        return [
            ScoredText(
                text, tuple(scores.tokens), tuple(scores.logprobs), tuple(scores.best_logprobs), tuple(scores.correct)
            )
            for text, scores in zip(texts, text_scores, strict=True)
        ]

    def curve(
        self,
        texts: Sequence[str],
        sources: Sequence[str] | None = None,
        *,
        target_language: str | Sequence[str] | None = None,
        window: int | None = None,
        batch_tokens: int = 4096,
    ) -> NllDerivatives:
        """What `regard.measure.fit_temperature` descends: the surprise at these texts, whatever `temperature` is.

        The model reads once; what its last layer says, a vector for each token, is kept.
        """
        with eval_mode(self.model), torch.inference_mode():
            batches = list(
                self._iter_batches(
                    self.make_rows(texts, sources, target_language=target_language, window=window), batch_tokens
                )
            )
        hidden_states, labels = (
            torch.cat([tensor for _, tensor, _ in batches]),
            torch.cat([tensor for _, _, tensor in batches]),
        )

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

    def make_rows(
        self,
        texts: Sequence[str],
        sources: Sequence[str] | None = None,
        *,
        target_language: str | Sequence[str] | None = None,
        window: int | None = None,
    ) -> list[Row]:
        """What the model will read, in the order of the texts."""
        if isinstance(texts, str) or isinstance(sources, str):
            raise RegardError("One text was given, where a list is expected.", fix="Put it into a list.")
        if not texts:
            raise RegardError("There is nothing to score.", fix="Give one text at least.")
        if isinstance(self.settings, settings_of.DecoderOnly):
            if sources is not None:
                raise RegardError("This model reads no sources.", fix="Give it the whole texts.")
            if target_language is not None:
                raise RegardError("This model goes on in the language of its text.", fix="Leave `into` out.")
            return encode_windows(texts, self.tokenizers, self.settings, window)
        if sources is None or len(sources) != len(texts):
            count = "no" if sources is None else str(len(sources))
            raise RegardError(f"{len(texts)} texts have {count} sources.", fix="Give one source for each text.")
        if window is not None:
            raise RegardError("A translator reads a pair as a whole.", fix="Leave `window` out.")
        return encode_pairs(texts, sources, self.tokenizers, self.settings, target_language)

    def _iter_batches(self, rows: list[Row], batch_tokens: int) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Batches: which rows, and of all their tokens that count the vectors (N, D) and the labels (N)."""
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
        inputs, _ = padded([row.inputs for row in rows], self.tokenizers.target.specials.pad, device)  # (B, T)
        if isinstance(self.model, DecoderOnly):
            return self.model.hidden_states(inputs)
        source, valid = padded([row.source for row in rows], self.tokenizers.source.specials.pad, device)  # (B, S)
        return self.model.hidden_states(source, inputs, valid)

    def _iter_logits(self, hidden_states: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits (n, V) and labels (n), no more of them at once than memory likes."""
        chunk_size = max(1, MAX_LOGITS // self.tokenizers.target.size)
        for chunk, chunk_labels in zip(hidden_states.split(chunk_size), labels.split(chunk_size), strict=True):
            yield self.model.head(chunk).float(), chunk_labels

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
