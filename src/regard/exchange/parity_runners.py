"""Runners for the parity test: one engine with one model. `TorchRunner` is the reference."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig
from regard.exchange.parity_samples import Sample
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.store.model_folder import StoredModel
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.search import Beam, make_generator
from regard.tasks.translation.translator import Translator

Tokens = list[list[int]]


class Runner(Protocol):
    """An engine with a model. Generated tokens end with eos if the text ended within its maximum length."""

    engine: str
    version: str
    compute_type: str
    """The number type of the weights."""
    stops_early: bool
    """Whether beam search stops when beam-size hypotheses are finished (`stop_after`)."""

    def score(self, samples: Sequence[Sample]) -> list[list[float]]:
        """Return the log-probability of each target token.

        For an encoder-only model: the log-probabilities of its head, or the hidden states if it has none, flattened.
        """

    def beam(self, samples: Sequence[Sample], beam_size: int) -> Tokens | None:
        """Return the outputs of beam search with length penalty 1; None for an encoder."""


class LogitsRunner:
    """An engine that returns logits as tensors, which are scored here."""

    stops_early = False
    family: str
    bos: int
    has_head = True
    """Whether an encoder-only model returns logits, not hidden states."""

    def compute(self, source: Sequence[int], target: Sequence[int] | None) -> Tensor:
        """Return the logits (T, V) of a row, or the outputs of an encoder-only model.

        Args:
            source: What the encoder reads; for a decoder-only model, the row itself.
            target: What the decoder of an encoder-decoder reads.
        """
        raise NotImplementedError

    @torch.inference_mode()
    def score(self, samples: Sequence[Sample]) -> list[list[float]]:
        """Return the log-probability of each target token, or the flattened outputs of an encoder."""
        return [self._score(sample).tolist() for sample in samples]

    def _score(self, sample: Sample) -> Tensor:
        if self.family == "encoder_only":
            outputs = self.compute(sample.source, None).float()
            return (outputs.log_softmax(-1) if self.has_head else outputs).flatten()
        if self.family == "encoder_decoder":
            logits = self.compute(sample.source, [self.bos, *sample.target[:-1]])
        else:
            logits = self.compute([*sample.source, *sample.target[:-1]], None)[len(sample.source) - 1 :]
        targets = torch.tensor(sample.target)[:, None]  # (T, 1)
        return logits.float().log_softmax(-1).gather(1, targets)[:, 0]


class TorchRunner(LogitsRunner):
    """The reference: PyTorch with our own searches."""

    engine, compute_type = "torch", "float32"

    def __init__(self, stored: StoredModel) -> None:
        self.version, self.family = str(torch.__version__), stored.settings.family
        self.bos, self.has_head = stored.tokenizers.target.specials.bos, stored.settings.head.kind != "none"
        self._model = stored.model
        self._pipeline: Translator | TextGenerator | None = None
        model, settings = stored.model, stored.settings
        if isinstance(model, EncoderDecoder) and isinstance(settings, EncoderDecoderConfig):
            settings = settings.model_copy(update={"task": "translation"})  # other tasks search the same way
            self._pipeline = Translator(model, stored.tokenizers, settings)
        elif isinstance(model, DecoderOnly) and isinstance(settings, DecoderOnlyConfig):
            self._pipeline = TextGenerator(model, stored.tokenizers, settings)

    def compute(self, source: Sequence[int], target: Sequence[int] | None) -> Tensor:
        """Return the logits (T, V) of a row, or the outputs of an encoder-only model."""
        rows = torch.tensor([source])
        if isinstance(self._model, EncoderDecoder):
            return self._model(rows, torch.tensor([target]))[0]
        return self._model(rows, None)[0]

    def beam(self, samples: Sequence[Sample], beam_size: int, *, stops_early: bool = False) -> Tokens | None:
        """Return the outputs of beam search, with the exact stop bound or the early-stop rule of other engines."""
        return self._search(samples, Beam(beam_size, stop_after=beam_size if stops_early else None))

    @torch.inference_mode()
    def _search(self, samples: Sequence[Sample], search: Beam) -> Tokens | None:
        pipeline, generator = self._pipeline, make_generator(1, torch.device("cpu"))
        if pipeline is None:
            return None
        with pipeline.prepared():
            if isinstance(pipeline, Translator):
                inputs = pipeline.make_search_input(
                    [list(sample.source) for sample in samples],
                    [sample.max_new_tokens for sample in samples],
                    generator,
                )
                return [list(hypotheses[0].tokens) for hypotheses in search.find(inputs)]
            outputs = []
            for sample in samples:
                prompt = pipeline.make_search_input([list(sample.source)], sample.max_new_tokens, generator)
                outputs.append(list(search.find(prompt)[0][0].tokens))
            return outputs
