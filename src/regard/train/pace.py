"""How long an update takes here: a few trial steps of a model that is thrown away, before anything is decided.

It is for telling a person what to expect, and for fitting a run into minutes. Training is usually a little faster: the
probe at its start picks the quickest kernels.
"""

import statistics
import time

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.config.run import Run
from regard.models.build import AnyModel, build
from regard.models.cost import cost
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_only import EncoderOnly
from regard.models.inputs import TokenInput
from regard.store.room import check_room
from regard.train.device import wait, with_device
from regard.train.precision import Precision, computing

ENOUGH = 5e10  # FLOPs of a trial step; larger batches are tried in part
SECONDS = 4.0  # of trial, unless two steps take longer


def seconds_per_update(run: Run, length: int) -> float:
    """Seconds that one update takes on this machine, for rows of `length` tokens."""
    run = with_device(run)
    check_room(run.model, where="the model")
    device = torch.device(run.device.name)
    rows = max(1, run.data.batch_tokens // length) * (2 if run.train.agreement else 1)
    tried = max(1, min(rows, int(rows * ENOUGH / flops(run, length))))
    with torch.random.fork_rng():
        model = build(run.model, seed=1).to(device).train()
        trial = _Trial(model, torch.randint(0, _pieces(model), (tried, length), device=device), run.train.precision)
        few, many = (run.device.threads,) * 2 if run.device.threads else (1, torch.get_num_threads())
        # On a busy machine threads wait for each other: one alone may be many times faster, and the run will find out.
        return min(trial.seconds(run.together * rows / tried, threads) for threads in {few, many})


class _Trial:
    """A model that learns nonsense for a few seconds."""

    def __init__(self, model: AnyModel, tokens: Tensor, precision: Precision) -> None:
        self.model, self.tokens, self.precision = model, tokens, precision  # (B, T)
        self.optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def seconds(self, share: float, threads: int) -> float:
        """Of an update with so many threads, of which the trial computes a part once, and not `share` times."""
        before, times = torch.get_num_threads(), list[float]()
        torch.set_num_threads(threads)
        end = self._now() + SECONDS / 2
        while len(times) < 3 or (len(times) < 20 and time.perf_counter() < end):
            began = self._now()
            with computing(self.tokens.device.type, self.precision):
                loss = _loss(self.model, self.tokens)
            loss.backward()
            between = self._now()
            self.optimizer.step()
            self.optimizer.zero_grad()
            times.append((between - began) * share + self._now() - between)
        torch.set_num_threads(before)
        return statistics.median(times[1:])

    def _now(self) -> float:
        wait(self.tokens.device)
        return time.perf_counter()


def flops(run: Run, length: int) -> float:
    """Arithmetic of forward and backward through one batch."""
    rows = max(1, run.data.batch_tokens // length)
    source, target = (0, length) if run.model.family == "decoder_only" else (length, length)
    return float(cost(run.model, batch=rows, source=source, target=target).training.total())


def _pieces(model: AnyModel) -> int:
    """How many words every table has."""
    return min(module.table.num_embeddings for module in model.modules() if isinstance(module, TokenInput))


def _loss(model: AnyModel, tokens: Tensor) -> Tensor:
    """Any loss will do: what counts is the time it takes."""
    if isinstance(model, DecoderOnly | EncoderOnly):
        logits = model(tokens)  # (B, T, words), or (B, labels)
    else:
        logits = model(tokens, tokens)  # (B, T, words)
    return F.cross_entropy(logits.flatten(0, -2), logits.new_zeros(logits.shape[:-1], dtype=torch.long).flatten())
