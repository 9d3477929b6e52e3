"""Run settings for the tests of plans: small models, no corpus."""

from typing import Any

from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig

SMALL: dict[str, Any] = {
    "data": {"train": [{"kind": "documents", "path": "text.txt"}], "batch_tokens": 512, "max_length": 64},
    "tokenizer": {"kind": "byte"},
    "model": {
        "preset": "llama",
        "width": 64,
        "tokens": {"kind": "tokens", "vocabulary": 1000},
        "decoder": {
            "layers": 2,
            "attention": {"heads": 4, "key_value_heads": 2},
            "feedforward": {"kind": "gated", "hidden": 128, "activation": "silu"},
        },
    },
    "train": {"updates": 100, "update_tokens": 512, "schedule": {"kind": "constant", "peak": 0.001}},
    "device": {"name": "cpu", "threads": 1, "attention": "autocast", "logit_rows": 64},
}


def make_run(**changes: Any) -> RunConfig:
    """Return the settings of a small language model; `__` in names stands for a dot."""
    return RUN_FILES.parse(SMALL, {name.replace("__", "."): value for name, value in changes.items()})
