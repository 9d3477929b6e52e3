"""A Transformer without residual connections, and without norms."""

import tempfile
from itertools import product
from pathlib import Path

from examples.before.models import transformer_translator
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.tatoeba import read_pairs
from examples.before.training import Change, Training, train_translator
from torch import Tensor, nn

from regard.base.formatting import pluralize
from regard.models.build import AnyModel as AnyNetwork
from regard.nn.context import Context
from regard.nn.layer import Residual, Sublayer


class Chain(Residual):
    """A sublayer without the connection around it: norm, then sublayer."""

    def forward(self, x: Tensor, sublayer: Sublayer, context: Context) -> Tensor:
        """Return sublayer(norm(x))."""
        return self.dropout(sublayer(self.norm(x), context))


class NoNorm(nn.LayerNorm):
    """A norm that changes nothing; its weights stay and learn nothing."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        """Return the input."""
        return input


def make_change(has_residual: bool, has_norm: bool) -> Change:
    """Return the function that takes residual connections or norms out of a model."""

    def change(model: AnyNetwork) -> None:
        for module in list(model.modules()):
            if isinstance(module, Residual) and not has_residual:
                module.__class__ = Chain
            if isinstance(module, nn.LayerNorm) and not has_norm:
                module.__class__ = NoNorm

    return change


def run(options: Options) -> Report:
    """Train a Transformer with and without each, at three depths."""
    depths = [1, 2] if options.small else [1, 2, 4]
    count, tests, width, steps = (60, 5, 16, 3) if options.small else (10_000, 300, 64, 400)
    train, test = read_pairs(options, count, tests)
    rows, lines = [], {}
    for has_residual, has_norm in product((True, False), repeat=2):
        name = f"{'with' if has_residual else 'without'} residual, {'with' if has_norm else 'without'} norm"
        losses = []
        for layers in depths:
            training = Training(steps, 2048, peak=0.003, vocabulary=300 if options.small else 3000)
            with tempfile.TemporaryDirectory() as folder:
                model, change = transformer_translator(width, layers), make_change(has_residual, has_norm)
                trained = train_translator(Path(folder), train, test, model, training, change)
            losses.append(trained.validation_loss())
        lines[name] = losses
        rows.append([name, *(f"{loss:.3f}" for loss in losses)])
    return Report(
        "Ablations: residual connections and norms",
        f"Pre-norm Transformers of width {width} on {count:,} Tatoeba pairs (en-de), {steps:,} steps of 2,048 "
        f"tokens with gradients clipped to norm 1; loss per token of {tests} test pairs by the layers of each stack.",
        ["model", *(pluralize(layers, "layer") for layers in depths)],
        rows,
        Chart("layers", "test loss", depths, lines),
    )
