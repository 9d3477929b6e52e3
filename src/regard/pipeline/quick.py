"""A model while it writes: without dropout, and laid out for steps of one token."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from regard.decode.protocol import Step
from regard.models.cpu_decoder import CpuDecoder
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.pipeline.quiet import eval_mode


class LazyCpuDecoder:
    """Lays a model out once, and anew when its weights have changed.

    While the model learns, nothing of the lay-out is kept from one use to the next.
    """

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        self._model = model
        self._decoder: CpuDecoder | None = None

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """In here `step` may be asked for. (A generator must not switch gradients off: callers do.)"""
        was_training = self._model.training
        with eval_mode(self._model):
            if was_training or self._decoder is None or not self._decoder.fits():
                with torch.inference_mode():
                    self._decoder = CpuDecoder(self._model)
            try:
                yield
            finally:
                if was_training:
                    self._decoder = None

    @property
    def step(self) -> Step[Any]:
        """As the model's own, and quicker."""
        assert self._decoder is not None  # noqa: S101 - `ready` has laid it out
        return self._decoder.step
