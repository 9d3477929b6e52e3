"""Small models of every kind; each pair of values of two options occurs in at least one model."""

import itertools
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor

from regard.config.codec import MODEL_FILES
from regard.config.toml_file import TomlTable
from regard.models.build import AnyModel, build

WIDTH, VOCABULARY, LAYERS = 16, 23, 2

OPTIONS: dict[str, list[str]] = {
    "family": ["encoder_decoder", "decoder_only", "encoder_only"],
    "position": ["sinusoidal", "learned", "rotary", "alibi", "relative", "none"],
    "score": ["scaled_dot", "dot", "general", "concat", "additive"],
    "norm_order": ["pre", "post"],
    "norm": ["layer", "rms"],
    "heads": ["mha", "gqa", "mqa"],
    "feedforward": ["relu", "gelu", "swiglu"],
}
CELLS = ["rnn", "gru", "lstm"]
Choice = dict[str, str]


@cache
def sample_choices() -> list[Choice]:
    """Choose settings of every kind of stack."""
    return [*sample_attention_choices(), *list_recurrent_choices()]


def list_recurrent_choices() -> list[Choice]:
    """List cell x fixed vector and five scores, each score in one of two forms; and the families without a memory."""
    choices = []
    for number, cell in enumerate(CELLS):
        memories = [("none", "decoder_only"), ("none", "encoder_only"), ("fixed_vector", "encoder_decoder")]
        choices += [{"family": family, "cell": cell, "memory": kind, "score": "none"} for kind, family in memories]
        forms = [["bahdanau", "luong"][(number + index) % 2] for index in range(len(OPTIONS["score"]))]
        choices += [
            {"family": "encoder_decoder", "cell": cell, "memory": form, "score": score}
            for form, score in zip(forms, OPTIONS["score"], strict=True)
        ]
    return choices


@cache
def sample_attention_choices() -> list[Choice]:
    """Choose settings that cover family x position x score and every pair of option values (greedy, fixed seed)."""
    generator = random.Random(0)
    uncovered = set().union(
        *(_covered_pairs(dict(zip(OPTIONS, values, strict=True))) for values in itertools.product(*OPTIONS.values()))
    )
    choices = []
    while uncovered:
        candidates = [{name: generator.choice(values) for name, values in OPTIONS.items()} for _ in range(60)]
        best = max(candidates, key=lambda choice: len(uncovered & _covered_pairs(choice)))
        if uncovered & _covered_pairs(best):
            choices.append(best)
            uncovered -= _covered_pairs(best)
    return choices


def choice_name(choice: Choice) -> str:
    return "-".join(choice.values())


def make_model(choice: Choice, **changes: Any) -> AnyModel:
    """Build a model with random values in every parameter (norms and biases too), in eval mode."""
    model = build(MODEL_FILES.parse(make_settings(choice, **changes)), seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return model.eval()


@cache
def _build_shared(choice: tuple[tuple[str, str], ...], changes: tuple[tuple[str, Any], ...]) -> AnyModel:
    return make_model(dict(choice), **dict(changes))


def share_model(choice: Choice, **changes: Any) -> AnyModel:
    """Return the model of `make_model`, built once: building takes longer than running. Do not change it."""
    return _build_shared(tuple(choice.items()), tuple(changes.items()))


def make_audio_model(choice: Choice) -> AnyModel:
    """Build an encoder or encoder-decoder that reads mel frames, two for a vector."""
    table = make_settings(choice) | {"source": {"kind": "mel", "bins": 5}}
    if choice["family"] == "encoder_only":
        table |= {"task": "audio_classification", "head": {"kind": "classes", "labels": ["a", "b"]}}
    else:
        table |= {"task": "transcription"}
    return build(MODEL_FILES.parse(table), seed=1).eval()


def make_settings(choice: Choice, **changes: Any) -> TomlTable:
    tokens = {"kind": "tokens", "vocabulary": VOCABULARY, "scale": True}
    common = {"family": choice["family"], "d_model": WIDTH}
    if "cell" in choice:
        stack = encoder = {"kind": "recurrent", "cell": choice["cell"], "layers": LAYERS} | changes
        if choice["family"] != "decoder_only" and choice["memory"] != "fixed_vector":
            encoder = stack | {"bidirectional": True}
        score = {"score": _make_score(choice)} if choice["score"] != "none" else {}
        cross: TomlTable = {"cross": {"kind": choice["memory"], **score}}
    else:
        stack = encoder = _make_stack(choice) | changes
        cross = {"cross": _make_attention(choice)}
    match choice["family"]:
        case "encoder_decoder":
            return common | {"source": tokens, "target": tokens, "encoder": encoder, "decoder": stack | cross}
        case "decoder_only":
            return common | {"tokens": tokens, "decoder": stack}
        case _:
            head = {"kind": "mlm"}
            return common | {"source": tokens, "encoder": encoder, "head": head}


def count_records(choice: Choice) -> tuple[int, int]:
    """Return the numbers of attentions and of residuals that a pass records."""
    stacks = 2 if choice["family"] == "encoder_decoder" else 1
    if "cell" in choice:
        return LAYERS if choice["score"] != "none" else 0, stacks * (1 + LAYERS)
    return {1: 1, 2: 3}[stacks] * LAYERS, {1: 1 + 2 * LAYERS, 2: 2 + 5 * LAYERS}[stacks]


def random_tokens(rows: int, length: int, seed: int) -> Tensor:
    return torch.randint(VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def _covered_pairs(choice: Choice) -> set[tuple[tuple[str, str], ...]]:
    """Return the combinations that a choice covers."""
    return {*itertools.combinations(choice.items(), 2), tuple(itertools.islice(choice.items(), 3))}


def _make_stack(choice: Choice) -> TomlTable:
    position: TomlTable = {"kind": choice["position"]}
    if choice["position"] == "learned":
        position["length"] = 32
    if choice["position"] == "relative":
        # Few buckets and a short distance, so that the logarithmic ones are used.
        position |= {"buckets": 8, "distance": 12}
    return {
        "layers": LAYERS,
        "norm_order": choice["norm_order"],
        "final_norm": choice["norm_order"] == "pre",
        "norm": {"kind": choice["norm"]},
        "position": position,
        "attention": _make_attention(choice),
        "feedforward": {
            "relu": {"kind": "plain", "d_ff": 24, "activation": "relu"},
            "gelu": {"kind": "plain", "d_ff": 24, "activation": "gelu"},
            "swiglu": {"kind": "gated", "d_ff": 24, "activation": "silu"},
        }[choice["feedforward"]],
    }


def _make_score(choice: Choice) -> TomlTable:
    return {"kind": choice["score"], **({"hidden": 6} if choice["score"] in ("concat", "additive") else {})}


def _make_attention(choice: Choice) -> TomlTable:
    attention: TomlTable = {
        "heads": 4,
        "key_value_heads": {"mha": 4, "gqa": 2, "mqa": 1}[choice["heads"]],
        "score": _make_score(choice),
    }
    if choice["feedforward"] == "swiglu":  # this value also tests free d_k and d_v, and QK-norm
        attention |= {"key_dim": 6, "value_dim": 5, "query_key_norm": {"kind": "rms"}}
    return attention


def decoding_choices() -> Iterator[Choice]:
    """Yield the choices of the two families that generate."""
    return (choice for choice in sample_choices() if choice["family"] != "encoder_only")
