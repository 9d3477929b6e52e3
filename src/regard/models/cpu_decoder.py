"""CPU fast path; reference: `EncoderDecoder.step`, `DecoderOnly.step`; proven by: tests/models/test_cpu_decoder.py.

Decoding one token per step runs many small matrix products, and most of the time goes into calling them and reading
weights. `CpuDecoder` therefore copies the decoder's matrices once: transposed (the layout that a product of few rows
reads fastest), with query, key and value packed into one matrix, and with the scale of the scores folded into the
query. A step is then a plain sequence of calls. It works on the cache that the model's own `step` fills, so the two
can alternate. `CpuDecoder` calls `model.step` for what it does not support: several tokens per step, rows of unequal
length, recurrent layers, biases on scores, windows, scores that are not dot products, adapters, autocast, other
devices.

    decoder = CpuDecoder(model)
    state = model.start(source, valid, capacity=100)
    logits = decoder.step(tokens, state)        # equal to model.step(tokens, state) up to rounding

The copy does not follow later changes of the weights. `LazyCpuDecoder` makes a new copy for every use.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import torch
from torch import Tensor, nn

from regard.base import cpu_fast_path
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.heads import LMHead
from regard.nn.attention import Attention, CrossAttention
from regard.nn.feedforward import FeedForward
from regard.nn.kv_cache import DecodingState, KVCache
from regard.nn.layer import Layer, Residual
from regard.nn.positions import Learned, Position, Rotary, Sinusoidal
from regard.nn.recurrent import Recurrent
from regard.nn.scores import Score

TensorFn = Callable[[Tensor], Tensor]


class CpuDecoder:
    """A generating model with a packed copy of its decoder's weights, for steps of one token on a CPU."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        self.model = model
        self._plan = _Plan(model) if _is_supported(model) else None

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
    """Packs a model's weights for the duration of a `with` block, so that later changes of the weights take effect.

    Packing takes 9 ms for preset `tiny`. Many short calls can share one copy inside an outer
    `with decoder.prepared():`. If the weights have changed inside it, as by another adapter, the next inner block packs
    them again; a search or a stream keeps the copy that it began with.
    """

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        self._model = model
        self._decoder: CpuDecoder | None = None
        self._users, self._lock = 0, Lock()  # nested blocks and threads share one copy
        self._version = 0  # of the packed weights
        self._training_modules: list[nn.Module] = []

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Switch dropout off and pack the weights; `step` is available inside the block.

        This does not disable gradients: a generator that yields inside the block would disable them for its caller,
        too. Callers use `torch.inference_mode`.
        """
        with self._lock:
            weights = [weight for weight in self._model.parameters() if not weight.is_inference()]
            version = sum(weight._version for weight in weights)  # torch counts changes in place
            if self._users == 0:
                self._training_modules = _set_eval(self._model)
            if self._decoder is None or version != self._version:
                with torch.inference_mode():
                    self._decoder, self._version = CpuDecoder(self._model), version
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._decoder = None
                    _set_training(self._training_modules)

    @property
    def is_packed(self) -> bool:
        """Whether steps of one token read a packed copy only, so that they do not follow changes of the weights."""
        return self._decoder is not None and self._decoder.is_supported

    @property
    def step(self) -> Callable[[Tensor, DecodingState], Tensor]:
        """The `step` of the packed decoder: equal to `model.step`, but faster."""
        assert self._decoder is not None  # noqa: S101 - only inside `prepared`
        return self._decoder.step


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode; on exit every module returns to the mode that it had."""
    training_modules = _set_eval(model)
    try:
        yield
    finally:
        _set_training(training_modules)


def _set_eval(model: nn.Module) -> list[nn.Module]:
    """Put a model into evaluation mode and return the modules that were in training mode."""
    training_modules = [module for module in model.modules() if module.training]
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


class _Plan:
    """The packed weights of a decoder and the sequence of calls that a step makes."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        tokens = model.target if isinstance(model, EncoderDecoder) else model.tokens
        self.embedding, self.scale = tokens.embedding.weight, tokens.scale
        self.stack = model.decoder
        self.layers = [_Layer(layer) for layer in model.decoder.layers]
        self.final_norm = _norm_function(model.decoder.final_norm)
        self.input_norm = _norm_function(model.decoder.input_norm)
        head = model.head
        assert isinstance(head, LMHead)  # noqa: S101 - checked by `_is_supported`
        self.head = _PackedLinear(
            head.projection.weight.detach().t().contiguous(), None if head.bias is None else head.bias.detach()
        )
        self.positions = _PositionTable(model.decoder.position, self.embedding)

    def step(self, tokens: Tensor, state: DecodingState) -> Tensor:
        """(R) -> (R, vocabulary)."""
        kv_cache = state.kv_cache
        x = nn.functional.embedding(tokens, self.embedding)  # (R, D)
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

    def __init__(self, layer: Layer) -> None:
        self.attention = _SelfAttention(layer.attention, layer.attention_residual)
        self.cross = None
        if layer.cross is not None and layer.cross_residual is not None:
            self.cross = _CrossAttention(layer.cross, layer.cross_residual)
        self.feedforward = _FeedForward(layer.feedforward, layer.feedforward_residual)

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

    def __init__(self, attention: Attention, residual: Residual) -> None:
        super().__init__(residual)
        self.name = attention.name
        self.key_dim, self.value_dim = attention.key_dim, attention.value_dim
        scale = attention.score.scale
        assert scale is not None  # noqa: S101 - checked by `_is_supported`
        self.qkv = _pack((attention.query, scale), (attention.key, 1.0), (attention.value, 1.0))
        self.output = _pack((attention.output, 1.0))
        self.split_sizes = [linear.out_features for linear in (attention.query, attention.key, attention.value)]

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

    def __init__(self, attention: CrossAttention, residual: Residual) -> None:
        super().__init__(residual)
        self.name, self.key_dim = attention.name, attention.key_dim
        scale = attention.score.scale
        assert scale is not None  # noqa: S101 - checked by `_is_supported`
        self.query = _pack((attention.query, scale))
        self.output = _pack((attention.output, 1.0))

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

    def __init__(self, feedforward: FeedForward, residual: Residual) -> None:
        super().__init__(residual)
        up_projections = (feedforward.up,) if feedforward.gate is None else (feedforward.gate, feedforward.up)
        self.up = _pack(*((linear, 1.0) for linear in up_projections))
        self.is_gated = feedforward.gate is not None
        self.activation = torch.relu_ if feedforward.activation is nn.functional.relu else feedforward.activation
        self.down = _pack((feedforward.down, 1.0))

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
    """Whether the fast path is on, the model is on the CPU, and this module implements every part of its decoder."""
    decoder = model.decoder
    if isinstance(decoder, Recurrent):
        return False
    tokens = model.target if isinstance(model, EncoderDecoder) else model.tokens
    mask = model.decoder_mask if isinstance(model, EncoderDecoder) else model.mask
    attentions = [layer.attention for layer in decoder.layers]
    crosses = [layer.cross for layer in decoder.layers if layer.cross is not None]
    linears = [module for layer in decoder.layers for module in _linears(layer)]
    return (
        cpu_fast_path.is_enabled()
        and all(parameter.device.type == "cpu" for parameter in model.parameters())
        and type(decoder.position) in (Position, Sinusoidal, Learned, Rotary)
        and tokens.types is None
        and type(model.head) is LMHead
        and mask.is_at_most_causal
        and mask.causal
        and all(
            type(attention.score) is Score and attention.score.scale is not None
            for attention in (*attentions, *crosses)
        )
        and all(attention.query_norm is None and attention.key_norm is None for attention in (*attentions, *crosses))
        and all(type(linear) is nn.Linear for linear in linears)
    )


def _linears(layer: Layer) -> list[nn.Module]:
    parts = [layer.attention] if layer.cross is None else [layer.attention, layer.cross]
    linears = [linear for part in parts for linear in (part.query, part.key, part.value, part.output)]
    feedforward = layer.feedforward
    return [*linears, feedforward.up, feedforward.down, *((feedforward.gate,) if feedforward.gate is not None else ())]


def _pack(*parts: tuple[nn.Linear, float]) -> _PackedLinear:
    """Pack Linears that read the same vectors into one product, each scaled by its factor."""
    weight = torch.cat([linear.weight.detach() * factor for linear, factor in parts])  # (out, in)
    biases: list[tuple[Tensor | None, float]] = [(linear.bias, factor) for linear, factor in parts]
    if all(bias is None for bias, _ in biases):
        return _PackedLinear(weight.t().contiguous(), None)
    bias_parts = weight.new_zeros(weight.size(0)).split([linear.out_features for linear, _ in parts])
    for zeros, (bias, factor) in zip(bias_parts, biases, strict=True):
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
