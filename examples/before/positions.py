"""Position encodings that the lectures reject beside those that models use, on longer texts than in training.

The rejected ones are modules of this file, not kinds of Regard. `normalized` divides by the length of the text, which a
decoder that generates does not know: the same token would get another position at every step, and nothing that the KV
cache holds would stay true. So it is in the encoder only, and the decoder has sinusoids.
"""

import math
import tempfile
from pathlib import Path

import torch
from examples.before.models import transformer_translator
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.tatoeba import read_pairs
from examples.before.training import MUON, Change, Pairs, Trained, Training, train_translator
from torch import Tensor, nn

from regard.base.errors import ShapeError
from regard.models.build import AnyModel as AnyNetwork
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.positions import Position, Sinusoidal


class Index(Position):
    """The number of the position is added to every dimension: unbounded, soon larger than any embedding."""

    def on_input(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add p."""
        return x + positions[..., None]


class Normalized(Position):
    """p divided by the length: bounded, but a distance of one token differs from text to text."""

    def on_input(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add p / (n - 1)."""
        return x + (positions / max(1, x.size(1) - 1))[..., None]


class Binary(Position):
    """The bits of p, the lowest first: unique and bounded, but neighbors may differ in every bit."""

    def on_input(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add bit i mod 16 to dimension i."""
        bits = torch.arange(x.size(-1), device=x.device) % 16
        return x + (positions[..., None] >> bits & 1)


class Exponential(Position):
    """2^p: a distance is a factor everywhere, but float32 ends at p = 127."""

    def on_input(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add 2^p."""
        return x + torch.exp2(positions.float())[..., None]


class Concatenated(Position):
    """Sinusoids in the second half of the dimensions instead of added to all: half the width is left for tokens."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.sinusoids = Sinusoidal(width // 2, 10000.0, interleaved=False)

    def on_input(self, x: Tensor, positions: Tensor) -> Tensor:
        """Replace the second half by the sinusoids."""
        encodings = self.sinusoids.encode(positions).to(x.dtype)
        return torch.cat((x[..., : -encodings.size(-1)], encodings.expand(x.size(0), -1, -1)), dim=-1)


REJECTED = ("index", "normalized", "binary", "exponential", "concatenated")
KINDS = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative", *REJECTED)


def make_position(kind: str, width: int) -> Position:
    """Return the module of a rejected kind."""
    if kind == "concatenated":
        return Concatenated(width)
    return {"index": Index, "normalized": Normalized, "binary": Binary, "exponential": Exponential}[kind]()


def make_change(kind: str, width: int) -> Change | None:
    """Return the function that gives a model the position encoding of a rejected kind."""
    if kind not in REJECTED:
        return None

    def change(model: AnyNetwork) -> None:
        assert isinstance(model, EncoderDecoder)  # noqa: S101 - a translator
        model.encoder.position = make_position(kind, width)
        if kind != "normalized":
            model.decoder.position = make_position(kind, width)

    return change


def join(pairs: Pairs, count: int) -> Pairs:
    """Join `count` successive pairs to a longer one."""
    groups = [pairs[start : start + count] for start in range(0, len(pairs) - count + 1, count)]
    return [(" ".join(pair[0] for pair in group), " ".join(pair[1] for pair in group)) for group in groups]


@torch.no_grad()
def compute_loss(trained: Trained, pairs: Pairs) -> float:
    """Return the loss per token of pairs; infinity where the model cannot read them."""
    model, tokenizers = trained.model, trained.data.tokenizers
    assert isinstance(model, EncoderDecoder)  # noqa: S101 - a translator
    total, tokens = 0.0, 0
    with eval_mode(model):
        for source, target in pairs:
            specials = tokenizers.target.specials
            source_ids = [*tokenizers.source.encode(source).ids, tokenizers.source.specials.eos]
            target_ids = [*tokenizers.target.encode(target).ids, specials.eos]
            inputs = torch.tensor([[specials.bos, *target_ids[:-1]]])
            try:
                logits = model(torch.tensor([source_ids]), inputs)[0]  # (T, vocabulary)
            except ShapeError:  # learned positions have an end
                return math.inf
            total += nn.functional.cross_entropy(logits, torch.tensor(target_ids), reduction="sum").item()
            tokens += len(target_ids)
    return total / tokens


def run(options: Options) -> Report:
    """Train a Transformer with each kind on single pairs; test it on single, double and fourfold ones."""
    count, tests, width, steps = (60, 8, 16, 3) if options.small else (10_000, 400, 64, 400)
    train, test = read_pairs(options, count, tests)
    longest = max(len(pair[0].split()) for pair in train)
    rows, lines = [], {}
    for kind in REJECTED if options.small else KINDS:
        training = Training(steps, 2048, 0.005, 300 if options.small else 3000, settings=MUON)
        named = kind if kind not in REJECTED else "sinusoidal" if kind == "normalized" else "none"
        position = {"kind": named} | ({"length": 128} if named == "learned" else {})
        changes = {f"{stack}.position": position for stack in ("encoder", "decoder")}
        with tempfile.TemporaryDirectory() as folder:
            model = transformer_translator(width, changes=changes)
            change = make_change(kind, width)
            trained = train_translator(Path(folder), train, test, model, training, change)
        lines[kind] = [compute_loss(trained, join(test, times)) for times in (1, 2, 4)]
        rows.append([kind, *(f"{loss:.2f}" if math.isfinite(loss) else str(loss) for loss in lines[kind])])
    return Report(
        "Positions: kinds that the lectures reject, and longer texts",
        f"Transformers of width {width} on {count:,} Tatoeba pairs (en-de, at most {longest} words), {steps:,} "
        f"steps of 2,048 tokens. Loss per token of {tests} test pairs: one by one, and two or four joined to one "
        "text of twice or four times the length. `normalized` is in the encoder only: a decoder does not know the "
        "length of what it generates.",
        ["positions", "1 x", "2 x", "4 x"],
        rows,
        Chart("pairs joined", "loss", [1, 2, 4], lines, log_x=True),
    )
