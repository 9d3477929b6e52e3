"""A short look at the device before a run: the fastest ways of computing it here, and how long it will take.

What was found is written into the run's own file and never asked again, so that a resumed run computes as it began.
"""

from typing import Any

from regard.base.times import format_duration
from regard.config.codec import RUN_FILES
from regard.config.run import Run
from regard.config.tables import to_dict, with_changes
from regard.data.batch import Batch
from regard.train.corpora import Corpora
from regard.train.events import Listener, Said, Working
from regard.train.tasks import loader_of
from regard.train.trial import Trial

LONG = 2.0  # seconds: a batch that takes longer is tried in part


def probed(run: Run, read: Corpora, tell: Listener) -> Run:
    """The run with every choice about its device made; what the settings say is left as it is."""
    if run.device.threads is not None and run.device.logit_rows is not None and run.device.attention is not None:
        return run
    tell(Working("looking at the device"))
    trial = Trial(run, typical_batch(run, read), longest=LONG)
    found = trial.settle()
    tell(Said(_told(found, trial.update_seconds(), run.train.updates)))
    return RUN_FILES().parse(with_changes(to_dict(run), {f"device.{name}": value for name, value in found.items()}))


def typical_batch(run: Run, read: Corpora) -> Batch:
    """The batch of median size among the first few."""
    loader = loader_of(run, read.train, read.vocabularies)
    some = [batch for batch, _ in zip(loader.iter_epoch(0), range(9), strict=False)]
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
    return f"{fastest}An update takes about {seconds:.2f} s: {format_duration(seconds * updates)} in all."
