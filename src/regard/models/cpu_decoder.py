"""CPU fast path; reference: `EncoderDecoder.step`, `DecoderOnly.step`; proven by: tests/models/test_cpu_decoder.py.

Decoding one token per step runs many small matrix products, and most of the time is spent on call overhead and reading
weights. `CpuDecoder` therefore copies the decoder's matrices once: transposed (the layout that a product of few rows
reads fastest), with query, key and value packed into one matrix, and with the scale of the scores folded into the
query. A step is then a plain sequence of calls. It uses the same cache as the model's own `step`, so the two can
alternate.

It supports only the exact module classes in `KNOWN`, without forward hooks, parametrizations or replaced methods. For
every other decoder, `CpuDecoder` calls `model.step`, and logs why if a module was changed. It also calls `model.step`
for several tokens per step, rows of unequal length, windows, autocast and other devices.

    decoder = CpuDecoder(model)
    state = model.start(source, valid, capacity=100)
    logits = decoder.step(tokens, state)        # equal to model.step(tokens, state) up to rounding

Later changes to the model do not affect the copy. `LazyCpuDecoder` checks the model at every use.
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import torch
from torch import Tensor, nn

from regard.base import cpu_fast_path
from regard.base.errors import RegardError
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.models.heads import LMHead
from regard.models.inputs import TokenInput
from regard.nn.attention import Attention, CrossAttention, SelfAttention
from regard.nn.autocast_attention import AutocastCrossAttention, AutocastSelfAttention
from regard.nn.dropout import Dropout
from regard.nn.feedforward import FeedForward
from regard.nn.kv_cache import DecodingState, KVCache
from regard.nn.layer import Layer, Residual
from regard.nn.norm import RMSNorm
from regard.nn.positions import Learned, Position, Rotary, Sinusoidal
from regard.nn.scores import ScoreFunction
from regard.nn.stack import Stack

logger = logging.getLogger("regard.models")

TensorFn = Callable[[Tensor], Tensor]
Kinds = tuple[type[nn.Module], ...]

NORMS: Kinds = (nn.LayerNorm, RMSNorm)
LINEAR: Kinds = (nn.Linear,)
DROPOUT: Kinds = (Dropout,)
ATTENTION: dict[str, Kinds] = {
    "query": LINEAR,
    "key": LINEAR,
    "value": LINEAR,
    "output": LINEAR,
    "score": (ScoreFunction,),
}
KNOWN: dict[type[nn.Module], dict[str, Kinds]] = {  # the modules that a packed decoder runs, and their children
    EncoderDecoder: {"target": (TokenInput,), "decoder": (Stack,), "head": (LMHead,)},
    DecoderOnly: {"tokens": (TokenInput,), "decoder": (Stack,), "head": (LMHead,)},
    TokenInput: {"embedding": (nn.Embedding,)},
    Stack: {
        "position": (Position, Sinusoidal, Learned, Rotary),
        "input_norm": NORMS,
        "token_dropout": DROPOUT,
        "dropout": DROPOUT,
        "layers": (nn.ModuleList,),
        "final_norm": NORMS,
    },
    nn.ModuleList: {},  # layers, named by number
    Layer: {
        "attention": (SelfAttention, AutocastSelfAttention),
        "attention_residual": (Residual,),
        "cross": (CrossAttention, AutocastCrossAttention),
        "cross_residual": (Residual,),
        "feedforward": (FeedForward,),
        "feedforward_residual": (Residual,),
    },
    Residual: {"norm": NORMS, "dropout": DROPOUT},
    SelfAttention: ATTENTION,
    AutocastSelfAttention: ATTENTION,
    CrossAttention: ATTENTION,
    AutocastCrossAttention: ATTENTION,
    FeedForward: {"up": LINEAR, "gate": LINEAR, "down": LINEAR, "dropout": DROPOUT},
    LMHead: {"projection": (nn.Linear, nn.Embedding)},
    Learned: {"table": (nn.Embedding,)},
    **{kind: {} for kind in (nn.Linear, nn.Embedding, *NORMS, Dropout, ScoreFunction, Position, Sinusoidal, Rotary)},
}

METHODS = {  # recorded at import, because a class can also be patched
    kind: {name: getattr(kind, name) for name in {*dir(kind)} - {*dir(nn.Module)} | {"forward", "_call_impl"}}
    for kind in KNOWN
}


class CpuDecoder:
    """A generating model with a packed copy of its decoder's weights, for steps of one token on a CPU.

    Args:
        model: The model.
        previous: A decoder whose copies are reused where the weights have not changed.
    """

    def __init__(self, model: EncoderDecoder | DecoderOnly, previous: "CpuDecoder | None" = None) -> None:
        self.model = model
        self.change = _find_change(model)  # what the packed weights would ignore
        pack = _Packer({} if previous is None else previous.copies)
        self._plan = _Plan(model, pack) if self.change is None and _is_supported(model) else None
        self.copies: dict[tuple[object, ...], _Copy] = pack.copies

    @property
    def is_supported(self) -> bool:
        """Whether the packed weights can run this model; otherwise every step is `model.step`."""
        return self._plan is not None

    def step(self, tokens: Tensor, state: DecodingState) -> Tensor:
        """Return logits (R, k, vocabulary) for the next k tokens (R, k) of each row, and advance the state."""
        kv_cache = state.kv_cache
        if (
            self._plan is None
            or tokens.size(1) != 1
            or kv_cache.lengths is not None
            or torch.is_autocast_enabled("cpu")
        ):
            return self.model.step(tokens, state)
        max_positions = self.model.decoder.position.max_positions
        if max_positions is not None and kv_cache.length >= max_positions:
            return self.model.step(tokens, state)  # raises the error
        return self._plan.step(tokens[:, 0], state)[:, None]  # (R, 1, vocabulary)


class LazyCpuDecoder:
    """Packs a model's weights for the duration of a `with` block, so later changes to the model take effect.

    Packing takes 9 ms for preset `tiny`. Many short calls can share one copy inside an outer
    `with decoder.prepared(model):`. Every inner block checks the model again and copies changed weights; a running
    search or stream keeps its copy.
    """

    def __init__(self) -> None:
        self._decoder: CpuDecoder | None = None
        self._users, self._lock = 0, Lock()  # nested blocks and threads share one copy
        self._training_modules: list[nn.Module] = []
        self._logged_changes: set[str] = set()

    @contextmanager
    def prepared(self, model: EncoderDecoder | DecoderOnly) -> Iterator[None]:
        """Switch dropout off and pack the weights; `step` is available inside the block.

        This does not disable gradients: a generator that yields inside the block would also disable them for its
        caller. Callers use `torch.inference_mode`.

        Raises:
            RegardError: `model(...)` was changed in a way that `model.step` ignores.
        """
        check_bypass(model, STEP_BYPASSES)
        with self._lock:
            self._training_modules += _set_eval(model)
            with torch.inference_mode():
                self._decoder = CpuDecoder(model, self._decoder)
            self._log(self._decoder.change)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._decoder = None
                    _set_training(self._training_modules)
                    self._training_modules = []

    def _log(self, change: "_Change | None") -> None:
        """Log once that the fast path is off, unless the settings chose a module that it does not support."""
        if change is None or change.is_setting or change.text in self._logged_changes:
            return
        self._logged_changes.add(change.text)
        logger.warning("The CPU fast path for decoding is off: %s. The model's own step runs instead.", change.text)

    @property
    def has_packed_weights(self) -> bool:
        """Whether one-token steps use a packed copy and therefore ignore later weight changes."""
        return self._decoder is not None and self._decoder.is_supported

    @property
    def step(self) -> Callable[[Tensor, DecodingState], Tensor]:
        """The `step` of the packed decoder: equal to `model.step`, but faster."""
        assert self._decoder is not None  # noqa: S101 - only inside `prepared`
        return self._decoder.step


@contextmanager
def eval_mode(model: nn.Module, *, bypasses: Sequence[str] = ()) -> Iterator[None]:
    """Put a model into evaluation mode; on exit every module returns to the mode that it had.

    A caller that runs a model's parts directly lists the methods it `bypasses` (see `check_bypass`).
    """
    check_bypass(model, bypasses)
    training_modules = _set_eval(model)
    try:
        yield
    finally:
        _set_training(training_modules)


STEP_BYPASSES = ("forward", "hidden_states", "decode")  # `start` and `step` call none of them


def check_bypass(model: nn.Module, names: Sequence[str]) -> None:
    """Raise an error if the model overrides a method that the caller bypasses: the result would silently differ.

    Args:
        model: A model of Regard, or a subclass of one. A subclass with its own `step` is trusted.
        names: Methods of the model that are not called. Hooks on the whole model belong to `forward`.

    Raises:
        RegardError: One of them was replaced, or the whole model has a forward hook.
    """
    family = next((kind for kind in type(model).__mro__ if kind in (EncoderDecoder, DecoderOnly, EncoderOnly)), None)
    if family is None or not names or _is_replaced(model, family, "step"):
        return
    if model._forward_hooks or model._forward_pre_hooks:
        message = f"The {family.__name__} has a forward hook, which only `model(...)` runs."
        raise RegardError(message, hint="Register the hook on a part of the model, such as `model.head`.")
    for name in names:
        if _is_replaced(model, family, name):
            message = f"The model overrides `{name}`, but this task calls the model's parts directly."
            raise RegardError(
                message, hint="Replace a part of the model, such as `model.head`, or override `step` as well."
            )


def _is_replaced(model: nn.Module, family: type[nn.Module], name: str) -> bool:
    method = getattr(model, name, None)
    return getattr(method, "__func__", method) is not getattr(family, name, None)


def _set_eval(model: nn.Module) -> list[nn.Module]:
    """Put a model into evaluation mode and return the modules that were in training mode."""
    training_modules = [module for module in model.modules() if module.training]
    if training_modules:
        model.eval()
    return training_modules


def _set_training(modules: list[nn.Module]) -> None:
    for module in modules:
        module.training = True


@dataclass(frozen=True)
class _PackedLinear:
    """x W + b, with W stored as (in, out): the layout that few rows of x read fastest."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """(R, in) -> (R, out)."""
        return torch.mm(x, self.weight) if self.bias is None else torch.addmm(self.bias, x, self.weight)


Part = tuple[nn.Linear | nn.Embedding, float]  # a matrix (out, in) and the factor that scales its product
_Copy = tuple[_PackedLinear, list[Tensor]]  # with its sources: while they are held, no tensor takes their addresses


class _Packer:
    """Packs the Linears that read the same vectors into one product.

    Args:
        previous: Copies from an earlier plan, reused if their source tensors have not changed.
    """

    def __init__(self, previous: Mapping[tuple[object, ...], _Copy]) -> None:
        self._previous = previous
        self.copies: dict[tuple[object, ...], _Copy] = {}

    def __call__(self, *parts: Part) -> _PackedLinear:
        """Return the packed product of some Linears."""
        return self.pack(parts, [getattr(part, "bias", None) for part, _ in parts])

    def pack(self, parts: Sequence[Part], biases: Sequence[Tensor | None]) -> _PackedLinear:
        """Return the packed product of some matrices, with these biases."""
        sources = [tensor.detach() for tensor in (*(part.weight for part, _ in parts), *biases) if tensor is not None]
        if any(tensor.is_inference() for tensor in sources):  # torch does not count their changes
            return _pack(parts, biases)
        key = (
            *((tensor.data_ptr(), tensor._version, tensor.dtype, tensor.shape, tensor.stride()) for tensor in sources),
            *(factor for _, factor in parts),
        )
        self.copies[key] = self._previous.get(key) or (_pack(parts, biases), sources)
        return self.copies[key][0]


class _Plan:
    """The packed weights of a decoder and the sequence of calls that a step makes."""

    def __init__(self, model: EncoderDecoder | DecoderOnly, pack: _Packer) -> None:
        tokens = model.target if isinstance(model, EncoderDecoder) else model.tokens
        self.embedding, self.scale = tokens.embedding, tokens.scale
        self.layers = [_Layer(layer, pack) for layer in model.decoder.layers]
        self.final_norm = _norm_function(model.decoder.final_norm)
        self.input_norm = _norm_function(model.decoder.input_norm)
        head = model.head
        assert isinstance(head, LMHead)  # noqa: S101 - one of `KNOWN`
        self.head = pack.pack([(head.projection, 1.0)], [head.bias])
        self.positions = _PositionTable(model.decoder.position, self.embedding.weight)

    def step(self, tokens: Tensor, state: DecodingState) -> Tensor:
        """(R) -> (R, vocabulary)."""
        kv_cache = state.kv_cache
        x = self.embedding(tokens)  # (R, D)
        position_vector = self.positions.vector(kv_cache.length)  # (D)
        if position_vector is not None:
            x = torch.add(position_vector, x, alpha=self.scale or 1)
        elif self.scale is not None:
            x = x * self.scale
        if self.input_norm is not None:
            x = self.input_norm(x)
        rotate = self.positions.rotation(kv_cache.length)
        mask_bias = None if state.memory_valid is None else self._mask_bias(state.memory_valid, x)
        for layer in self.layers:
            x = layer(x, kv_cache, rotate, mask_bias)
        kv_cache.advance(1)
        if self.final_norm is not None:
            x = self.final_norm(x)
        return self.head(x)

    def _mask_bias(self, valid: Tensor, x: Tensor) -> Tensor:
        """Return the bias on the scores of cross-attention, (B, 1, S): 0 for tokens, -inf for padding."""
        cached_bias = self._cached_mask_bias
        if cached_bias is None or cached_bias[0] is not valid:
            bias = torch.zeros(valid.shape, dtype=x.dtype).masked_fill_(~valid, -math.inf)[:, None]
            cached_bias = self._cached_mask_bias = (
                valid,
                bias,
            )  # one assignment: other threads may decode other sources
        return cached_bias[1]

    _cached_mask_bias: tuple[Tensor, Tensor] | None = None


class _Layer:
    """Packed weights of one layer: self-attention, optional cross-attention, feed-forward."""

    def __init__(self, layer: Layer, pack: _Packer) -> None:
        self.attention = _SelfAttention(layer.attention, layer.attention_residual, pack)
        self.cross = None
        if layer.cross is not None and layer.cross_residual is not None:
            self.cross = _CrossAttention(layer.cross, layer.cross_residual, pack)
        self.feedforward = _FeedForward(layer.feedforward, layer.feedforward_residual, pack)

    def __call__(self, x: Tensor, kv_cache: KVCache, rotate: TensorFn | None, mask_bias: Tensor | None) -> Tensor:
        x = self.attention(x, kv_cache, rotate)
        if self.cross is not None:
            x = self.cross(x, kv_cache, mask_bias)
        return self.feedforward(x)


class _Sublayer:
    """x + f(norm(x)) or norm(x + f(x))."""

    def __init__(self, residual: Residual) -> None:
        norm = _norm_function(residual.norm)
        self.pre_norm = norm if residual.is_pre_norm else None
        self.post_norm = None if residual.is_pre_norm else norm

    def apply_pre_norm(self, x: Tensor) -> Tensor:
        return x if self.pre_norm is None else self.pre_norm(x)

    def add_residual(self, x: Tensor, update: Tensor) -> Tensor:
        update.add_(x)
        return update if self.post_norm is None else self.post_norm(update)


class _SelfAttention(_Sublayer):
    """Self-attention of one new token per row: R rows, each with its own cached keys and values."""

    def __init__(self, attention: Attention, residual: Residual, pack: _Packer) -> None:
        super().__init__(residual)
        self.name = attention.name
        self.key_dim, self.value_dim = attention.key_dim, attention.value_dim
        scale = attention.score.scale
        assert scale is not None  # noqa: S101 - checked by `_is_supported`
        self.qkv = pack((attention.query, scale), (attention.key, 1.0), (attention.value, 1.0))
        self.output = pack((attention.output, 1.0))
        self.split_sizes = [linear.weight.size(0) for linear in (attention.query, attention.key, attention.value)]

    def __call__(self, x: Tensor, kv_cache: KVCache, rotate: TensorFn | None) -> Tensor:
        rows, end, size = x.size(0), kv_cache.length + 1, self.key_dim
        packed = self.qkv(self.apply_pre_norm(x))  # (R, H K + G K + G V)
        query, key, value = packed.split_with_sizes(self.split_sizes, dim=1)
        query, key = query.view(rows, -1, 1, size), key.view(rows, -1, 1, size)  # (R, H, 1, K), (R, G, 1, K)
        value = value.view(rows, -1, 1, self.value_dim)  # (R, G, 1, V)
        if rotate is not None:
            query, key = rotate(query), rotate(key)
        keys, values = kv_cache.buffers(self.name, key, value)  # (R, G, capacity, ...)
        keys[:, :, kv_cache.length : end] = key
        values[:, :, kv_cache.length : end] = value
        count = rows * keys.size(1)
        query = query.reshape(count, -1, size)  # (R G, H / G, K)
        scores = torch.bmm(query, keys.flatten(0, 1)[:, :end].transpose(1, 2))  # (R G, H / G, S)
        output = torch.bmm(scores.softmax(dim=-1), values.flatten(0, 1)[:, :end])  # (R G, H / G, V)
        return self.add_residual(x, self.output(output.view(rows, -1)))


class _CrossAttention(_Sublayer):
    """Attention of one token per row to a memory. W = R / B rows (the beams of a sentence) share one memory row."""

    def __init__(self, attention: CrossAttention, residual: Residual, pack: _Packer) -> None:
        super().__init__(residual)
        self.name, self.key_dim = attention.name, attention.key_dim
        scale = attention.score.scale
        assert scale is not None  # noqa: S101 - checked by `_is_supported`
        self.query = pack((attention.query, scale))
        self.output = pack((attention.output, 1.0))

    def __call__(self, x: Tensor, kv_cache: KVCache, mask_bias: Tensor | None) -> Tensor:
        keys, values = kv_cache.memory(self.name)  # (B, G, S, K), (B, G, S, V)
        batch_size, groups, length, size = keys.shape
        query = self.query(self.apply_pre_norm(x)).view(batch_size, -1, groups, self.heads_per_group(groups), size)
        merged_query = query.transpose(1, 2).reshape(batch_size * groups, -1, size)  # (B G, W H / G, K)
        scores = torch.bmm(merged_query, keys.flatten(0, 1).transpose(1, 2))  # (B G, W H / G, S)
        if mask_bias is not None:
            scores.view(batch_size, -1, length).add_(mask_bias)
        output = torch.bmm(scores.softmax(dim=-1), values.flatten(0, 1))  # (B G, W H / G, V)
        output = output.view(batch_size, groups, -1, self.heads_per_group(groups) * values.size(3)).transpose(1, 2)
        return self.add_residual(x, self.output(output.reshape(x.size(0), -1)))  # (B, W, G, H / G V) -> (R, H V)

    def heads_per_group(self, groups: int) -> int:
        return self.query.weight.size(1) // (groups * self.key_dim)


class _FeedForward(_Sublayer):
    """Feed-forward; the gate and the up projection are one product."""

    def __init__(self, feedforward: FeedForward, residual: Residual, pack: _Packer) -> None:
        super().__init__(residual)
        up_projections = (feedforward.up,) if feedforward.gate is None else (feedforward.gate, feedforward.up)
        self.up = pack(*((linear, 1.0) for linear in up_projections))
        self.is_gated = feedforward.gate is not None
        self.activation = torch.relu_ if feedforward.activation is nn.functional.relu else feedforward.activation
        self.down = pack((feedforward.down, 1.0))

    def __call__(self, x: Tensor) -> Tensor:
        hidden = self.up(self.apply_pre_norm(x))  # (R, hidden), or (R, 2 hidden) with a gate
        if self.is_gated:
            gate, up = hidden.chunk(2, dim=1)
            hidden = self.activation(gate) * up
        else:
            hidden = self.activation(hidden)
        return self.add_residual(x, self.down(hidden))


class _PositionTable:
    """Position vectors and rotary angles of single tokens, precomputed up to a length that doubles on demand."""

    def __init__(self, position: Position, embedding: Tensor) -> None:
        self.position, self.embedding = position, embedding
        self.vectors: Tensor | None = None
        self.angles: tuple[Tensor, Tensor] | None = None
        self.length = 0

    def vector(self, position: int) -> Tensor | None:
        """Return the vector to add to the embedding of a token at this position, (D); None if there is none."""
        self._extend(position)
        return None if self.vectors is None else self.vectors[position]

    def rotation(self, position: int) -> TensorFn | None:
        """Return the function that rotates queries and keys at this position."""
        if self.angles is None:
            return None
        angles = (self.angles[0][:, :, position : position + 1], self.angles[1][:, :, position : position + 1])
        return lambda heads: self.position.on_heads(heads, angles)

    def _extend(self, position: int) -> None:
        if position < self.length:
            return
        count = max(128, 2 * position)
        if self.position.max_positions is not None:
            count = min(count, self.position.max_positions)
        positions = torch.arange(count)[None]
        if isinstance(self.position, Sinusoidal | Learned):
            self.vectors = self.position.on_input(
                self.embedding.new_zeros(1, count, self.embedding.size(1)), positions
            )[0]
        self.angles = self.position.angles(positions)
        self.length = count  # assigned last: other threads read it without a lock


def _is_supported(model: EncoderDecoder | DecoderOnly) -> bool:
    """Whether the fast path is on, the model is on the CPU, and its decoder has no mask except the causal one."""
    mask = model.decoder_mask if isinstance(model, EncoderDecoder) else model.mask
    return (
        cpu_fast_path.is_enabled()
        and all(parameter.device.type == "cpu" for parameter in model.parameters())
        and mask.is_at_most_causal
        and mask.causal
    )


@dataclass(frozen=True)
class _Change:
    """Why a decoder has to run its own modules."""

    text: str
    is_setting: bool  # a module of Regard, as adapters or ALiBi: no change that a user made by hand


def _find_change(model: EncoderDecoder | DecoderOnly) -> _Change | None:
    """Return the first change that the packed weights would ignore; None if they compute the same as the modules."""
    if nn.modules.module._has_any_global_hook():
        return _Change("PyTorch has a global module hook", is_setting=False)
    return _examine("model", model, (EncoderDecoder, DecoderOnly))


def _examine(path: str, module: nn.Module, kinds: Kinds) -> _Change | None:
    """Check one module and its children; `kinds` are the supported classes."""
    kind = type(module)
    if kind not in kinds:  # without `kinds` it is an optional part, as token types
        is_setting = not kinds or kind.__module__.startswith("regard.")
        return _Change(f"{path} is of the class {kind.__name__}", is_setting)
    if module._forward_hooks or module._forward_pre_hooks:
        return _Change(f"{path} has a forward hook", is_setting=False)
    for name, method in METHODS[kind].items():
        if getattr(kind, name) != method or (callable(method) and name in vars(module)):
            return _Change(f"{path}.{name} was replaced", is_setting=False)
    for name, parameter in module._parameters.items():
        if parameter is not None and type(parameter) is not nn.Parameter:
            return _Change(f"{path}.{name} is of the class {type(parameter).__name__}", is_setting=False)
    for name, child in module._modules.items():
        child_kinds = (Layer,) if kind is nn.ModuleList else KNOWN[kind].get(name, ())
        is_step = child_kinds or kind not in (EncoderDecoder, DecoderOnly)  # an encoder is no part of a step
        if child is not None and is_step and (change := _examine(f"{path}.{name}", child, child_kinds)):
            return change
    return None


def _pack(parts: Sequence[Part], biases: Sequence[Tensor | None]) -> _PackedLinear:
    weights = [part.weight.detach() if factor == 1 else part.weight.detach() * factor for part, factor in parts]
    weight = weights[0] if len(weights) == 1 else torch.cat(weights)  # (out, in)
    if all(bias is None for bias in biases):
        return _PackedLinear(weight.t().contiguous(), None)
    bias_parts = weight.new_zeros(weight.size(0)).split([part.weight.size(0) for part, _ in parts])
    for zeros, bias, (_, factor) in zip(bias_parts, biases, parts, strict=True):
        if bias is not None:
            zeros.add_(bias.detach(), alpha=factor)
    return _PackedLinear(weight.t().contiguous(), torch.cat(bias_parts))


def _norm_function(norm: nn.Module | None) -> TensorFn | None:
    """Return a norm as a plain function, without the cost of calling a module."""
    if norm is None:
        return None
    if type(norm) is nn.LayerNorm:
        shape, weight, bias, eps = list(norm.normalized_shape), norm.weight, norm.bias, norm.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    return norm.forward
