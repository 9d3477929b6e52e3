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
from regard.decode.step import nan_error
from regard.measure.calibration import NllDerivatives
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.pipeline.batches import by_length
from regard.pipeline.forced import Row, pairs_of, windows_of
from regard.pipeline.quiet import quiet
from regard.pipeline.sources import padded
from regard.pipeline.temperature import read_temperature
from regard.pipeline.together import Together
from regard.pipeline.translator import Translator
from regard.pipeline.writer import Writer
from regard.store.model_folder import check_vocabulary_sizes, read_model
from regard.text.vocabularies import TokenizerPair

CELLS = 1 << 22  # logits that are held at once: places x words


@dataclass(frozen=True)
class Scored:
    """A text as a model sees it."""

    text: str
    tokens: tuple[int, ...]
    """END included."""
    logs: tuple[float, ...]
    """The log-probability of each token."""
    best: tuple[float, ...]
    """The log-probability of the likeliest token at each place..."""
    right: tuple[bool, ...]
    """...and whether it was the text's own."""

    @property
    def total(self) -> float:
        """The log-probability of the whole text."""
        return sum(self.logs)

    @property
    def size(self) -> int:
        """Bytes of UTF-8."""
        return len(self.text.encode("utf-8", "surrogatepass"))


@dataclass
class _Judged:
    """What was found about the tokens of a text, or of a row, in their order."""

    tokens: list[int] = field(default_factory=list)
    logs: list[float] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)

    def add(self, other: "_Judged", begin: int = 0, end: int | None = None) -> None:
        self.tokens += other.tokens[begin:end]
        self.logs += other.logs[begin:end]
        self.best += other.best[begin:end]
        self.right += other.right[begin:end]


class Scorer:
    """Log-probabilities of given texts; `temperature` divides the logits."""

    def __init__(
        self,
        model: EncoderDecoder | DecoderOnly,
        vocabularies: TokenizerPair,
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
        check_vocabulary_sizes(settings, vocabularies, where="Scorer")
        self.model, self.vocabularies, self.settings = model, vocabularies, settings
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
    def of(cls, user: Translator | Writer, temperature: float = 1.0) -> "Scorer":
        """The scorer of a model that is loaded already."""
        if isinstance(user, Together):
            raise RegardError("Several models give different probabilities.", fix="Score with one of them.")
        return cls(user.model, user.vocabularies, user.settings, temperature)

    def score(
        self,
        texts: Sequence[str],
        sources: Sequence[str] | None = None,
        *,
        into: str | Sequence[str] | None = None,
        window: int | None = None,
        batch_tokens: int = 4096,
        report: Callable[[int], None] | None = None,
    ) -> list[Scored]:
        """One result for each text, in their order; an encoder-decoder needs a source for each.

        `into` names the language that is written, as for `Translator.translate`. `window` is how many tokens of a text
        a decoder-only model reads at once: 1024 if not given, or as many positions as it has learned. `report` is told
        how many rows were read, after each batch: a row is a pair, or a window.
        """
        rows = self.rows(texts, sources, into=into, window=window)
        judged = [_Judged() for _ in rows]
        with quiet(self.model), torch.inference_mode():
            for batch, vectors, labels in self._read(rows, batch_tokens):
                all_of_them, begin = self._judge(vectors, labels), 0
                for place in batch:
                    end = begin + len(rows[place].new)
                    judged[place].add(all_of_them, begin, end)
                    begin = end
                if report is not None:
                    report(len(batch))
        joined = [_Judged() for _ in texts]
        for row, one in zip(rows, judged, strict=True):  # the windows of a text come in its order
            joined[row.text].add(one)
        return [
            Scored(text, tuple(one.tokens), tuple(one.logs), tuple(one.best), tuple(one.right))
            for text, one in zip(texts, joined, strict=True)
        ]

    def curve(
        self,
        texts: Sequence[str],
        sources: Sequence[str] | None = None,
        *,
        into: str | Sequence[str] | None = None,
        window: int | None = None,
        batch_tokens: int = 4096,
    ) -> NllDerivatives:
        """What `regard.measure.fit_temperature` descends: the surprise at these texts, whatever `temperature` is.

        The model reads once; what its last layer says, a vector for each token, is kept.
        """
        with quiet(self.model), torch.inference_mode():
            read = list(self._read(self.rows(texts, sources, into=into, window=window), batch_tokens))
        vectors, labels = torch.cat([some for _, some, _ in read]), torch.cat([some for _, _, some in read])

        @torch.inference_mode()
        def curve(b: float) -> tuple[float, float]:
            slope = bend = 0.0
            for z, right in self._logits(vectors, labels):  # (n, V), (n)
                p = (b * z).softmax(dim=1)
                mean = (p * z).sum(dim=1, keepdim=True)  # (n, 1)
                slope += float((mean - z.gather(1, right[:, None])).double().sum())
                bend += float((p * (z - mean).square()).sum(dim=1).double().sum())
            return slope, bend

        return curve

    def rows(
        self,
        texts: Sequence[str],
        sources: Sequence[str] | None = None,
        *,
        into: str | Sequence[str] | None = None,
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
            if into is not None:
                raise RegardError("This model goes on in the language of its text.", fix="Leave `into` out.")
            return windows_of(texts, self.vocabularies, self.settings, window)
        if sources is None or len(sources) != len(texts):
            count = "no" if sources is None else str(len(sources))
            raise RegardError(f"{len(texts)} texts have {count} sources.", fix="Give one source for each text.")
        if window is not None:
            raise RegardError("A translator reads a pair as a whole.", fix="Leave `window` out.")
        return pairs_of(texts, sources, self.vocabularies, self.settings, into)

    def _read(self, rows: list[Row], batch_tokens: int) -> Iterator[tuple[list[int], Tensor, Tensor]]:
        """Batches: which rows, and of all their tokens that count the vectors (N, D) and the labels (N)."""
        device = next(self.model.parameters()).device
        for batch in by_length([max(len(row.source), len(row.reads)) for row in rows], batch_tokens):
            some = [rows[place] for place in batch]
            vectors = self._vectors(some, device)  # (B, T, D)
            counted = [vectors[number, row.seen : len(row.labels)] for number, row in enumerate(some)]
            labels = torch.tensor([label for row in some for label in row.new], device=device)  # (N)
            yield batch, torch.cat(counted), labels

    def _vectors(self, rows: list[Row], device: torch.device) -> Tensor:
        reads, _ = padded([row.reads for row in rows], self.vocabularies.target.specials.pad, device)  # (B, T)
        if isinstance(self.model, DecoderOnly):
            return self.model.hidden_states(reads)
        source, real = padded([row.source for row in rows], self.vocabularies.source.specials.pad, device)  # (B, S)
        return self.model.hidden_states(source, reads, real)

    def _logits(self, vectors: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Logits (n, V) and labels (n), no more of them at once than memory likes."""
        size = max(1, CELLS // self.vocabularies.target.size)
        for some, right in zip(vectors.split(size), labels.split(size), strict=True):
            yield self.model.head(some).float(), right

    def _judge(self, vectors: Tensor, labels: Tensor) -> _Judged:
        judged = _Judged()
        for logits, wanted in self._logits(vectors, labels):
            logs = (logits / self.temperature).log_softmax(dim=1)  # (n, V)
            best = logs.max(dim=1)
            own = logs.gather(1, wanted[:, None])[:, 0]
            right = best.indices == wanted
            judged.add(_Judged(wanted.tolist(), own.tolist(), best.values.tolist(), right.tolist()))
        if any(log != log for log in judged.logs):
            raise nan_error()
        return judged
