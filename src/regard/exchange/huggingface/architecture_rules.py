"""Settings that a Hugging Face architecture requires of its stacks, and checks for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from regard.config.parts import AttentionConfig, ProjectionBiasConfig, StackConfig
from regard.exchange.rules import describe_bias, describe_position, score_scale

ALL_BIASES = "query key value output"
POSITION_TABLES = ("sinusoidal/halves", "sinusoidal/interleaved")  # can be stored as a learned table


@dataclass(frozen=True)
class ArchitectureRules:
    """Settings that an architecture requires of its stacks; None: any value. Imported stacks have the first ones."""

    norm_order: Literal["pre", "post"]
    norm: Literal["layer", "rms"]
    input_norm: bool
    positions: tuple[str, ...]
    feedforwards: tuple[str, ...]
    bias: tuple[str, ...]  # sets of projections that may have a bias
    feedforward_bias: bool | None
    eps: float | None = None
    grouped: bool = False
    free_key_dim: bool = False
    query_key_norm: bool = False
    scale: float | None = None  # scale of the scores; None: 1/sqrt(d_k)

    def list_settings(self) -> dict[str, Any]:
        """Return the settings of a stack that follow from the rules, by path."""
        position, _, layout = self.positions[0].partition("/")
        position, _, offset = position.partition("+")
        feedforward, *activation = self.feedforwards[0].split()
        settings = {
            "norm_order": self.norm_order,
            "norm.kind": self.norm,
            "norm.eps": self.eps,
            "input_norm": self.input_norm,
            "final_norm": self.norm_order == "pre",
            "position.kind": position,
            "position.layout": layout or None,
            "position.offset": int(offset) if offset else None,
            "feedforward.kind": feedforward,
            "feedforward.activation": activation[0] if activation else None,
            "feedforward.bias": self.feedforward_bias,
            "attention.score.kind": "scaled_dot",
            "attention.score.scale": self.scale,
            "attention.query_key_norm.kind": self.norm if self.query_key_norm else None,
            **{f"attention.bias.{name}": name in self.bias[0].split() for name in ProjectionBiasConfig.model_fields},
        }
        return {path: value for path, value in settings.items() if value is not None}

    def find_stack_obstacles(self, path: str, stack: StackConfig, width: int) -> Iterator[str]:
        """Yield the settings of a stack that the architecture does not support."""
        if stack.norm_order != self.norm_order:
            yield f"{path}.norm_order is {stack.norm_order} (it requires {self.norm_order})"
        if stack.norm.kind != self.norm:
            yield f"{path}.norm is {stack.norm.kind} (it requires {self.norm})"
        elif self.eps is not None and stack.norm.eps != self.eps:
            yield f"{path}.norm.eps is {stack.norm.eps} (it requires {self.eps})"
        if stack.norm.kind == "layer" and not stack.norm.bias:
            yield f"{path}.norm has no bias"
        if stack.input_norm != self.input_norm:
            yield f"{path}.input_norm is {str(stack.input_norm).lower()}"
        if stack.final_norm != (self.norm_order == "pre"):
            yield f"{path}.final_norm is {str(stack.final_norm).lower()}"
        if (position := describe_position(stack.position)) not in self.positions:
            yield f"{path}.position is {position} (it requires {' or '.join(self.positions)})"
        if "sinusoidal/halves" in self.positions[:1] and getattr(stack.position, "base", 10000.0) != 10000.0:
            yield f"{path}.position.base is not 10000"
        kind = stack.feedforward.kind
        if kind not in self.feedforwards and f"{kind} {stack.feedforward.activation}" not in self.feedforwards:
            required = " or ".join(self.feedforwards)
            yield f"{path}.feedforward is {kind} {stack.feedforward.activation} (it requires {required})"
        if self.feedforward_bias is not None and stack.feedforward.bias != self.feedforward_bias:
            yield f"{path}.feedforward.bias is {str(stack.feedforward.bias).lower()}"
        if stack.window is not None:
            yield f"{path}.window is not supported"
        yield from self.find_attention_obstacles(f"{path}.attention", stack.attention, width)
        if stack.attention.query_key_norm is not None and stack.attention.query_key_norm != stack.norm:
            yield f"{path}.attention.query_key_norm is not the stack's norm"

    def find_attention_obstacles(self, path: str, attention: AttentionConfig, width: int) -> Iterator[str]:
        """Yield the settings of an attention that the architecture does not support."""
        key_dim, value_dim = attention.dims(width)
        scale = score_scale(attention, key_dim)
        if scale is None:
            yield f"{path}.score is {attention.score.kind} (it requires scaled_dot)"
        elif scale != (self.scale or key_dim**-0.5):
            yield f"{path}.score multiplies by {scale:.4g} (it requires {self.scale or key_dim**-0.5:.4g})"
        if attention.groups != attention.heads and not self.grouped:
            yield f"{path}.key_value_heads is not heads"
        if key_dim * attention.heads != width and not self.free_key_dim:
            yield f"{path}.key_dim is not d_model / heads"
        if value_dim != key_dim:
            yield f"{path}.value_dim is not key_dim"
        if (attention.query_key_norm is not None) != self.query_key_norm:
            yield f"{path}.query_key_norm is {'set' if attention.query_key_norm else 'not set'}"
        if (bias := describe_bias(attention)) not in self.bias:
            yield f"{path}.bias is on {bias} (it requires {' or '.join(self.bias)})"
