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
from regard.models.heads import WordHead
from regard.models.state import State
from regard.nn.attention import Attention, CrossAttention
from regard.nn.cache import Cache
from regard.nn.feedforward import FeedForward
from regard.nn.layer import Layer, Residual
from regard.nn.positions import Learned, Position, Rotary, Sinusoidal
from regard.nn.scores import Score

Bend = Callable[[Tensor], Tensor]
SAMPLED = 8  # numbers of a tensor by which it is known again


class Swift:
    """A model that writes, prepared for steps of one token."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        self.model = model
        self._known = _Known(model)
        self._lists = _Lists(model) if _has_list(model) else None

    @property
    def ready(self) -> bool:
        """Whether there is a list of calls for this kind of model; else every step is the model's own."""
        return self._lists is not None

    def fits(self) -> bool:
        """Whether the model still has the weights that were copied.

        Torch counts what is written to a tensor, but not what fused optimizers write, or who writes through `.data`:
        so some numbers of every tensor are looked at, too.
        """
        return self._known.again(self.model)

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """Logits (R, k, words) for the next k tokens (R, k) of each row; the state moves on."""
        cache = state.cache
        if self._lists is None or tokens.size(1) != 1 or cache.lengths is not None or torch.is_autocast_enabled("cpu"):
            return self.model.step(tokens, state)
        limit = self.model.decoder.position.limit
        if limit is not None and cache.filled >= limit:
            return self.model.step(tokens, state)  # which says what is wrong
        return self._lists.step(tokens[:, 0], state)[:, None]  # (R, 1, words)


@dataclass(frozen=True)
class _Product:
    """x W + b, with W as few rows like it: (in, out)."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        """(R, in) -> (R, out)."""
        return torch.mm(x, self.weight) if self.bias is None else torch.addmm(self.bias, x, self.weight)


class _Lists:
    """What a step does, in the order in which it does it."""

    def __init__(self, model: EncoderDecoder | DecoderOnly) -> None:
        tokens = model.target if isinstance(model, EncoderDecoder) else model.tokens
        self.table, self.scale = tokens.table.weight, tokens.scale
        self.stack = model.decoder
        self.layers = [_Layer(layer) for layer in model.decoder.layers]
        self.final_norm = _norm(model.decoder.final_norm)
        self.input_norm = _norm(model.decoder.input_norm)
        head = model.head
        assert isinstance(head, WordHead)  # noqa: S101 - `_has_list` has looked
        self.head = _Product(_turned(head.words.weight), None if head.bias is None else head.bias.detach())
        self.places = _Places(model.decoder.position, self.table)

    def step(self, tokens: Tensor, state: State) -> Tensor:
        """(R) -> (R, words)."""
        cache = state.cache
        x = nn.functional.embedding(tokens, self.table)  # (R, D)
        place = self.places.vector(cache.filled)  # (D)
        if place is not None:
            x = torch.add(place, x, alpha=self.scale or 1)
        elif self.scale is not None:
            x = x * self.scale
        if self.input_norm is not None:
            x = self.input_norm(x)
        turn = self.places.turn(cache.filled)
        hidden = None if state.memory_real is None else self._hidden(state.memory_real, x)
        for layer in self.layers:
            x = layer(x, cache, turn, hidden)
        cache.advance(1)
        if self.final_norm is not None:
            x = self.final_norm(x)
        return self.head(x)

    def _hidden(self, real: Tensor, x: Tensor) -> Tensor:
        """What is added to the scores of a memory (B, 1, S): nothing, and for padding so much that it is not seen."""
        known = self._known_hidden
        if known is None or known[0] is not real:
            added = torch.zeros(real.shape, dtype=x.dtype).masked_fill_(~real, -math.inf)[:, None]
            known = self._known_hidden = (real, added)  # at once: another thread may be reading other sources
        return known[1]

    _known_hidden: tuple[Tensor, Tensor] | None = None


class _Layer:
    """A layer's products and norms."""

    def __init__(self, layer: Layer) -> None:
        self.attention = _Self(layer.attention, layer.around_attention)
        self.cross = None
        if layer.cross is not None and layer.around_cross is not None:
            self.cross = _Cross(layer.cross, layer.around_cross)
        self.feedforward = _FeedForward(layer.feedforward, layer.around_feedforward)

    def __call__(self, x: Tensor, cache: Cache, turn: "Bend | None", hidden: Tensor | None) -> Tensor:
        x = self.attention(x, cache, turn)
        if self.cross is not None:
            x = self.cross(x, cache, hidden)
        return self.feedforward(x)


class _Sublayer:
    """x + f(norm(x)) or norm(x + f(x))."""

    def __init__(self, around: Residual) -> None:
        norm = _norm(around.norm)
        self.before = norm if around.before else None
        self.after = None if around.before else norm

    def enter(self, x: Tensor) -> Tensor:
        return x if self.before is None else self.before(x)

    def leave(self, x: Tensor, new: Tensor) -> Tensor:
        new.add_(x)
        return new if self.after is None else self.after(new)


class _Self(_Sublayer):
    """Self-attention of one token: R rows, each with its own past."""

    def __init__(self, attention: Attention, around: Residual) -> None:
        super().__init__(around)
        self.name = attention.name
        self.key_dim, self.value_dim = attention.key_dim, attention.value_dim
        scale = attention.score.scale
        assert scale is not None  # noqa: S101 - `_has_list` has looked
        self.projections = _joined((attention.query, scale), (attention.key, 1.0), (attention.value, 1.0))
        self.output = _joined((attention.output, 1.0))
        self.parts = [linear.out_features for linear in (attention.query, attention.key, attention.value)]

    def __call__(self, x: Tensor, cache: Cache, turn: "Bend | None") -> Tensor:
        rows, end, size = x.size(0), cache.filled + 1, self.key_dim
        joined = self.projections(self.enter(x))  # (R, H K + G K + G V)
        query, key, value = joined.split_with_sizes(self.parts, dim=1)
        query, key = query.view(rows, -1, 1, size), key.view(rows, -1, 1, size)  # (R, H, 1, K), (R, G, 1, K)
        value = value.view(rows, -1, 1, self.value_dim)  # (R, G, 1, V)
        if turn is not None:
            query, key = turn(query), turn(key)
        keys, values = cache.room(self.name, key, value)  # (R, G, capacity, ...)
        keys[:, :, cache.filled : end] = key
        values[:, :, cache.filled : end] = value
        count = rows * keys.size(1)
        query = query.reshape(count, -1, size)  # (R G, H / G, K)
        scores = torch.bmm(query, keys.flatten(0, 1)[:, :end].transpose(1, 2))  # (R G, H / G, S)
        answer = torch.bmm(scores.softmax(dim=-1), values.flatten(0, 1)[:, :end])  # (R G, H / G, V)
        return self.leave(x, self.output(answer.view(rows, -1)))


class _Cross(_Sublayer):
    """Attention of one token to a memory, which `group` rows share."""

    def __init__(self, attention: CrossAttention, around: Residual) -> None:
        super().__init__(around)
        self.name, self.key_dim = attention.name, attention.key_dim
        scale = attention.score.scale
        assert scale is not None  # noqa: S101 - `_has_list` has looked
        self.query = _joined((attention.query, scale))
        self.output = _joined((attention.output, 1.0))

    def __call__(self, x: Tensor, cache: Cache, hidden: Tensor | None) -> Tensor:
        keys, values = cache.recall(self.name)  # (B, G, S, K), (B, G, S, V)
        sentences, groups, length, size = keys.shape
        query = self.query(self.enter(x)).view(sentences, -1, groups, self.query_heads(groups), size)
        together = query.transpose(1, 2).reshape(sentences * groups, -1, size)  # (B G, W H / G, K)
        scores = torch.bmm(together, keys.flatten(0, 1).transpose(1, 2))  # (B G, W H / G, S)
        if hidden is not None:
            scores.view(sentences, -1, length).add_(hidden)
        answer = torch.bmm(scores.softmax(dim=-1), values.flatten(0, 1))  # (B G, W H / G, V)
        answer = answer.view(sentences, groups, -1, self.query_heads(groups) * values.size(3)).transpose(1, 2)
        return self.leave(x, self.output(answer.reshape(x.size(0), -1)))  # (B, W, G, H / G V) -> (R, H V)

    def query_heads(self, groups: int) -> int:
        return self.query.weight.size(1) // (groups * self.key_dim)


class _FeedForward(_Sublayer):
    """Widen, bend, narrow."""

    def __init__(self, feedforward: FeedForward, around: Residual) -> None:
        super().__init__(around)
        first = (feedforward.up,) if feedforward.gate is None else (feedforward.gate, feedforward.up)
        self.wide = _joined(*((linear, 1.0) for linear in first))
        self.gated = feedforward.gate is not None
        self.bend = torch.relu_ if feedforward.activation is nn.functional.relu else feedforward.activation
        self.narrow = _joined((feedforward.down, 1.0))

    def __call__(self, x: Tensor) -> Tensor:
        hidden = self.wide(self.enter(x))  # (R, hidden), or twice that
        if self.gated:
            gate, up = hidden.chunk(2, dim=1)
            hidden = self.bend(gate) * up
        else:
            hidden = self.bend(hidden)
        return self.leave(x, self.narrow(hidden))


class _Places:
    """What positions say of one token, kept for all places up to a length that doubles when it is reached."""

    def __init__(self, position: Position, table: Tensor) -> None:
        self.position, self.table = position, table
        self.vectors: Tensor | None = None
        self.angles: tuple[Tensor, Tensor] | None = None
        self.known = 0

    def vector(self, place: int) -> Tensor | None:
        """What is added to the token's vector, (D)."""
        self._learn(place)
        return None if self.vectors is None else self.vectors[place]

    def turn(self, place: int) -> "Bend | None":
        """What turns queries and keys."""
        if self.angles is None:
            return None
        angles = (self.angles[0][:, :, place : place + 1], self.angles[1][:, :, place : place + 1])
        return lambda heads: self.position.on_heads(heads, angles)

    def _learn(self, place: int) -> None:
        if place < self.known:
            return
        count = max(128, 2 * place)
        if self.position.limit is not None:
            count = min(count, self.position.limit)
        places = torch.arange(count)[None]
        if isinstance(self.position, Sinusoidal | Learned):
            self.vectors = self.position.on_input(self.table.new_zeros(1, count, self.table.size(1)), places)[0]
        self.angles = self.position.angles(places)
        self.known = count  # last: another thread may look in between


def _has_list(model: EncoderDecoder | DecoderOnly) -> bool:
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
        and type(model.head) is WordHead
        and mask.is_at_most_causal
        and mask.causal
        and all(type(one.score) is Score and one.score.scale is not None for one in (*attentions, *crosses))
        and all(one.query_norm is None and one.key_norm is None for one in (*attentions, *crosses))
        and all(type(linear) is nn.Linear for linear in linears)
    )


def _linears(layer: Layer) -> list[nn.Module]:
    parts = [layer.attention] if layer.cross is None else [layer.attention, layer.cross]
    linears = [linear for part in parts for linear in (part.query, part.key, part.value, part.output)]
    feedforward = layer.feedforward
    return [*linears, feedforward.up, feedforward.down, *((feedforward.gate,) if feedforward.gate is not None else ())]


def _joined(*parts: tuple[nn.Linear, float]) -> _Product:
    """Products of the same vectors as one, each with a factor."""
    weight = torch.cat([linear.weight.detach() * factor for linear, factor in parts])  # (out, in)
    biases: list[tuple[Tensor | None, float]] = [(linear.bias, factor) for linear, factor in parts]
    if all(bias is None for bias, _ in biases):
        return _Product(_turned(weight), None)
    parted = weight.new_zeros(weight.size(0)).split([linear.out_features for linear, _ in parts])
    for zeros, (bias, factor) in zip(parted, biases, strict=True):
        if bias is not None:
            zeros.add_(bias.detach(), alpha=factor)
    return _Product(_turned(weight), torch.cat(parted))


def _turned(weight: Tensor) -> Tensor:
    return weight.detach().t().contiguous()


def _norm(norm: nn.Module | None) -> Bend | None:
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
