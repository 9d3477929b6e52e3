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
from regard.data.batches.batch import Batch
from regard.models.build import build
from regard.models.heads import LMHead, MLMHead
from regard.nn.attention import set_attention_float32
from regard.train.device import synchronize
from regard.train.engine import cut_rows, is_out_of_memory
from regard.train.kernels import apply_device_settings
from regard.train.objective import Objective
from regard.train.optim import make_optimizers
from regard.train.precision import autocast

ROUNDS = 3  # of each candidate, in turns
MAX_TUNING_SECONDS = 20.0  # seconds at most for one question: slower models are asked fewer rounds, or none
TIMING_SECONDS, MAX_TIMINGS = 1.0, 20  # seconds for the time of a batch, and how often it is taken at most
MAX_TIME_RATIO = 0.97  # another way must take less than this share of the first one's time
LOGIT_ROWS = (0, 256, 1024)  # rows at a time
SMALL_VOCABULARY = 1000  # words: the logits of so few are small, and torch's own way is the fastest


class StepTimer:
    """A model and a batch, or a share of one; what takes longer than so many seconds is tried in part."""

    def __init__(self, run: Run, batch: Batch, *, share: float = 1.0, max_seconds: float = inf) -> None:
        self.model = build(run.model, seed=run.seed).to(run.device.name).train()
        self._run = run
        self._objective = Objective(
            self.model,
            label_smoothing=run.train.label_smoothing,
            r_drop=run.train.r_drop,
            logit_rows=run.device.logit_rows or 0,
        )
        self._device = torch.device(run.device.name)
        self._full_batch = self._batch = batch
        self._full_share = self._share = share
        self._parts, self._last_seconds = 1, 0.0  # of the batch; seconds of the last try
        apply_device_settings(self.model, run)
        first_seconds = self._time_first_batch()
        if first_seconds > max_seconds:
            self._use_part(max(self._parts, round(first_seconds / max_seconds) + 1))
            self.time_batch()  # what a try takes from here on

    def tune(self) -> dict[str, Any]:
        """The fastest ways where the settings leave a choice, by their names in [device]; they are set from here on."""
        device, tuned = self._run.device, dict[str, Any]()
        if device.attention is None:
            options = {
                name: partial(set_attention_float32, self.model, name == "float32") for name in ("float32", "autocast")
            }
            tuned["attention"] = "autocast" if self._run.train.precision == "float32" else self.pick_fastest(options)
        if device.threads is None:
            threads = [torch.get_num_threads(), *([1] if self._device.type == "cpu" else [])]
            tuned["threads"] = self.pick_fastest({count: partial(torch.set_num_threads, count) for count in threads})
        if device.logit_rows is None:
            rows = LOGIT_ROWS if self._vocabulary_size() > SMALL_VOCABULARY else (0,)
            tuned["loss_rows"] = self.pick_fastest(
                {row_count: partial(self._set_logit_rows, row_count) for row_count in rows}
            )
        return tuned

    def pick_fastest(self, options: Mapping[Any, Callable[[], object]]) -> Any:
        """The way that takes the least time, tried in turns; the first one unless another is clearly faster."""
        best_seconds: dict[Any, float] = {}
        rounds = min(ROUNDS, int(MAX_TUNING_SECONDS / max(len(options) * self._last_seconds, 1e-9)))
        for _ in range(rounds if len(options) > 1 else 0):
            for name, apply_option in options.items():
                apply_option()
                best_seconds[name] = min(best_seconds.get(name, inf), self.time_batch())
        default = next(iter(options))
        fastest = min(best_seconds, key=best_seconds.__getitem__, default=default)
        chosen = (
            fastest
            if fastest != default and best_seconds[fastest] < MAX_TIME_RATIO * best_seconds[default]
            else default
        )
        options[chosen]()
        return chosen

    def time_batch(self) -> float:
        """The time of one whole batch, forward and backward, as things are set now."""
        self._last_seconds = self._time(self._forward_backward)
        self.model.zero_grad()
        return self._last_seconds / self._share

    def time_update(self) -> float:
        """The time of one update: its batches, and the step of its optimizer, which moves nothing here."""
        times, deadline = list[float](), time.perf_counter() + TIMING_SECONDS
        while not times or (len(times) < MAX_TIMINGS and time.perf_counter() < deadline):
            times.append(self.time_batch())
        self._forward_backward()
        optimizers = make_optimizers(self.model, self._run.train.optimizer)
        optimizers.set_learning_rate(0.0)
        optimizers.step()  # the first one makes its memory
        step = self._time(optimizers.step)
        optimizers.zero_grad()
        return self._run.accumulate * median(times) + step

    def _time_first_batch(self) -> float:
        """The time of a whole batch, by as many of its rows as there is memory for."""
        while True:
            try:
                return min(self.time_batch(), self.time_batch())
            except RuntimeError as error:
                if not is_out_of_memory(error) or self._parts >= self._full_batch.labels.size(0):
                    raise
            self.model.zero_grad()
            self._use_part(2 * self._parts)

    def _use_part(self, parts: int) -> None:
        """Try with one of so many parts of the batch."""
        rows = self._full_batch.labels.size(0)
        self._parts = min(parts, rows)
        self._batch = next(iter(cut_rows(self._full_batch, self._parts)))
        self._share = self._full_share * self._batch.labels.size(0) / rows

    def _vocabulary_size(self) -> int:
        """The rows of the output matrix; 0 where there are only labels."""
        head = self.model.head
        head = head.lm_head if isinstance(head, MLMHead) else head
        return int(head.projection.weight.size(0)) if isinstance(head, LMHead) else 0

    def _set_logit_rows(self, logit_rows: int) -> None:
        self._objective.logit_rows = logit_rows

    def _forward_backward(self) -> None:
        with autocast(self._device.type, self._run.train.precision):
            total = self._objective(self._batch).total
        total.backward()

    def _time(self, work: Callable[[], None]) -> float:
        synchronize(self._device)  # for what was asked of it before
        start = time.perf_counter()
        work()
        synchronize(self._device)
        return time.perf_counter() - start
