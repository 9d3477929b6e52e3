"""Serve an export with Ray Serve: python -m bench.serving.ray_serve_server FOLDER PORT BATCH_SIZE SECONDS IS_FAST."""

import os
import signal
import sys

os.environ["RAY_SERVE_THROUGHPUT_OPTIMIZED"] = sys.argv[5]  # Ray reads it when it is imported

import ray
import torch
from ray import serve
from starlette.requests import Request

from bench.serving.models import BEAM_SIZE
from regard.tasks.load import load
from regard.tasks.search import Beam

FOLDER, PORT, BATCH_SIZE, WAIT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])


@serve.deployment(max_ongoing_requests=256, ray_actor_options={"num_cpus": 1})
class Translation:
    """One replica."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self.translator = load(FOLDER, task="translation", engine="ctranslate2")

    @serve.batch(max_batch_size=BATCH_SIZE, batch_wait_timeout_s=WAIT)  # type: ignore[untyped-decorator]
    async def translate(self, texts: list[str]) -> list[str]:
        """Translate a batch."""
        results = self.translator.translate(texts, Beam(BEAM_SIZE), batch_tokens=10**6, with_scores=False)
        return [result.text for result in results]

    async def __call__(self, request: Request) -> dict[str, str]:
        """Answer one request."""
        return {"translatedText": await self.translate((await request.json())["q"])}


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    serve.run(Translation.bind(), route_prefix="/translate")  # type: ignore[attr-defined]
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    serve.shutdown()
    ray.shutdown()
