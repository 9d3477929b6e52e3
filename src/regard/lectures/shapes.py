"""Shapes in the blocks of a Transformer, and what the blocks of a stack share."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from regard.config.codec import preset
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.layer import Layer
from regard.nn.masks import no_mask
from regard.nn.record import Record

VOCABULARY, SOURCE, TARGET = 1000, 20, 30


def build_base(layers: int, width: int = 512) -> EncoderDecoder:
    """Build the preset `base` with few layers and tokens."""
    stacks = {f"{stack}.layers": layers for stack in ("encoder", "decoder")}
    model: EncoderDecoder = build(
        preset("base", {"d_model": width, "source.vocabulary": VOCABULARY, **stacks}), seed=1
    ).eval()
    return model


def sample_texts() -> tuple[Tensor, Tensor]:
    """Return random tokens (1, 20) and (1, 30)."""
    generator = torch.Generator().manual_seed(1)
    source, target = (torch.randint(8, VOCABULARY, (1, length), generator=generator) for length in (SOURCE, TARGET))
    return source, target


def format_shape(name: str, tensor: Tensor) -> str:
    """Return a line with the size of a tensor, without its batch dimension of 1."""
    return f"  {name:46} {' x '.join(str(size) for size in tensor.shape if size != 1)}"


def list_attention(record: Record, name: str, layer: Layer, part: str) -> Iterator[str]:
    """Yield the shapes of one attention."""
    attention, module = record.attention[name], getattr(layer, part)
    for matrix in ("query", "key", "value"):
        yield format_shape(f"W_{matrix[0]} of all heads", getattr(module, matrix).weight)
        yield format_shape(f"  {matrix[0].upper()}: heads x tokens x size of a head", getattr(attention, matrix))
    weights = record.weights(name)
    yield format_shape("  softmax(Q K^T / sqrt(d_k)): its rows sum to 1", weights)
    yield format_shape("  weights times V", attention.output)
    yield format_shape("W_O, after the heads are concatenated", module.output.weight)
    hidden = weights[0, 0].triu(diagonal=1).sum() if attention.query.size(2) == attention.key.size(2) else None
    sums = f"rows sum to {weights.sum(-1).min():.4f} ... {weights.sum(-1).max():.4f}"
    yield f"  {sums}" + ("" if hidden is None else f"; weight of later tokens in head 0: {hidden:.4f}")


@torch.no_grad()
def show_block() -> Iterator[str]:
    """Shapes in an encoder and a decoder block of the preset `base`: T x 512 in and out, 8 heads of 64."""
    model, record, (source, target) = build_base(2), Record(), sample_texts()
    logits = model(source, target, record=record)
    residuals, encoder, decoder = record.residuals, model.encoder.layers[0], model.decoder.layers[0]
    yield f"Source of {SOURCE} tokens, target of {TARGET}, d_model = 512, 8 heads; embeddings plus positions:"
    yield format_shape("input of the lowest encoder only", residuals["encoder.input"])
    embedded, _ = model.source(source)  # times sqrt(512)
    encoding = model.encoder.position.on_input(torch.zeros_like(embedded), torch.arange(SOURCE)[None])
    difference = (residuals["encoder.input"] - embedded - encoding).abs().max()
    yield f"  x0 = x + P: largest difference of input and embeddings + sinusoids {difference:.1e}"
    yield "Encoder block: attention of the tokens to each other (x is query, key and value)"
    yield from list_attention(record, "encoder.0.self", encoder, "attention")
    yield format_shape("LN(x + attention)", residuals["encoder.0.self"])
    for name in ("up", "down"):
        yield format_shape(f"feed-forward, W of `{name}` (2048 / 512 = 4)", getattr(encoder.feedforward, name).weight)
    yield format_shape("LN(x + feed-forward): the next block's input", residuals["encoder.0.feedforward"])
    yield "Decoder block: masked attention of the target to itself"
    yield from list_attention(record, "decoder.0.self", decoder, "attention")
    yield "Decoder block: cross-attention, Q from the decoder, K and V from the encoder's output"
    yield from list_attention(record, "decoder.0.cross", decoder, "cross")
    yield format_shape("decoder block's output", residuals["decoder.0.feedforward"])
    yield format_shape("linear layer: a logit for each token", logits)
    yield f"  softmax: the probabilities of a position sum to {logits.softmax(-1).sum(-1).mean():.4f}"


@torch.no_grad()
def show_stack() -> Iterator[str]:
    """Blocks in a stack: own weights, one memory, and what one changed token changes."""
    model, record, (source, target) = build_base(2), Record(), sample_texts()
    memory, _ = model.encode(source, record=record)
    model.decode(target, (memory, None), record=record)
    first, second = model.encoder.layers
    pairs = list(zip(first.parameters(), second.parameters(), strict=True))
    yield f"Parameters of encoder block 0: {sum(a.numel() for a, _ in pairs):,}; of block 1: the same number"
    yield f"Tensors that both blocks share: {sum(a.data_ptr() == b.data_ptr() for a, b in pairs)} of {len(pairs)}"
    yield "Memory that the cross-attention of each decoder block reads:"
    for number, layer in enumerate(model.decoder.layers):
        assert layer.cross is not None  # noqa: S101 - a translator
        difference = (layer.cross.project_key_value(memory)[0] - record.attention[f"decoder.{number}.cross"].key).abs()
        yield f"  block {number}: keys of the encoder's last output, largest difference {difference.max():.1e}"
    x = record.residuals["encoder.input"]
    yield "Size of the residual stream: " + ", ".join(
        f"{name} {' x '.join(map(str, record.residuals[name].shape[1:]))}"
        for name in ("encoder.input", "encoder.0.feedforward", "encoder.1.feedforward")
    )
    changed = x.clone()
    changed[0, 5] += 1
    yield "Token 5 changes; other tokens whose vector changes:"
    for name, outputs in (
        ("feed-forward", [first.feedforward(part, None) for part in (x, changed)]),  # type: ignore[arg-type]
        ("whole stack", [model.encoder(part, no_mask()) for part in (x, changed)]),
    ):
        count = int(((outputs[0] - outputs[1]).abs().amax(-1)[0] > 1e-6).sum()) - 1
        yield f"  {name:13} {count} of {SOURCE - 1}"
    halves = [first.feedforward(part, None) for part in (x, -x)]  # type: ignore[arg-type]
    yield f"f(x) + f(-x) of the feed-forward, 0 for a linear layer: up to {(halves[0] + halves[1]).abs().max():.2f}"


SUBJECTS: dict[str, Callable[[], Iterator[str]]] = {
    "block": show_block,
    "stack": show_stack,
}
