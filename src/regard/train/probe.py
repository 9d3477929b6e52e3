"""A short look at the device before a run: the fastest ways of computing it here, and how long it will take.

What was found is written into the run's own file and never asked again, so that a resumed run computes as it began.
"""

from typing import Any

from regard.base.times import format_duration
from regard.config.codec import RUN_FILES
from regard.config.run import Run
from regard.config.toml_file import to_dict, with_changes
from regard.data.batches.batch import Batch
from regard.train.corpora import RunData
from regard.train.events import Listener, Message, Stage
from regard.train.tasks import make_loader
from regard.train.trial import StepTimer

MAX_BATCH_SECONDS = 2.0  # seconds: a batch that takes longer is tried in part


def autotune(run: Run, run_data: RunData, emit: Listener) -> Run:
    """The run with every choice about its device made; what the settings say is left as it is."""
    if run.device.threads is not None and run.device.logit_rows is not None and run.device.attention is not None:
        return run
    emit(Stage("looking at the device"))
    timer = StepTimer(run, pick_typical_batch(run, run_data), max_seconds=MAX_BATCH_SECONDS)
    tuned = timer.tune()
    emit(Message(_describe_result(tuned, timer.time_update(), run.train.updates)))
    return RUN_FILES.parse(with_changes(to_dict(run), {f"device.{name}": value for name, value in tuned.items()}))


def pick_typical_batch(run: Run, run_data: RunData) -> Batch:
    """The batch of median size among the first few."""
    loader = make_loader(run, run_data.train, run_data.tokenizers)
    batches = [batch for batch, _ in zip(loader.iter_epoch(0), range(9), strict=False)]
    return sorted(batches, key=lambda batch: batch.labels.numel())[len(batches) // 2]


def _describe_result(tuned: dict[str, Any], seconds: float, updates: int) -> str:
    parts = []
    if "threads" in tuned:
        parts.append(f"{tuned['threads']} thread{'s' * (tuned['threads'] != 1)}")
    if "loss_rows" in tuned:
        parts.append(f"{tuned['loss_rows'] or 'all'} rows of logits at a time")
    if tuned.get("attention") == "float32":
        parts.append("attention in float32")
    fastest = f"Fastest here: {', '.join(parts)}. " if parts else ""
    return f"{fastest}An update takes about {seconds:.2f} s: {format_duration(seconds * updates)} in all."
