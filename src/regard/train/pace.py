"""How long an update takes here: a few trial steps of a model that is thrown away, before anything is decided.

It is for telling a person what to expect, and for fitting a run into minutes. The batch is invented: the corpus has not
been cut into tokens yet.
"""

import torch
from torch import Tensor

from regard.config.run import Run
from regard.data.batch import Batch
from regard.data.rows import IGNORE_INDEX
from regard.models.cost import cost
from regard.store.room import check_fits_memory
from regard.train.device import with_device
from regard.train.trial import Trial

ENOUGH = 5e10  # FLOPs of a trial step; larger batches are tried in part
HIDDEN = 0.15  # of the words, where hidden ones are learned


def seconds_per_update(run: Run, length: int) -> float:
    """Seconds that one update takes on this machine, for rows of `length` tokens."""
    run = with_device(run)
    check_fits_memory(run.model, where="the model")
    rows = max(1, run.data.batch_tokens // length)
    tried = max(1, min(rows, int(rows * ENOUGH / flops(run, length))))
    threads = torch.get_num_threads()
    if run.device.threads is not None:
        torch.set_num_threads(run.device.threads)
    try:
        with torch.random.fork_rng():
            trial = Trial(run, invented(run, tried, length), share=tried / rows)
            trial.settle()
            return trial.update_seconds()
    finally:
        torch.set_num_threads(threads)


def flops(run: Run, length: int) -> float:
    """Arithmetic of forward and backward through one batch."""
    rows = max(1, run.data.batch_tokens // length) * (2 if run.train.r_drop else 1)
    source, target = (0, length) if run.model.family == "decoder_only" else (length, length)
    return float(cost(run.model, batch_size=rows, source=source, target=target).training.total())


def invented(run: Run, rows: int, length: int) -> Batch:
    """Nonsense of the right shape."""
    model, none = run.model, torch.zeros(rows, dtype=torch.long)  # (B)
    tables = [getattr(model, side) for side in ("source", "target", "tokens") if hasattr(model, side)]
    words = min(table.vocabulary for table in tables if table.kind == "tokens")
    tokens = torch.randint(0, words, (rows, length))  # (B, T)
    return Batch(
        number=0,
        labels=_labels(run, tokens),
        samples=none,
        languages=none,
        source=None if model.family == "decoder_only" else tokens,
        target=None if model.family == "encoder_only" else tokens,
    )


def _labels(run: Run, tokens: Tensor) -> Tensor:
    """What must come out: a word at every place or at the hidden ones, the first tag everywhere, one class a row."""
    kind = run.model.head.kind
    if kind == "classes":
        return torch.zeros_like(tokens[:, 0])  # (B)
    if kind == "masked_words":
        return tokens.masked_fill(torch.rand(tokens.shape) > HIDDEN, IGNORE_INDEX)
    return tokens if kind == "words" else torch.zeros_like(tokens)
