"""Write a run's metrics to `metrics.prom`, the text format of Prometheus.

The textfile collector of the node exporter reads such files: `node_exporter --collector.textfile.directory=my-model`.
"""

import time
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from regard.base.files import write_atomic
from regard.training.events import Event, Finished, StepFinished, Timed, Validated

INTERVAL = 10.0  # seconds between two writes


class PrometheusListener:
    """Keeps the newest metrics of a run in a file that is replaced as a whole.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._last_write = path, float("-inf")
        self._registry = CollectorRegistry()
        self._validation = self._make_gauge("validation", "Score of the last validation", "metric")
        self._steps = {
            "step": self._make_gauge("step", "Steps so far"),
            "loss": self._make_gauge("loss", "Loss per token of the last step"),
            "learning_rate": self._make_gauge("learning_rate", "Learning rate of the last step"),
            "gradient_norm": self._make_gauge("gradient_norm", "Gradient norm of the last step, before clipping"),
        }
        self._mfu = self._make_gauge("mfu", "FLOPs per second of the model relative to the peak of the devices")
        self._slowest = self._make_gauge("slowest_rank", "The rank with the most seconds of work per step")
        self._ranks = {
            "seconds": self._make_gauge("step_seconds", "Seconds per step", "rank"),
            "data_seconds": self._make_gauge("data_seconds", "Seconds per step waiting for batches", "rank"),
            "wait_seconds": self._make_gauge("wait_seconds", "Seconds per step waiting for other ranks", "rank"),
            "work_seconds": self._make_gauge("work_seconds", "Seconds per step without waiting for ranks", "rank"),
            "cpu_seconds": self._make_gauge("cpu_seconds", "CPU seconds per step", "rank"),
            "memory_bytes": self._make_gauge("memory_bytes", "Peak memory", "rank"),
        }

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        if isinstance(event, StepFinished):
            for name, gauge in self._steps.items():
                gauge.set(getattr(event, name))
        elif isinstance(event, Timed):
            self._mfu.set(event.mfu)
            self._slowest.set(event.slowest_rank)
            for name, gauge in self._ranks.items():
                for rank, value in enumerate(getattr(event, name)):
                    gauge.labels(rank).set(value)
        elif isinstance(event, Validated):
            for name, score in event.scores.items():
                self._validation.labels(name).set(score)
        is_due = time.monotonic() - self._last_write >= INTERVAL
        if isinstance(event, Timed | Validated | Finished) or (is_due and isinstance(event, StepFinished)):
            write_atomic(self._path, generate_latest(self._registry))
            self._last_write = time.monotonic()

    def _make_gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"regard:train_{name}", text, labels, registry=self._registry)
