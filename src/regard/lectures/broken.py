"""Models with one named bug each, and observations that find it.

The correct model is a small `lecture` Transformer with random weights. A bug changes one thing about it. An observation
is a number with the range that a correct model has, so the table of all observations shows which bug a model has.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import MethodType

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.base.errors import RegardError
from regard.config.codec import preset
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder, Memory
from regard.nn.attend import ResolvedMask
from regard.nn.attention import Attention, CrossAttention
from regard.nn.context import Context
from regard.nn.layer import Residual
from regard.nn.masks import no_mask
from regard.nn.positions import Position
from regard.nn.record import AttentionRecord, Record

VOCABULARY, LENGTH, STEPS = 24, 8, 60
Patch = Callable[[EncoderDecoder], None]


def build_correct() -> EncoderDecoder:
    """Return a small `lecture` model with random weights, in evaluation mode."""
    size: dict[str, object] = {"d_model": 32, "source.vocabulary": VOCABULARY, "target.vocabulary": VOCABULARY}
    for stack in ("encoder", "decoder"):
        size |= {f"{stack}.layers": 2, f"{stack}.attention.heads": 4, f"{stack}.feedforward.d_ff": 64}
    model: EncoderDecoder = build(preset("lecture", size | {"decoder.cross.heads": 4}), seed=1)
    return model.eval()


def _draw(seed: int, rows: int = 2) -> Tensor:
    return torch.randint(1, VOCABULARY, (rows, LENGTH), generator=torch.Generator().manual_seed(seed))


def _iter_attention(model: EncoderDecoder, kind: type[Attention] = Attention) -> Iterator[Attention]:
    return (module for module in model.modules() if isinstance(module, kind))


# Bugs.


def _see_the_future(model: EncoderDecoder) -> None:
    model.decoder_mask = no_mask()


def _weigh(query: Tensor, key: Tensor, mask: ResolvedMask, scale: float, dim: int, *, mask_first: bool) -> Tensor:
    scores = (query @ key.transpose(-2, -1)) * scale  # (B, H, T, S)
    allowed = mask.dense(query.size(2), key.size(2), query.device)
    if allowed is None:
        return scores.softmax(dim=dim)
    if mask_first:
        return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(dim=dim)
    return scores.softmax(dim=dim) * allowed


def _multiply_mask(query: Tensor, key: Tensor, mask: ResolvedMask, scale: float) -> Tensor:
    scores = (query @ key.transpose(-2, -1)) * scale  # (B, H, T, S)
    allowed = mask.dense(query.size(2), key.size(2), query.device)
    factor = torch.ones(()) if allowed is None else torch.where(allowed, 1.0, -math.inf)
    return (scores * factor).softmax(dim=-1)


def _replace_weights(weigh: Callable[[Tensor, Tensor, ResolvedMask, float], Tensor]) -> Patch:
    """Return a bug that computes the attention weights (B, H, T, S) in another way."""

    def weighted_sum(
        self: Attention, query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask, record: Record | None
    ) -> Tensor:
        heads = weigh(query, key, mask, self.score.scale or 1.0) @ value  # (B, H, T, V)
        if record is None:
            return heads
        return record.add_attention(self.name, AttentionRecord(query, key, value, mask, self.score, heads))

    return _replace_method("weighted_sum", weighted_sum)


def _replace_method(name: str, function: Callable[..., object], kind: type[nn.Module] = Attention) -> Patch:
    """Return a bug that replaces a method of all modules of this class."""

    def patch(model: EncoderDecoder) -> None:
        for module in model.modules():
            if isinstance(module, kind):
                setattr(module, name, MethodType(function, module))

    return patch


def _forget_the_scale(model: EncoderDecoder) -> None:
    for attention in _iter_attention(model):
        attention.score.scale = 1.0


def _share_clones(model: EncoderDecoder) -> None:
    for stack in (model.encoder, model.decoder):
        stack.layers[1] = stack.layers[0]


def _skip_the_shift(model: EncoderDecoder) -> None:
    """The decoder reads the label of each position, instead of the token before it."""
    decode = model.decode

    def decode_labels(target: Tensor, memory: Memory, *, record: Record | None = None) -> Tensor:
        return decode(torch.cat((target[:, 1:], target[:, -1:]), dim=1), memory, record=record)

    setattr(model, "decode", decode_labels)  # noqa: B010 - a bug on purpose, which a type checker would refuse


def _read_itself(self: CrossAttention, x: Tensor, context: Context) -> Tensor:
    key, value = self.project_key_value(x)  # keys and values of the decoder, not of the memory
    assert context.self_mask is not None  # noqa: S101 - the stack sets it
    return self.attend(self.project_query(x), key, value, context.self_mask, context.record)


def _attend_to_padding(model: EncoderDecoder) -> None:
    encode = model.encode

    def encode_all(source: Tensor, valid: Tensor | None = None, *, record: Record | None = None) -> Memory:  # noqa: ARG001
        return encode(source, None, record=record)

    setattr(model, "encode", encode_all)  # noqa: B010 - as above


def _drop_positions(model: EncoderDecoder) -> None:
    model.encoder.position = Position()


def _drop_the_input(self: Residual, x: Tensor, sublayer: Callable[..., Tensor], context: Context) -> Tensor:
    x = sublayer(self.norm(x), context)
    if context.record is not None:
        context.record.residuals[self.name] = x
    return x


def _mix_heads(
    self: Attention, query: Tensor, key: Tensor, value: Tensor, mask: ResolvedMask, record: Record | None
) -> Tensor:
    heads = self.weighted_sum(query, key, value, mask, record)  # (B, H, T, V)
    return self.output(heads.reshape(heads.size(0), heads.size(2), -1))  # no transpose: rows of other tokens


def _keep_dropout(model: EncoderDecoder) -> None:
    model.train()


@dataclass(frozen=True)
class Bug:
    """One fault of a model."""

    title: str
    patch: Patch
    found_by: str  # the observation that shows it most clearly


BUGS = {
    "no-causal-mask": Bug("The decoder sees the future.", _see_the_future, "leak"),
    "softmax-axis": Bug(
        "The softmax runs over the queries.",
        _replace_weights(partial(_weigh, dim=-2, mask_first=True)),
        "weights",
    ),
    "late-mask": Bug(
        "The mask comes after the softmax.", _replace_weights(partial(_weigh, dim=-1, mask_first=False)), "weights"
    ),
    "multiplied-mask": Bug("Scores are multiplied by a mask of 1 and -inf.", _replace_weights(_multiply_mask), "nan"),
    "no-scale": Bug("Scores are not divided by the square root of d_k.", _forget_the_scale, "score-spread"),
    "shared-clones": Bug("Layers share their weights.", _share_clones, "layers"),
    "no-shift": Bug("The decoder reads the label, not the token before it.", _skip_the_shift, "random-loss"),
    "cross-reads-itself": Bug(
        "Keys and values of cross-attention come from the decoder.",
        _replace_method("forward", _read_itself, CrossAttention),
        "source",
    ),
    "padding-attended": Bug("Tokens attend to padding.", _attend_to_padding, "padding"),
    "no-positions": Bug("The encoder has no positions.", _drop_positions, "order"),
    "no-residual": Bug(
        "There is no residual connection.", _replace_method("forward", _drop_the_input, Residual), "input"
    ),
    "mixed-heads": Bug("Heads are joined without a transpose.", _replace_method("attend", _mix_heads), "leak"),
    "dropout-on": Bug("Dropout stays on in evaluation.", _keep_dropout, "repeat"),
}
Make = Callable[[], EncoderDecoder]


def make_broken(name: str) -> EncoderDecoder:
    """Return the model with a bug."""
    if name not in BUGS:
        raise RegardError(f"'{name}' is not a bug.", hint=f"Choose one of {', '.join(BUGS)}.")
    model = build_correct()
    BUGS[name].patch(model)
    return model


# Observations. Each returns one number of a model.


def _run(model: EncoderDecoder, source: Tensor, target: Tensor, valid: Tensor | None = None) -> Tensor:
    with torch.no_grad():
        return model.head(model.read_sides(source, target, source_valid=valid))  # (B, T, vocabulary)


def _compare(first: Tensor, second: Tensor) -> float:
    return float((first - second).abs().max())


def _measure_leak(make: Make) -> float:
    model, source, target = make(), _draw(1), _draw(2)
    changed = target.clone()
    changed[:, 4:] = changed[:, 4:] % (VOCABULARY - 1) + 1  # other tokens
    return _compare(_run(model, source, target)[:, :4], _run(model, source, changed)[:, :4])


def _measure_weights(make: Make) -> float:
    record = Record()
    with torch.no_grad():
        make().read_sides(_draw(1), _draw(2), record=record)
    return max(_compare(item.output, record.recompute_output(name)) for name, item in record.attention.items())


def _count_nan(make: Make) -> float:
    return float(_run(make(), _draw(1), _draw(2)).isnan().sum())


def _measure_spread(make: Make) -> float:
    record = Record()
    with torch.no_grad():
        make().read_sides(_draw(1), _draw(2), record=record)
    item = record.attention["encoder.0.self"]
    products = item.query @ item.key.transpose(-2, -1)  # (B, H, T, S)
    return float(item.score.scores(item.query, item.key).std() * math.sqrt(item.query.size(-1)) / products.std())


def _count_layers(make: Make) -> float:
    model = make()
    return float(sum(len({id(layer) for layer in stack.layers}) for stack in (model.encoder, model.decoder)))


def _measure_source(make: Make) -> float:
    model = make()
    return _compare(_run(model, _draw(1), _draw(2)), _run(model, _draw(3), _draw(2)))


def _measure_padding(make: Make) -> float:
    model, source = make(), _draw(1)
    padded = F.pad(source, (0, 3), value=5)  # three tokens that are declared to be padding
    valid = (torch.arange(LENGTH + 3) < LENGTH).expand(2, -1)
    return _compare(_run(model, source, _draw(2)), _run(model, padded, _draw(2), valid))


def _measure_order(make: Make) -> float:
    model, source = make(), _draw(1)
    return _compare(_run(model, source, _draw(2)), _run(model, source.flip(1), _draw(2)))


def _measure_input(make: Make) -> float:
    record = Record()
    with torch.no_grad():
        make().read_sides(_draw(1), _draw(2), record=record)
    embedded, after = record.residuals["encoder.input"], record.residuals["encoder.0.self"]
    return float(F.cosine_similarity(embedded, after, dim=-1).mean())


def _measure_repeat(make: Make) -> float:
    model = make()
    return _compare(_run(model, _draw(1), _draw(2)), _run(model, _draw(1), _draw(2)))


def _measure_random_loss(make: Make) -> float:
    """Train on random tokens: without seeing its labels, a model cannot fall below log V."""
    torch.manual_seed(1)
    model, losses = make(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        target = _draw(100 + step, rows=16)
        logits = model.head(model.read_sides(_draw(500 + step, rows=16), target))[:, :-1]  # (B, T - 1, vocabulary)
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[-10:]) / 10 / math.log(VOCABULARY)


@dataclass(frozen=True)
class Observation:
    """A number of a model, and the range that a correct model has."""

    question: str
    measure: Callable[[Make], float]
    low: float
    high: float

    def is_correct(self, value: float) -> bool:
        """Whether a correct model can have this value."""
        return self.low <= value <= self.high  # False for NaN


OBSERVATIONS = {
    "leak": Observation("How much do predictions change when later tokens change?", _measure_leak, 0, 1e-5),
    "weights": Observation("How far is softmax(Q K^T) V from the heads' output?", _measure_weights, 0, 1e-5),
    "nan": Observation("How many logits are NaN?", _count_nan, 0, 0),
    "score-spread": Observation("What is the spread of scores x sqrt(d_k) / (q.k)?", _measure_spread, 0.99, 1.01),
    "layers": Observation("How many different layers are there?", _count_layers, 4, 4),
    "random-loss": Observation("Loss on random text / log V after training", _measure_random_loss, 0.97, 9),
    "source": Observation("How much do predictions change with another source?", _measure_source, 1e-3, math.inf),
    "padding": Observation("How much do predictions change with padding?", _measure_padding, 0, 1e-5),
    "order": Observation("How much do predictions change if the source is reversed?", _measure_order, 1e-3, math.inf),
    "input": Observation("Cosine of the embeddings and the first sublayer's output", _measure_input, 0.5, 1),
    "repeat": Observation("How much do predictions change if asked again?", _measure_repeat, 0, 0),
}


def observe(make: Make) -> dict[str, float]:
    """Return all observations of a model."""
    return {name: observation.measure(make) for name, observation in OBSERVATIONS.items()}


def show_broken(name: str, *, with_answer: bool = True) -> Iterator[str]:
    """Yield the observations of the correct model and of one with a bug.

    Args:
        name: Name of the bug, or its number from 1, so that the command line does not name it.
        with_answer: Whether the last line says what the bug is.
    """
    if name.isdecimal() and 1 <= int(name) <= len(BUGS):
        name = list(BUGS)[int(name) - 1]
    broken = observe(partial(make_broken, name))
    correct = observe(build_correct)
    yield f"{'observation':62}  correct   broken"
    for key, observation in OBSERVATIONS.items():
        mark = "" if observation.is_correct(broken[key]) else "  <-"
        yield f"{observation.question:62} {correct[key]:8.3g} {broken[key]:8.3g}{mark}"
    if with_answer:
        yield f"\n{name}: {BUGS[name].title}"
