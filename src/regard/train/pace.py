"""How long an update takes here: a few trial steps of a model that is thrown away, before anything is decided.

It is for telling a person what to expect, and for fitting a run into minutes. The batch is invented: the corpus has not
been cut into tokens yet.
"""

import torch
from torch import Tensor

from regard.config.run import Run
from regard.data.batches.arrays import IGNORE_INDEX
from regard.data.batches.batch import Batch
from regard.models.cost import cost
from regard.store.size_check import check_fits_memory
from regard.train.device import resolve_device
from regard.train.trial import StepTimer

MAX_TRIAL_FLOPS = 5e10  # FLOPs of a trial step; larger batches are tried in part
MASKED_SHARE = 0.15  # of the words, where hidden ones are learned


def seconds_per_update(run: Run, length: int) -> float:
    """Seconds that one update takes on this machine, for rows of `length` tokens."""
    run = resolve_device(run)
    check_fits_memory(run.model, where="the model")
    rows = max(1, run.data.batch_tokens // length)
    trial_rows = max(1, min(rows, int(rows * MAX_TRIAL_FLOPS / count_flops(run, length))))
    threads = torch.get_num_threads()
    if run.device.threads is not None:
        torch.set_num_threads(run.device.threads)
    try:
        with torch.random.fork_rng():
            timer = StepTimer(run, synthetic_batch(run, trial_rows, length), share=trial_rows / rows)
            timer.tune()
            return timer.time_update()
    finally:
        torch.set_num_threads(threads)


def count_flops(run: Run, length: int) -> float:
    """Arithmetic of forward and backward through one batch."""
    rows = max(1, run.data.batch_tokens // length) * (2 if run.train.r_drop else 1)
    source, target = (0, length) if run.model.family == "decoder_only" else (length, length)
    return float(cost(run.model, batch_size=rows, source=source, target=target).training.total())


def synthetic_batch(run: Run, rows: int, length: int) -> Batch:
    """Nonsense of the right shape."""
    model, zeros = run.model, torch.zeros(rows, dtype=torch.long)  # (B)
    tables = [getattr(model, side) for side in ("source", "target", "tokens") if hasattr(model, side)]
    vocabulary_size = min(table.vocabulary for table in tables if table.kind == "tokens")
    tokens = torch.randint(0, vocabulary_size, (rows, length))  # (B, T)
    return Batch(
        number=0,
        labels=_synthetic_labels(run, tokens),
        samples=zeros,
        languages=zeros,
        source=None if model.family == "decoder_only" else tokens,
        target=None if model.family == "encoder_only" else tokens,
    )


def _synthetic_labels(run: Run, tokens: Tensor) -> Tensor:
    """What must come out: a word at every place or at the hidden ones, the first tag everywhere, one class a row."""
    kind = run.model.head.kind
    if kind == "classes":
        return torch.zeros_like(tokens[:, 0])  # (B)
    if kind == "mlm":
        return tokens.masked_fill(torch.rand(tokens.shape) > MASKED_SHARE, IGNORE_INDEX)
    return tokens if kind == "lm" else torch.zeros_like(tokens)
