"""A recurrent encoder and self-attention behind the same interface."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from regard.config.codec import preset
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder


@torch.no_grad()
def show_interface() -> Iterator[str]:
    """An RNN encoder replaced by self-attention: equal shapes, weights shared over time, other dependencies."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(8, 100, (1, 50), generator=generator)
    later = tokens.clone()
    later[0, 10] = 7
    yield "An encoder of one layer, d = 128, reads 5 and 50 tokens; then token 10 changes:\n"
    yield "encoder          parameters  output of 5  output of 50  vectors before 10 that change  after 10"
    for name, changes in (
        ("RNN", {"encoder.kind": "recurrent", "encoder.cell": "rnn", "encoder.bidirectional": False}),
        ("RNN, two ways", {"encoder.kind": "recurrent", "encoder.cell": "rnn", "encoder.bidirectional": True}),
        ("self-attention", {}),
    ):
        settings = preset("tiny", {"source.vocabulary": 100, "encoder.layers": 1, **changes})
        model: EncoderDecoder = build(settings, seed=1).eval()

        def encode(ids: Tensor, model: EncoderDecoder = model) -> Tensor:
            return model.encode(ids)[0][0]  # (T, 128)

        sizes = [" x ".join(map(str, encode(tokens[:, :length]).shape)) for length in (5, 50)]
        is_changed = (encode(tokens) - encode(later)).abs().amax(dim=-1) > 1e-7
        count = sum(parameter.numel() for parameter in model.encoder.parameters())
        before, after = int(is_changed[:10].sum()), int(is_changed[11:].sum())
        yield f"{name:14} {count:12,}  {sizes[0]:11}  {sizes[1]:12}  {before:29}  {after:8}"
    yield "\nThe RNN uses the same weights at every step, so longer texts need no more of them, and its state carries a"
    yield "change only to later tokens. The decoder reads either output as its memory."


SUBJECTS: dict[str, Callable[[], Iterator[str]]] = {"interface": show_interface}
