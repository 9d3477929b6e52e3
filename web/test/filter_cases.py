"""Write distributions of regard.decode.filters, to compare filters.ts with: python filter_cases.py FOLDER."""

import itertools
import json
import os
import sys
from pathlib import Path

import torch

from regard.decode.filters import Filters

VECTORS, VOCABULARY = int(os.environ.get("LOOK_VECTORS", "1000")), 40  # CI takes fewer
VALUES = {
    "no_repeat_ngram": 2,
    "repetition_penalty": 1.3,
    "temperature": 0.7,
    "top_k": 15,
    "top_p": 0.85,
    "min_p": 0.05,
    "typical_p": 0.9,
}


def main() -> None:
    """Write logprobs, histories and the distribution of every combination of filters as float32."""
    folder = Path(sys.argv[1])
    generator = torch.Generator().manual_seed(1)
    logprobs = (2 * torch.randn(VECTORS, VOCABULARY, generator=generator)).log_softmax(dim=1)
    history = torch.randint(VOCABULARY, (VECTORS, 12), generator=generator)
    combinations = [
        dict(itertools.compress(VALUES.items(), chosen))
        for chosen in itertools.product([False, True], repeat=len(VALUES))
    ]
    (folder / "cases.json").write_text(
        json.dumps({"vocabulary": VOCABULARY, "history": history.tolist(), "combinations": combinations})
    )
    logprobs.numpy().astype("<f4").tofile(folder / "logprobs.f32")
    with (folder / "expected.f32").open("wb") as file:
        for settings in combinations:
            filters = Filters(**settings)  # type: ignore[arg-type]
            penalized = filters.apply_penalties(logprobs, history)
            file.write(filters.probabilities(penalized).numpy().astype("<f4").tobytes())


if __name__ == "__main__":
    main()
