"""Runners: one engine with one model, as the parity test uses it. `TorchRunner` is the reference."""

from collections.abc import Sequence
from typing import Protocol

import torch

from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig
from regard.exchange.parity_samples import Sample
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.models.heads import IdentityHead
from regard.pipeline.generator import TextGenerator
from regard.pipeline.search import Beam, make_generator
from regard.pipeline.translator import Translator
from regard.store.model_folder import StoredModel

Tokens = list[list[int]]


class Runner(Protocol):
    """An engine with a model. Generated tokens end with eos if the text ended within its maximum length."""

    engine: str
    version: str
    compute_type: str
    """The type that ran."""
    stops_early: bool
    """Whether its beam search stops when as many hypotheses are finished as the beam is wide (`stop_after`)."""

    def score(self, samples: Sequence[Sample]) -> list[list[float]]:
        """Return the log-probability of each target token.

        For an encoder-only model: the log-probabilities of its head, or the hidden states if it has none, flattened.
        """

    def greedy(self, samples: Sequence[Sample]) -> Tokens | None:
        """Return what greedy search generates; None: the model generates nothing."""

    def beam(self, samples: Sequence[Sample], beam_size: int) -> Tokens | None:
        """Return what beam search generates, with length penalty 1; None: the engine has no beam search."""


class TorchRunner:
    """The reference: PyTorch with our own searches."""

    engine, stops_early, compute_type = "torch", False, "float32"

    def __init__(self, stored: StoredModel) -> None:
        self.version = str(torch.__version__)
        self._model, self._tokenizers = stored.model, stored.tokenizers
        self._pipeline: Translator | TextGenerator | None = None
        model, settings = stored.model, stored.settings
        if isinstance(model, EncoderDecoder) and isinstance(settings, EncoderDecoderConfig):
            settings = settings.model_copy(update={"task": "translate"})  # other tasks search in the same way
            self._pipeline = Translator(model, stored.tokenizers, settings)
        elif isinstance(model, DecoderOnly) and isinstance(settings, DecoderOnlyConfig):
            self._pipeline = TextGenerator(model, stored.tokenizers, settings)

    @torch.inference_mode()
    def score(self, samples: Sequence[Sample]) -> list[list[float]]:
        """Return the log-probability of each target token, or the flattened outputs of an encoder."""
        return [self._score(sample) for sample in samples]

    def _score(self, sample: Sample) -> list[float]:
        model, source = self._model, torch.tensor([sample.source])
        if isinstance(model, EncoderOnly):
            outputs = model(source, None).float()
            has_head = not isinstance(model.head, IdentityHead)
            values: list[float] = (outputs.log_softmax(-1) if has_head else outputs).flatten().tolist()
            return values
        if isinstance(model, EncoderDecoder):
            bos = self._tokenizers.target.specials.bos
            logits = model(source, torch.tensor([[bos, *sample.target[:-1]]]))[0]
        else:
            logits = model(torch.tensor([[*sample.source, *sample.target[:-1]]]))[0, len(sample.source) - 1 :]
        targets = torch.tensor(sample.target)  # (T)
        scores: list[float] = logits.float().log_softmax(-1).gather(1, targets[:, None])[:, 0].tolist()
        return scores

    def greedy(self, samples: Sequence[Sample]) -> Tokens | None:
        """Return what greedy search generates."""
        return self._search(samples, Beam(1))

    def beam(self, samples: Sequence[Sample], beam_size: int, *, stops_early: bool = False) -> Tokens | None:
        """Return what beam search generates, by the exact bound or by the rule of engines that stop early."""
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
