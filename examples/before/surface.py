"""Residual connections make the loss smoother: the loss around a trained model, along random directions."""

import tempfile
from pathlib import Path

import torch
from examples.before.ablations import make_change
from examples.before.models import transformer_translator
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.tatoeba import read_pairs
from examples.before.training import Trained, Training, train_translator
from torch import Tensor, nn

Direction = dict[nn.Parameter, Tensor]


def sample_direction(model: nn.Module, seed: int) -> Direction:
    """Sample a direction with the size of the weights (Li et al. 2018): each row of a matrix as long as that row.

    Otherwise a model with larger weights would look smoother only because the same step is a smaller part of them.
    Vectors (biases, norms) stay as they are.
    """
    generator = torch.Generator().manual_seed(seed)
    direction = {}
    for parameter in model.parameters():
        if parameter.dim() > 1:
            random = torch.randn(parameter.shape, generator=generator)
            lengths = parameter.detach().norm(dim=-1, keepdim=True) / random.norm(dim=-1, keepdim=True)
            direction[parameter] = random * lengths
    return direction


@torch.no_grad()
def measure_line(trained: Trained, direction: Direction, steps: list[float]) -> list[float]:
    """Return the validation loss at weights + step * direction; the weights are as before afterwards."""
    start = {parameter: parameter.clone() for parameter in direction}
    losses = []
    for step in steps:
        for parameter, change in direction.items():
            parameter.copy_(start[parameter] + step * change)
        losses.append(trained.validation_loss())
    for parameter, value in start.items():
        parameter.copy_(value)
    return losses


def measure_roughness(line: list[float]) -> float:
    """Return the mean size of the second differences: 0 for a straight line.

    >>> measure_roughness([1.0, 2.0, 3.0, 5.0])
    0.5
    """
    bends = [abs(left - 2 * middle + right) for left, middle, right in zip(line, line[1:], line[2:], strict=False)]
    return sum(bends) / len(bends)


def run(options: Options) -> Report:
    """Measure a Transformer with and one without residual connections."""
    count, tests, width, layers, steps = (60, 5, 16, 2, 3) if options.small else (10_000, 100, 64, 4, 400)
    directions, ends = (1, 2) if options.small else (3, 10)
    places = [number / ends for number in range(-ends, ends + 1)]
    train, test = read_pairs(options, count, tests)
    rows, lines = [], {}
    for has_residual in (True, False):
        name = f"{'with' if has_residual else 'without'} residual"
        training = Training(steps, 2048, peak=0.003, vocabulary=300 if options.small else 3000)
        model, change = transformer_translator(width, layers), make_change(has_residual, has_norm=True)
        with tempfile.TemporaryDirectory() as folder:
            trained = train_translator(Path(folder), train, test, model, training, change)
        measured = [
            measure_line(trained, sample_direction(trained.model, seed), places) for seed in range(1, 1 + directions)
        ]
        mean = [sum(column) / directions for column in zip(*measured, strict=True)]
        lines[name] = mean
        roughness = sum(map(measure_roughness, measured)) / directions
        rows.append([name, *(f"{mean[place]:.2f}" for place in (0, ends // 2, ends, -1)), f"{roughness:.3f}"])
    return Report(
        "Surface: the loss around a model",
        f"Transformers of {layers} layers and width {width} (pre-norm), trained for {steps:,} steps on {count:,} "
        f"Tatoeba pairs; the loss per token of {tests} test pairs at weights + step x direction, the mean over "
        f"{directions} random directions whose rows are as long as those of the weights. Roughness is the mean second "
        "difference of the curve.",
        ["model", "step -1", "step -0.5", "trained weights", "step 1", "roughness"],
        rows,
        Chart("step", "loss", places, lines),
    )
