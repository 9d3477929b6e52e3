"""The engine without a server: static batches, sorted by length, or one text at a time.

    python -m bench.serving.bare FOLDER ctranslate2

Reads one job per line as JSON: {"texts": [...], "batch_size": 32}; answers with the CPU seconds of the process and the
milliseconds of each batch. Bare CTranslate2 gets tokens, which it needs as strings, and returns tokens: tokenization
is not timed. PyTorch goes from text to text with `Translator.translate`.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from bench.serving.models import BEAM_SIZE, TARGET_TOKENS
from regard.tasks.load import load
from regard.tasks.search import Beam
from regard.tasks.translation.ctranslate2_translator import CTranslate2Translator


def main() -> None:
    torch.set_num_threads(1)
    folder, engine = Path(sys.argv[1]), sys.argv[2]
    prepare, translate = make_ctranslate2(folder) if engine == "ctranslate2" else make_torch(folder)
    for line in sys.stdin:
        job = json.loads(line)
        rows = sorted(prepare(job["texts"]), key=len)
        size, times = job["batch_size"], []
        cpu_start = time.process_time()
        for start in range(0, len(rows), size):
            batch_start = time.perf_counter()
            translate(rows[start : start + size])
            times.append(1000 * (time.perf_counter() - batch_start))
        print(json.dumps({"cpu_seconds": time.process_time() - cpu_start, "times": times}), flush=True)


def make_ctranslate2(folder: Path) -> tuple[Callable[[list[str]], list[Any]], Callable[[Sequence[Any]], Any]]:
    """Return functions that encode texts and translate a batch."""
    import ctranslate2

    pipeline = load(folder, engine="ctranslate2")
    assert isinstance(pipeline, CTranslate2Translator)  # noqa: S101
    engine = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=1)

    def prepare(texts: list[str]) -> list[Any]:
        return [[str(token) for token in row] for row in pipeline.encode_sources(texts, None)]

    return prepare, lambda rows: engine.translate_batch(
        rows, beam_size=BEAM_SIZE, max_decoding_length=TARGET_TOKENS, max_batch_size=len(rows)
    )


def make_torch(folder: Path) -> tuple[Callable[[list[str]], list[Any]], Callable[[Sequence[Any]], Any]]:
    """Return functions that encode texts (not at all) and translate a batch."""
    translator = load(folder, task="translation")
    return lambda texts: texts, lambda rows: translator.translate(rows, Beam(BEAM_SIZE), batch_tokens=10**6)


if __name__ == "__main__":
    main()
