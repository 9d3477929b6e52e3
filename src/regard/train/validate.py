"""How well the model does on text that it never learned from: loss, accuracy, and what it really writes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import torch

from regard.config import model as settings_of
from regard.config.training import Metric, Validation
from regard.data.loader import Loader
from regard.measure.likelihood import bits_per_byte, perplexity
from regard.measure.overlap import bleu, chrf
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.pipeline.limits import max_positions
from regard.pipeline.translator import Translator
from regard.pipeline.writer import TextGenerator
from regard.text.vocabularies import TokenizerPair
from regard.train.corpora import Pair
from regard.train.events import Shown
from regard.train.objective import Objective
from regard.train.precision import Precision, computing

HIGHER: frozenset[Metric] = frozenset({"accuracy", "bleu", "chrf"})
PROMPT = 40  # characters of a text that the model is given to go on from
WRITTEN = 60  # tokens that it writes


@dataclass(frozen=True)
class Scores:
    """What a validation found."""

    values: dict[str, float] = field(default_factory=dict)
    shown: tuple[Shown, ...] = ()
    signatures: dict[str, str] = field(default_factory=dict)


def is_better(metric: Metric, new: float, old: float | None) -> bool:
    """Whether a score is the best so far; what is not a number never is.

    >>> is_better("loss", 1.9, 2.0), is_better("bleu", 30.0, 31.0), is_better("loss", math.nan, None)
    (True, False, False)
    """
    if not math.isfinite(new):
        return False
    return old is None or (new > old if metric in HIGHER else new < old)


class Validator:
    """Scores a model on the validation corpus, always in the same way."""

    def __init__(
        self,
        objective: Objective,
        loader: Loader,
        examples: Sequence[Pair],
        vocabularies: TokenizerPair,
        model: settings_of.AnyModel,
        settings: Validation,
        *,
        precision: Precision,
        seed: int,
    ) -> None:
        self._objective = Objective(objective.model, smoothing=0.0, rows=objective.rows)
        self.loader = loader
        self._examples, self._vocabularies = examples, vocabularies
        self._model, self._settings, self._precision, self._seed = model, settings, precision, seed
        self._bytes: int | None = None
        self._pairs: list[Pair] | None = None  # those that are translated

    def __call__(self) -> Scores:
        """All scores; the model is as it was before."""
        model = self._objective.model
        training = model.training
        model.eval()
        try:
            with torch.inference_mode():
                values = self._read()
            written = self._written()
        finally:
            model.train(training)
        return Scores({**values, **written.values}, written.shown, written.signatures)

    def _read(self) -> dict[str, float]:
        likelihood, right, count = 0.0, 0, 0
        for batch in self.loader.iter_epoch(0):
            with computing(next(self._objective.model.parameters()).device.type, self._precision):
                found = self._objective(batch)
            likelihood += float(found.negative_log_likelihood)
            right += int(found.right)
            count += batch.label_count
        loss = likelihood / max(count, 1)
        values = {"loss": loss, "perplexity": perplexity(likelihood, count), "accuracy": right / max(count, 1)}
        if self._model.task in ("translate", "continue"):
            values["bits_per_byte"] = bits_per_byte(likelihood, self._text_bytes())
        return values

    def _text_bytes(self) -> int:
        """Bytes of the text that must come out, counted once."""
        if self._bytes is None:
            decode = self._vocabularies.target.decode
            texts = (decode(tokens) for tokens in self.loader.iter_targets())
            self._bytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        return self._bytes

    def _written(self) -> Scores:
        model, settings, vocabularies = self._objective.model, self._model, self._vocabularies
        if isinstance(model, EncoderDecoder) and isinstance(settings, settings_of.EncoderDecoder):
            return (
                self._translated(Translator(model, vocabularies, settings))
                if settings.task == "translate"
                else Scores()
            )
        if isinstance(model, DecoderOnly) and isinstance(settings, settings_of.DecoderOnly):
            return (
                self._continued(TextGenerator(model, vocabularies, settings))
                if settings.task == "continue"
                else Scores()
            )
        return Scores()

    def _translated(self, translator: Translator) -> Scores:
        if self._pairs is None:
            wanted = max(self._settings.sentences, self._settings.samples)
            self._pairs = list(islice(filter(self._fits, self._examples), wanted))
        pairs = self._pairs
        if not pairs:
            return Scores()
        tagged = bool(self._vocabularies.source.specials.languages)
        found = translator.translate(
            [pair.source for pair in pairs],
            beam_size=self._settings.beam,
            target_language=[pair.languages[-1] for pair in pairs] if tagged else None,
        )
        outputs = [one.text for one in found]
        references = [pair.target or "" for pair in pairs]
        shown = tuple(
            Shown(pair.source, output, pair.target or "")
            for pair, output in zip(pairs[: self._settings.samples], outputs, strict=False)
        )
        if not self._settings.sentences:
            return Scores({}, shown)
        scores = {"bleu": bleu(outputs, references), "chrf": chrf(outputs, references)}
        values = {name: score.value for name, score in scores.items()}
        return Scores(values, shown, {name: score.signature for name, score in scores.items()})

    def _fits(self, pair: Pair) -> bool:
        """Whether a pair is one that a batch may hold; those that are set aside in training are not translated."""
        if pair.target is None:
            return False
        sides = ((self._vocabularies.source, pair.source), (self._vocabularies.target, pair.target))
        lengths = np.array([[len(words.encode_ids([text])[0])] for words, text in sides])
        return int(self.loader.task.row_lengths(lengths).max()) <= self.loader.order.settings.length_limit

    def _continued(self, writer: TextGenerator) -> Scores:
        shown = []
        limit = max_positions(writer.settings.decoder)
        for pair in self._examples[: self._settings.samples]:
            prompt, rest = pair.source[:PROMPT], pair.source[PROMPT:]
            read = 1 + len(self._vocabularies.source.encode_ids([prompt])[0])
            tokens = WRITTEN if limit is None else min(WRITTEN, limit - read)
            text = "".join(writer.stream(prompt, max_new_tokens=tokens, seed=self._seed)) if tokens > 0 else ""
            shown.append(Shown(prompt, text, rest[: len(text)]))
        return Scores({}, tuple(shown))
