"""Sequential against parallel: a training step by length, and a decoding step after 500 tokens."""

import statistics
import time
from collections.abc import Callable

import torch
from examples.before.models import recurrent_language_model, transformer_language_model
from examples.before.options import Options
from examples.before.report import Chart, Report
from torch.nn import functional as F

from regard.config.codec import MODEL_FILES
from regard.config.model import AnyModelConfig
from regard.models.build import build
from regard.models.cost import cost
from regard.models.cpu_decoder import CpuDecoder
from regard.models.decoder_only import DecoderOnly

TOKENS = 4096  # of a batch, whatever the length of its rows
CONTRADICTION = (
    "The lectures call recurrent networks slow to train because their steps are sequential. On one thread that holds "
    "for the GRU in long rows, not for the LSTM, which torch runs as one fused kernel (oneDNN), nor in short rows."
)


def time_median(action: Callable[[], object], repeats: int) -> float:
    """Return the median wall-clock seconds of an action, after one run to warm up."""
    action()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def make_models(width: int, vocabulary: int) -> dict[str, AnyModelConfig]:
    """Return models with about as many parameters beside the embeddings."""
    models = {
        "Transformer": transformer_language_model(width, layers=2),
        "GRU": recurrent_language_model(width, "gru", layers=4),
        "LSTM": recurrent_language_model(width, "lstm", layers=3),
    }
    return {name: MODEL_FILES.change(model, {"tokens.vocabulary": vocabulary}) for name, model in models.items()}


def time_training(settings: AnyModelConfig, length: int, repeats: int, vocabulary: int, tokens: int) -> float:
    """Return the seconds of a forward and backward pass over a batch with rows of this length."""
    model = build(settings, seed=1)
    assert isinstance(model, DecoderOnly)  # noqa: S101
    ids = torch.randint(vocabulary, (tokens // length, length + 1), generator=torch.Generator().manual_seed(1))

    def step() -> None:
        logits = model(ids[:, :-1])
        F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()

    return time_median(step, repeats)


@torch.inference_mode()
def time_decoding(settings: AnyModelConfig, length: int, repeats: int, vocabulary: int) -> float:
    """Return the seconds of one step of one row that has `length` tokens already."""
    model = build(settings, seed=1).eval()
    assert isinstance(model, DecoderOnly)  # noqa: S101
    decoder = CpuDecoder(model)
    state = model.start(length + repeats + 2)
    model.step(torch.randint(vocabulary, (1, length), generator=torch.Generator().manual_seed(1)), state)
    token = torch.zeros(1, 1, dtype=torch.long)
    return time_median(lambda: decoder.step(token, state), repeats)


def run(options: Options) -> Report:
    """Time all models at all lengths."""
    torch.set_num_threads(1)
    width, vocabulary, tokens, repeats = (16, 50, 128, 1) if options.small else (256, 1000, TOKENS, 3)
    lengths = [16, 32] if options.small else [16, 32, 64, 128, 256, 512]
    past = 50 if options.small else 500
    rows, lines = [], {}
    for name, settings in make_models(width, vocabulary).items():
        model_cost = cost(settings, batch_size=1, target=lengths[-1])
        weights = model_cost.parameters["decoder"]
        seconds = [time_training(settings, length, repeats, vocabulary, tokens) for length in lengths]
        steps = [time_decoding(settings, size, 10 * repeats, vocabulary) for size in (1, past)]
        lines[name] = [1000 * second for second in seconds]
        rows.append(
            [
                name,
                f"{weights / 1e6:.2f} M",
                *(f"{1000 * second:.0f}" for second in seconds),
                f"{model_cost.sequential.total():,}",
                *(f"{1000 * second:.2f}" for second in steps),
            ]
        )
    return Report(
        "Speed: sequential and parallel",
        f"Milliseconds of a training step (forward and backward) over {tokens:,} tokens in rows of 16 to "
        f"{lengths[-1]} tokens, and of one decoding step of one row after 1 and after {past} tokens. Language models "
        f"of width {width} with about as many weights beside embeddings; one thread. A single thread computes nothing "
        "in parallel: what remains of the difference is that a recurrent layer calls its kernels once per token.",
        [
            "model",
            "weights",
            *(f"{length} tokens" for length in lengths),
            f"sequential steps, {lengths[-1]} tokens",
            "decoding, after 1",
            f"decoding, after {past}",
        ],
        rows,
        Chart("tokens per row", "ms per training step", lengths, lines, log_x=True),
        [
            f"{name} against the Transformer: {values[0] / lines['Transformer'][0]:.2f} times the seconds of a "
            f"training step at {lengths[0]} tokens per row, {values[-1] / lines['Transformer'][-1]:.2f} times at "
            f"{lengths[-1]}."
            for name, values in lines.items()
            if name != "Transformer"
        ]
        + [CONTRADICTION],
    )
