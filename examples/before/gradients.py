"""How far back a loss reaches: the norm of d loss_t / d x_(t-k), before and after training."""

import tempfile
from pathlib import Path

import torch
from examples.before.models import recurrent_language_model, transformer_language_model
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.training import Training, train_language_model
from torch import Tensor
from torch.nn import functional as F

from regard.config.model import AnyModelConfig
from regard.models.build import AnyModel as AnyNetwork
from regard.models.build import build
from regard.models.cpu_decoder import eval_mode
from regard.models.decoder_only import DecoderOnly

SHOWN = (1, 2, 5, 10, 20, 50, 100)
NOTES = (
    "After training the order is that of the lectures: the gradient of an RNN vanishes, gates carry it further, and "
    "attention carries it anywhere.",
    "Before training it is not: the step gate of a new GRU is half open, so every token replaces half of its state, "
    "while Xavier weights keep the gradient of a new RNN near its size, and the forget gate of a new LSTM is open.",
)


def measure_reach(model: AnyNetwork, tokens: Tensor, steps: int) -> list[float]:
    """Return the norm of d loss / d x of the last token's loss, for the embedding k = 1, ..., `steps` tokens before.

    Args:
        model: A language model.
        tokens: Texts (B, T + 1) with T > `steps`; the last token is predicted only.
        steps: The largest k.
    """
    assert isinstance(model, DecoderOnly)  # noqa: S101 - the caller built one
    with eval_mode(model):
        x = model.tokens(tokens[:, :-1])[0].detach().requires_grad_()  # (B, T, D)
        logits = model.head(model.decoder(x, model.mask)[:, -1])  # (B, vocabulary)
        (gradient,) = torch.autograd.grad(F.cross_entropy(logits, tokens[:, -1], reduction="sum"), x)
    norms = gradient.norm(dim=-1).mean(dim=0)  # (T)
    return [norms[-1 - k].item() for k in range(1, steps + 1)]


def make_models(width: int) -> dict[str, AnyModelConfig]:
    """Return the language models to compare."""
    cells = {name.upper(): recurrent_language_model(width, name) for name in ("rnn", "gru", "lstm")}
    return {**cells, "Transformer": transformer_language_model(width)}


def run(options: Options) -> Report:
    """Measure every model before and after training on characters."""
    text = options.read_text("tinyshakespeare/input.txt")
    width, steps, distance, rows = (16, 5, 20, 4) if options.small else (64, 400, 100, 16)
    split = len(text) * 9 // 10
    lines, table = dict[str, list[float]](), []
    for name, settings in make_models(width).items():
        training = Training(steps, 2048, peak=0.003, vocabulary=None, tokenizer="character", max_length=256)
        with tempfile.TemporaryDirectory() as folder:
            trained = train_language_model(Path(folder), text[:split], text[split:], settings, training)
        ids = trained.data.tokenizers.source.encode(text[split:]).ids
        length = distance + 29
        tokens = torch.tensor([ids[row * length : (row + 1) * length] for row in range(rows)])
        before = measure_reach(build(trained.settings, seed=1), tokens, distance)
        after = measure_reach(trained.model, tokens, distance)
        lines |= {f"{name}, new": before, f"{name}, trained": after}
        loss = trained.validation_loss()
        for state, reach in (("new", before), ("trained", after)):
            shown = [f"{reach[k - 1] / reach[0]:.1e}" for k in SHOWN[1:] if k <= distance]
            table.append([f"{name}, {state}", f"{reach[0]:.1e}", *shown, f"{loss:.2f}" if state == "trained" else ""])
    return Report(
        "Gradients: how far back a loss reaches",
        f"Character-level language models of width {width} on tinyshakespeare, {steps} steps of 2,048 tokens. The "
        "table has the norm of d loss_t / d x_(t-k), the mean over "
        f"{rows} texts: for k = 1 as it is, for larger k relative to k = 1.",
        ["model", "k = 1", *(f"k = {k}" for k in SHOWN[1:] if k <= distance), "validation loss"],
        table,
        Chart("k, tokens before", "norm of the gradient", range(1, distance + 1), lines, log_x=True, log_y=True),
        NOTES,
    )
