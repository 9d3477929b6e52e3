"""One token at a time, quickly on a CPU: the same decoder with its weights laid out for that.

A step of one token is many small products, and most of its time goes to calling them and to fetching weights. So here
the matrices of a decoder are copied once, turned over (what a product of few rows reads fastest), with query, key and
value in one, and the scale of the scores inside the query; and a step is a plain list of calls. It works on the
cache that the model's own `step` fills, so the two can take turns: what `Swift` has no list for (several tokens at
once, rows of unequal length, biases on scores, windows, scores that are no products, adapters) goes to the model.

    swift = Swift(model)
    state = model.start(source, real, capacity=100)
    logits = swift.step(tokens, state)          # as model.step(tokens, state), rounding apart

The copy does not follow the weights: `fits` says whether they have changed since.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.heads import LMHead
from regard.models.state import DecodingState
from regard.nn.attention import Attention, CrossAttention
from regard.nn.feedforward import FeedForward
from regard.nn.kv_cache import KVCache
from regard.nn.layer import Layer, Residual
from regard.nn.positions import Learned, Position, Rotary, Sinusoidal
from regard.nn.scores import Score

TensorFn = Callable[[Tensor], Tensor]
SAMPLED = 8  # numbers of a tensor by which it is known again


class CpuDecoder:
    """A model that writes, prepared for steps of one token."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        self.model = model
        self._known = _Known(model)
        self._plan = _Plan(model) if _is_supported(model) else None

    @property
    def is_supported(self) -> bool:
        """Whether there is a list of calls for this kind of model; else every step is the model's own."""
        return self._plan is not None

    def fits(self) -> bool:
        """Whether the model still has the weights that were copied.

        Torch counts what is written to a tensor, but not what fused optimizers write, or who writes through `.data`:
        so some numbers of every tensor are looked at, too.
        """
        return self._known.again(self.model)

    def step(self, tokens: Tensor, state: DecodingState) -> Tensor:
        """Logits (R, k, words) for the next k tokens (R, k) of each row; the state moves on."""
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
            return self.model.step(tokens, state)  # which says what is wrong
        return self._plan.step(tokens[:, 0], state)[:, None]  # (R, 1, words)


@dataclass(frozen=True)
class _PackedLinear:
    """x W + b, with W as few rows like it: (in, out)."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """(R, in) -> (R, out)."""
        return torch.mm(x, self.weight) if self.bias is None else torch.addmm(self.bias, x, self.weight)


class _Plan:
    """What a step does, in the order in which it does it."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        tokens = model.target if isinstance(model, EncoderDecoder) else model.tokens
        self.embedding, self.scale = tokens.embedding.weight, tokens.scale
        self.stack = model.decoder
        self.layers = [_Layer(layer) for layer in model.decoder.layers]
        self.final_norm = _norm_function(model.decoder.final_norm)
        self.input_norm = _norm_function(model.decoder.input_norm)
        head = model.head
        assert isinstance(head, LMHead)  # noqa: S101 - `_has_list` has looked
        self.head = _PackedLinear(_turned(head.projection.weight), None if head.bias is None else head.bias.detach())
        self.positions = _PositionTable(model.decoder.position, self.embedding)

    def step(self, tokens: Tensor, state: DecodingState) -> Tensor:
        """(R) -> (R, words)."""
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
        """What is added to the scores of a memory (B, 1, S): nothing, and for padding so much that it is not seen."""
        cached_bias = self._cached_mask_bias
        if cached_bias is None or cached_bias[0] is not valid:
            bias = torch.zeros(valid.shape, dtype=x.dtype).masked_fill_(~valid, -math.inf)[:, None]
            cached_bias = self._cached_mask_bias = (valid, bias)  # at once: another thread may be reading other sources
        return cached_bias[1]

    _cached_mask_bias: tuple[Tensor, Tensor] | None = None


class _Layer:
    """A layer's products and norms."""

    def __init__(self, layer: Layer) -> None:
        self.attention = _SelfAttention(layer.attention, layer.attention_residual)
        self.cross = None
        if layer.cross is not None and layer.cross_residual is not None:
            self.cross = _CrossAttention(layer.cross, layer.cross_residual)
        self.feedforward = _FeedForward(layer.feedforward, layer.feedforward_residual)

    def __call__(self, x: Tensor, kv_cache: KVCache, rotate: "TensorFn | None", mask_bias: Tensor | None) -> Tensor:
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
    """Self-attention of one token: R rows, each with its own past."""

    def __init__(self, attention: Attention, residual: Residual) -> None:
        super().__init__(residual)
        self.name = attention.name
        self.key_dim, self.value_dim = attention.key_dim, attention.value_dim
        scale = attention.score.scale
        assert scale is not None  # noqa: S101 - `_has_list` has looked
        self.qkv = _pack((attention.query, scale), (attention.key, 1.0), (attention.value, 1.0))
        self.output = _pack((attention.output, 1.0))
        self.split_sizes = [linear.out_features for linear in (attention.query, attention.key, attention.value)]

    def __call__(self, x: Tensor, kv_cache: KVCache, rotate: "TensorFn | None") -> Tensor:
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
    """Attention of one token to a memory, which `group` rows share."""

    def __init__(self, attention: CrossAttention, residual: Residual) -> None:
        super().__init__(residual)
        self.name, self.key_dim = attention.name, attention.key_dim
        scale = attention.score.scale
        assert scale is not None  # noqa: S101 - `_has_list` has looked
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
    """Widen, bend, narrow."""

    def __init__(self, feedforward: FeedForward, residual: Residual) -> None:
        super().__init__(residual)
        up_projections = (feedforward.up,) if feedforward.gate is None else (feedforward.gate, feedforward.up)
        self.up = _pack(*((linear, 1.0) for linear in up_projections))
        self.is_gated = feedforward.gate is not None
        self.activation = torch.relu_ if feedforward.activation is nn.functional.relu else feedforward.activation
        self.down = _pack((feedforward.down, 1.0))

    def __call__(self, x: Tensor) -> Tensor:
        hidden = self.up(self.apply_pre_norm(x))  # (R, hidden), or twice that
        if self.is_gated:
            gate, up = hidden.chunk(2, dim=1)
            hidden = self.activation(gate) * up
        else:
            hidden = self.activation(hidden)
        return self.add_residual(x, self.down(hidden))


class _PositionTable:
    """What positions say of one token, kept for all places up to a length that doubles when it is reached."""

    def __init__(self, position: Position, embedding: Tensor) -> None:
        self.position, self.embedding = position, embedding
        self.vectors: Tensor | None = None
        self.angles: tuple[Tensor, Tensor] | None = None
        self.length = 0

    def vector(self, position: int) -> Tensor | None:
        """What is added to the token's vector, (D)."""
        self._extend(position)
        return None if self.vectors is None else self.vectors[position]

    def rotation(self, position: int) -> "TensorFn | None":
        """What turns queries and keys."""
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
        self.length = count  # last: another thread may look in between


def _is_supported(model: EncoderDecoder | DecoderOnly) -> bool:
    """Whether every part is of a kind that is written down above, and on the CPU."""
    decoder = model.decoder
    tokens = model.target if isinstance(model, EncoderDecoder) else model.tokens
    mask = model.decoder_mask if isinstance(model, EncoderDecoder) else model.mask
    attentions = [layer.attention for layer in decoder.layers]
    crosses = [layer.cross for layer in decoder.layers if layer.cross is not None]
    linears = [module for layer in decoder.layers for module in _linears(layer)]
    return (
        all(parameter.device.type == "cpu" for parameter in model.parameters())
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
    """Products of the same vectors as one, each with a factor."""
    weight = torch.cat([linear.weight.detach() * factor for linear, factor in parts])  # (out, in)
    biases: list[tuple[Tensor | None, float]] = [(linear.bias, factor) for linear, factor in parts]
    if all(bias is None for bias, _ in biases):
        return _PackedLinear(_turned(weight), None)
    bias_parts = weight.new_zeros(weight.size(0)).split([linear.out_features for linear, _ in parts])
    for zeros, (bias, factor) in zip(bias_parts, biases, strict=True):
        if bias is not None:
            zeros.add_(bias.detach(), alpha=factor)
    return _PackedLinear(_turned(weight), torch.cat(bias_parts))


def _turned(weight: Tensor) -> Tensor:
    return weight.detach().t().contiguous()


def _norm_function(norm: nn.Module | None) -> TensorFn | None:
    """A norm as a function, without the ceremony of calling a module."""
    if norm is None:
        return None
    if type(norm) is nn.LayerNorm:
        shape, weight, bias, eps = list(norm.normalized_shape), norm.weight, norm.bias, norm.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)
    return norm.forward


class _Known:
    """By what a decoder's weights are known again, cheaply: who they are, where, how often written, some of them."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        self.modules = _modules(model)
        self.weights = _weights(self.modules)
        self.written = self._written()
        flat = [weight.detach().flatten() for weight in self.weights]
        self.few = [one[:: max(1, one.numel() // SAMPLED)] for one in flat]  # views: they show what is there now
        self.seen = torch.cat(self.few)

    def again(self, model: EncoderDecoder | DecoderOnly) -> bool:
        """Whether nothing has changed."""
        modules = _modules(model)
        return (
            len(modules) == len(self.modules)
            and all(one is other for one, other in zip(modules, self.modules, strict=True))
            and list(map(id, _weights(modules))) == list(map(id, self.weights))
            and self.written == self._written()
            and torch.equal(self.seen, torch.cat(self.few))
        )

    def _written(self) -> list[tuple[int, object]]:
        """Where weights are and how often they were written; of what torch does not count, always something new."""
        return [(weight.data_ptr(), object() if weight.is_inference() else weight._version) for weight in self.weights]


def _weights(modules: list[nn.Module]) -> list[nn.Parameter]:
    return [weight for module in modules for weight in module.parameters(recurse=False)]


def _modules(model: EncoderDecoder | DecoderOnly) -> list[nn.Module]:
    tokens = model.target if isinstance(model, EncoderDecoder) else model.tokens
    return [*tokens.modules(), *model.decoder.modules(), *model.head.modules()]
