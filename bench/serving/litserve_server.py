"""Serve an export with LitServe: python -m bench.serving.litserve_server FOLDER PORT BATCH_SIZE SECONDS IS_FAST."""

import sys
from typing import Any

import litserve
import torch

from bench.serving.models import BEAM_SIZE
from regard.tasks.load import load
from regard.tasks.search import Beam


class TranslationApi(litserve.LitAPI):  # type: ignore[misc]
    """What LitServe calls for each batch."""

    def setup(self, device: str) -> None:  # noqa: ARG002
        """Load the model in the worker process."""
        torch.set_num_threads(1)
        self.translator = load(sys.argv[1], task="translation", engine="ctranslate2")

    def decode_request(self, request: dict[str, Any]) -> str:
        """Return the text of a request."""
        return request["q"]

    def predict(self, texts: list[str]) -> list[str]:
        """Translate a batch."""
        results = self.translator.translate(texts, Beam(BEAM_SIZE), batch_tokens=10**6, with_scores=False)
        return [result.text for result in results]

    def encode_response(self, text: str) -> dict[str, str]:
        """Return the answer to a request."""
        return {"translatedText": text}


if __name__ == "__main__":
    port, batch_size, wait, is_fast = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5] == "1"
    api = TranslationApi(max_batch_size=batch_size, batch_timeout=wait, api_path="/translate")
    litserve.LitServer(api, accelerator="cpu", workers_per_device=1, timeout=False, fast_queue=is_fast).run(
        host="127.0.0.1", port=port, num_api_servers=1, generate_client_file=False, log_level="error"
    )
