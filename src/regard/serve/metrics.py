"""Prometheus metrics, named like vLLM's with the prefix `regard:`. Labels are never user input."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Metrics of one server."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.running = Gauge("regard:num_requests_running", "Texts in a running batch", ["model"], registry=registry)
        self.waiting = Gauge("regard:num_requests_waiting", "Waiting texts", ["model"], registry=registry)
        self.latency = Histogram(
            "regard:e2e_request_latency_seconds",
            "Seconds from request to response",
            ["route"],
            registry=registry,
            buckets=SECONDS,
        )
        self.first_token_seconds = Histogram(
            "regard:time_to_first_token_seconds",
            "Seconds from request to the first streamed text",
            ["model"],
            registry=registry,
            buckets=SECONDS,
        )
        self.queue_seconds = Histogram(
            "regard:request_queue_time_seconds",
            "Seconds that a text spent waiting",
            ["model"],
            registry=registry,
            buckets=SECONDS,
        )
        self.batch_size = Histogram(
            "regard:batch_size", "Texts in a batch", ["model"], registry=registry, buckets=SIZES
        )
        self.prompt_tokens = Counter("regard:prompt_tokens", "Tokens read", ["model"], registry=registry)
        self.generation_tokens = Counter("regard:generation_tokens", "Tokens generated", ["model"], registry=registry)
        self.requests = Counter(
            "regard:request_success", "Completed requests by route and status", ["route", "status"], registry=registry
        )
        self.refused = Counter("regard:request_refused", "Refused requests", ["reason"], registry=registry)

    def render(self) -> bytes:
        """Return the text format of Prometheus."""
        return generate_latest(self.registry)
