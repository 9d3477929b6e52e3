"""A copy of a run's model that is timed on one batch: which of several equal ways is the fastest here, and how long.

Every way computes the same thing, to the last digits but one: how many threads work, how many rows of logits exist at
a time, whether attention stays float32 where products are narrower. Gradients are computed and thrown away.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from statistics import median
from typing import Any

import torch

from regard.config.run import Run
from regard.data.batch import Batch
from regard.models.build import build
from regard.models.heads import LMHead, MLMHead
from regard.nn.attention import set_attention_float32
from regard.train.device import wait
from regard.train.engine import cut_rows, is_out_of_memory
from regard.train.kernels import use_kernels
from regard.train.objective import Objective
from regard.train.optim import make_optimizers
from regard.train.precision import computing

ROUNDS = 3  # of each candidate, in turns
LOOK = 20.0  # seconds at most for one question: slower models are asked fewer rounds, or none
SPENT, MANY = 1.0, 20  # seconds for the time of a batch, and how often it is taken at most
WORTH = 0.97  # another way must take less than this share of the first one's time
LOGITS = (0, 256, 1024)  # rows at a time
FEW = 1000  # words: the logits of so few are small, and torch's own way is the fastest


class Trial:
    """A model and a batch, or a share of one; what takes longer than so many seconds is tried in part."""

    def __init__(self, run: Run, batch: Batch, *, share: float = 1.0, longest: float = inf) -> None:
        self.model = build(run.model, seed=run.seed).to(run.device.name).train()
        self._run = run
        self._objective = Objective(
            self.model,
            smoothing=run.train.label_smoothing,
            agreement=run.train.r_drop,
            rows=run.device.logit_rows or 0,
        )
        self._device = torch.device(run.device.name)
        self._whole = self._batch = batch
        self._whole_share = self._share = share
        self._parts, self._took = 1, 0.0  # of the batch; seconds of the last try
        use_kernels(self.model, run)
        first = self._first()
        if first > longest:
            self._take(max(self._parts, round(first / longest) + 1))
            self.seconds()  # what a try takes from here on

    def settle(self) -> dict[str, Any]:
        """The fastest ways where the settings leave a choice, by their names in [device]; they are set from here on."""
        device, found = self._run.device, dict[str, Any]()
        if device.attention is None:
            ways = {
                name: partial(set_attention_float32, self.model, name == "float32") for name in ("float32", "compute")
            }
            found["attention"] = "compute" if self._run.train.precision == "float32" else self.fastest(ways)
        if device.threads is None:
            threads = [torch.get_num_threads(), *([1] if self._device.type == "cpu" else [])]
            found["threads"] = self.fastest({one: partial(torch.set_num_threads, one) for one in threads})
        if device.logit_rows is None:
            rows = LOGITS if self._words() > FEW else (0,)
            found["loss_rows"] = self.fastest({some: partial(self._use_rows, some) for some in rows})
        return found

    def fastest(self, ways: Mapping[Any, Callable[[], object]]) -> Any:
        """The way that takes the least time, tried in turns; the first one unless another is clearly faster."""
        best: dict[Any, float] = {}
        rounds = min(ROUNDS, int(LOOK / max(len(ways) * self._took, 1e-9)))
        for _ in range(rounds if len(ways) > 1 else 0):
            for name, use in ways.items():
                use()
                best[name] = min(best.get(name, inf), self.seconds())
        first = next(iter(ways))
        quickest = min(best, key=best.__getitem__, default=first)
        chosen = quickest if quickest != first and best[quickest] < WORTH * best[first] else first
        ways[chosen]()
        return chosen

    def seconds(self) -> float:
        """The time of one whole batch, forward and backward, as things are set now."""
        self._took = self._timed(self._learn)
        self.model.zero_grad()
        return self._took / self._share

    def update_seconds(self) -> float:
        """The time of one update: its batches, and the step of its optimizer, which moves nothing here."""
        times, end = list[float](), time.perf_counter() + SPENT
        while not times or (len(times) < MANY and time.perf_counter() < end):
            times.append(self.seconds())
        self._learn()
        optimizers = make_optimizers(self.model, self._run.train.optimizer)
        optimizers.set_rate(0.0)
        optimizers.step()  # the first one makes its memory
        step = self._timed(optimizers.step)
        optimizers.zero_grad()
        return self._run.accumulate * median(times) + step

    def _first(self) -> float:
        """The time of a whole batch, by as many of its rows as there is memory for."""
        while True:
            try:
                return min(self.seconds(), self.seconds())
            except RuntimeError as error:
                if not is_out_of_memory(error) or self._parts >= self._whole.labels.size(0):
                    raise
            self.model.zero_grad()
            self._take(2 * self._parts)

    def _take(self, parts: int) -> None:
        """Try with one of so many parts of the batch."""
        rows = self._whole.labels.size(0)
        self._parts = min(parts, rows)
        self._batch = next(iter(cut_rows(self._whole, self._parts)))
        self._share = self._whole_share * self._batch.labels.size(0) / rows

    def _words(self) -> int:
        """The rows of the output matrix; 0 where there are only labels."""
        head = self.model.head
        head = head.lm_head if isinstance(head, MLMHead) else head
        return int(head.projection.weight.size(0)) if isinstance(head, LMHead) else 0

    def _use_rows(self, rows: int) -> None:
        self._objective.rows = rows

    def _learn(self) -> None:
        with computing(self._device.type, self._run.train.precision):
            total = self._objective(self._batch).total
        total.backward()

    def _timed(self, work: Callable[[], None]) -> float:
        wait(self._device)  # for what was asked of it before
        began = time.perf_counter()
        work()
        wait(self._device)
        return time.perf_counter() - began
