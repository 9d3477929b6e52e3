"""Record a profile of some steps with `torch.profiler`: what each rank computes, and when it waits."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import torch
from torch.profiler import ProfilerActivity, profile

from regard.base.formatting import pluralize
from regard.data.batches.loader import StepBatches
from regard.training.events import Emit, Message


class StepProfiler:
    """Records a window of steps; write `with StepProfiler(...)` around the training loop.

    Args:
        steps: The steps to record.
        path: The file to write, in the format of Chrome's trace viewer (.json.gz).
        emit: Called with a message about the file.
    """

    def __init__(self, steps: range, path: Path, emit: Emit) -> None:
        self._steps, self._path, self._emit = steps, path, emit
        self._profile: profile | None = None
        self._recorded = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._finish()
        if not self._recorded:
            first, last = self._steps[0], self._steps[-1]
            self._emit(Message(f"No profile was written: the run did not reach steps {first} to {last}.", "warning"))

    def watch(self, batches: Iterator[StepBatches], next_step: Callable[[], int]) -> Iterator[StepBatches]:
        """Yield the batches of each step, and start or stop recording before a step reads them."""
        while True:
            self._begin_step(next_step())
            yield next(batches)
            self._recorded += self._profile is not None

    def _begin_step(self, step: int) -> None:
        if step not in self._steps:
            self._finish()
            return
        if self._profile is None:
            gpu = [ProfilerActivity.CUDA] if torch.cuda.is_available() else []
            self._profile = profile(activities=[ProfilerActivity.CPU, *gpu], record_shapes=True)
            self._profile.start()

    def _finish(self) -> None:
        recording, self._profile = self._profile, None
        if recording is None:
            return
        recording.stop()
        if not self._recorded:
            return  # the run ended before the step
        self._path.parent.mkdir(exist_ok=True)
        recording.export_chrome_trace(str(self._path))
        text = f"Wrote a profile of {pluralize(self._recorded, 'step')} to {self._path}, and one for each other rank."
        self._emit(Message(f"{text} Open it at https://ui.perfetto.dev or chrome://tracing."))
