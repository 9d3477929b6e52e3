"""A short look at the device: which of several equal ways is the fastest here, and how long the run will take.

Every choice computes the same thing, to the last digits but one: how many threads work, how many rows of logits exist
at a time, whether attention stays float32 where products are narrower. What was found is written into the run's own
file and never asked again, so that a resumed run computes as it began. Gradients are computed and thrown away.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from regard.base.times import lasting
from regard.config.codec import runs
from regard.config.run import Run
from regard.config.tables import change, plain
from regard.data.batch import Batch
from regard.models.build import build
from regard.nn.attention import keep_float32
from regard.train.corpora import Corpora
from regard.train.device import wait
from regard.train.engine import cut_rows, is_out_of_memory
from regard.train.events import Listener, Said, Working
from regard.train.objective import Objective
from regard.train.optim import make_optimizers
from regard.train.precision import computing
from regard.train.tasks import loader_of

ROUNDS = 3  # of each candidate, in turns
LONG = 2.0  # seconds: a step that takes longer is probed on fewer rows
WORTH = 0.97  # another way must take less than this share of the first one's time
LOGITS = (0, 256, 1024)  # rows at a time
FEW = 1000  # words: the logits of so few are small, and torch's own way is the fastest


def probed(run: Run, read: Corpora, tell: Listener) -> Run:
    """The run with every choice about its device made; what the settings say is left as it is."""
    if run.device.threads is not None and run.device.loss_rows is not None and run.device.attention is not None:
        return run
    tell(Working("looking at the device"))
    probe = Probe(run, read)
    found: dict[str, Any] = {}
    if run.device.threads is None:
        threads = [torch.get_num_threads(), *([1] if run.device.name == "cpu" else [])]
        found["threads"] = probe.fastest({one: partial(torch.set_num_threads, one) for one in threads})
    if run.device.attention is None:
        found["attention"] = "compute"
        if run.train.precision != "float32":
            found["attention"] = probe.fastest(
                {
                    "float32": partial(keep_float32, probe.model, True),
                    "compute": partial(keep_float32, probe.model, False),
                }
            )
    if run.device.loss_rows is None:
        rows = LOGITS if read.vocabularies.target.size > FEW else (0,)
        found["loss_rows"] = probe.fastest({some: partial(probe.use_rows, some) for some in rows})
    tell(Said(_told(found, probe.update_seconds(run), run.train.updates)))
    return runs().parse(change(plain(run), {f"device.{name}": value for name, value in found.items()}))


class Probe:
    """A copy of the model that is timed on a real batch."""

    def __init__(self, run: Run, read: Corpora) -> None:
        self.model = build(run.model, seed=run.seed).to(run.device.name).train()
        self._objective = Objective(
            self.model,
            smoothing=run.train.label_smoothing,
            agreement=run.train.agreement,
            rows=run.device.loss_rows or 0,
        )
        self._device, self._precision = torch.device(run.device.name), run.train.precision
        self._whole = _typical_batch(run, read)
        self._batch, self._share = self._whole, 1.0
        keep_float32(self.model, run.device.attention == "float32")
        first = self._first()
        if first > LONG:
            self._take(round(first / LONG) + 1)

    def _first(self) -> float:
        """The time of a whole batch, by as many of its rows as there is memory for."""
        parts = 1
        while True:
            try:
                return min(self.seconds(), self.seconds())
            except RuntimeError as error:
                if not is_out_of_memory(error) or parts >= self._whole.labels.size(0):
                    raise
            self.model.zero_grad()
            parts *= 2
            self._take(parts)

    def _take(self, parts: int) -> None:
        """Probe with one of so many parts of the batch."""
        rows = self._whole.labels.size(0)
        self._batch = next(iter(cut_rows(self._whole, min(parts, rows))))
        self._share = self._batch.labels.size(0) / rows

    def use_rows(self, rows: int) -> None:
        """Let so many rows of logits exist at a time."""
        self._objective.rows = rows

    def seconds(self) -> float:
        """The time of one whole batch, forward and backward, as things are set now."""
        taken = self._timed(self._learn)
        self.model.zero_grad()
        return taken / self._share

    def update_seconds(self, run: Run) -> float:
        """The time of one update: its batches, and the step of its optimizer, which moves nothing here."""
        batches = run.together * self.seconds()
        self._learn()
        optimizers = make_optimizers(self.model, run.train.optimizer)
        optimizers.set_rate(0.0)
        optimizers.step()  # the first one makes its memory
        step = self._timed(optimizers.step)
        optimizers.zero_grad()
        return batches + step

    def _learn(self) -> None:
        with computing(self._device.type, self._precision):
            total = self._objective(self._batch).total
        total.backward()

    def _timed(self, work: Callable[[], None]) -> float:
        began = time.perf_counter()
        work()
        wait(self._device)
        return time.perf_counter() - began

    def fastest(self, ways: Mapping[Any, Callable[[], object]]) -> Any:
        """The way that takes the least time, tried in turns; the first one unless another is clearly faster."""
        best: dict[Any, float] = {}
        for _ in range(ROUNDS if len(ways) > 1 else 0):
            for name, use in ways.items():
                use()
                best[name] = min(best.get(name, float("inf")), self.seconds())
        first = next(iter(ways))
        quickest = min(best, key=best.__getitem__, default=first)
        chosen = quickest if quickest != first and best[quickest] < WORTH * best[first] else first
        ways[chosen]()
        return chosen


def _typical_batch(run: Run, read: Corpora) -> Batch:
    """The batch of median size among the first few."""
    loader = loader_of(run, read.train, read.vocabularies)
    some = [batch for batch, _ in zip(loader.epoch(0), range(9), strict=False)]
    return sorted(some, key=lambda batch: batch.labels.numel())[len(some) // 2]


def _told(found: dict[str, Any], seconds: float, updates: int) -> str:
    parts = []
    if "threads" in found:
        parts.append(f"{found['threads']} thread{'s' * (found['threads'] != 1)}")
    if "loss_rows" in found:
        parts.append(f"{found['loss_rows'] or 'all'} rows of logits at a time")
    if found.get("attention") == "float32":
        parts.append("attention in float32")
    fastest = f"Fastest here: {', '.join(parts)}. " if parts else ""
    return f"{fastest}An update takes about {seconds:.2f} s: {lasting(seconds * updates)} in all."
