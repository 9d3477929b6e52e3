"""Replicas of `regard serve` on a Ray cluster, behind Ray's own proxy.

    pip install "ray[serve]"
    MODELS=en-de=/models/en-de serve run deploy.ray_serve:deployment

Each replica is a whole server: its batcher, limits and metrics. Ray adds replicas while requests wait. Ray's proxy
listens on 127.0.0.1; the keys file (KEYS) protects the routes behind it.
"""

import os
from typing import Any

from ray import serve

from regard.serve.app import make_app
from regard.serve.settings import ServeSettings


def make_replica_app() -> Any:
    """Return the application of one replica; called in the replica's process."""
    import torch

    torch.set_num_threads(1)
    models = dict(pair.split("=", 1) for pair in os.environ["MODELS"].split(","))
    return make_app(ServeSettings.model_validate({"models": models, "keys_file": os.environ.get("KEYS")}))


@serve.deployment(  # type: ignore[untyped-decorator]
    max_ongoing_requests=256,
    ray_actor_options={"num_cpus": 1},
    autoscaling_config={"min_replicas": 1, "max_replicas": 8, "target_ongoing_requests": 64},
)
@serve.ingress(make_replica_app)  # type: ignore[untyped-decorator]
class Replica:
    """A server inside a Ray actor."""


deployment = Replica.bind()
