"""Attention as a shortcut for gradients: from a decoder's output back to the encoder's first token, by length."""

import torch
from examples.before import length
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.training import Trained

from regard.models.build import build
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_decoder import EncoderDecoder


def measure_gradient(model: EncoderDecoder, trained: Trained, symbols: int, count: int) -> float:
    """Return the norm of d z_1 / d x_1, the mean over new texts of this length that are to be copied.

    z_1 is the logit of the right first output, which equals the first input x_1 (not its loss: the gradient of a loss
    that is almost 0 is small in any case). Through a fixed vector the gradient passes through all steps of the encoder;
    attention reads the first state directly.
    """
    tokenizer = trained.data.tokenizers.source
    texts = [text for text, _ in length.sample_pairs(count, range(symbols, symbols + 1), seed=2000 + symbols)]
    source = torch.tensor([[*tokenizer.encode(text).ids, tokenizer.specials.eos] for text in texts])  # (B, S)
    with eval_mode(model):
        x = model.source(source)[0].detach().requires_grad_()  # (B, S, D)
        memory = model.encoder(x, model.encoder_mask)  # (B, S, D)
        start = torch.full((count, 1), tokenizer.specials.bos)
        logits = model.head(model.decode(start, (memory, None))[:, 0])  # (B, vocabulary)
        (gradient,) = torch.autograd.grad(logits.gather(1, source[:, :1]).sum(), x)
    return gradient[:, 0].norm(dim=-1).mean().item()


def run(options: Options) -> Report:
    """Measure models with a fixed vector and with attention, before and after they learned to copy."""
    lengths, count = (range(2, 9), 8) if options.small else (length.LENGTHS, 64)
    lines = {}
    for name, trained in length.train_both(options, steps=5 if options.small else 1000).items():
        new = build(trained.settings, seed=1)
        for state, model in (("new", new), ("trained", trained.model)):
            assert isinstance(model, EncoderDecoder)  # noqa: S101 - a translator
            lines[f"{name}, {state}"] = [measure_gradient(model, trained, symbols, count) for symbols in lengths]
    return Report(
        "Shortcut: the gradient from the decoder to the first token",
        "The models of the part `length`, which copy symbols. The table has the norm of d z_1 / d x_1: how much the "
        "logit of the right first output changes with the first input, which it must copy (the mean over "
        f"{count} new texts). Through a fixed vector the gradient passes through all steps of the encoder, with "
        "attention through one.",
        ["symbols", *lines],
        [[str(symbols), *(f"{line[number]:.1e}" for line in lines.values())] for number, symbols in enumerate(lengths)],
        Chart("symbols", "norm of the gradient", list(lengths), lines, log_y=True),
        notes=[
            f"{name}: {line[0] / line[-1]:.3g} times as large at {lengths[0]} symbols as at {lengths[-1]}."
            for name, line in lines.items()
        ],
    )
