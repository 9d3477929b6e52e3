"""Shapes in the blocks of a Transformer, what the blocks of a stack share, and a recurrent encoder in their place."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from regard.config.codec import preset
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.layer import Layer
from regard.nn.masks import causal, no_mask, prefix
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


def show_heads() -> Iterator[str]:
    """Heads: their size, weights and cost; d_k and d_v may differ from d / h."""
    yield f"Self-attention of one encoder block, d = 512, {SOURCE} tokens:\n"
    yield "heads  d_k  d_v  W_q, W_k        W_v             W_O             parameters  attention weights"
    for heads, key_dim, value_dim in (
        (1, 512, 512),
        (4, 128, 128),
        (8, 64, 64),
        (16, 32, 32),
        (8, 32, 64),
        (8, 64, 32),
    ):
        sizes = {"encoder.attention": {"heads": heads, "key_dim": key_dim, "value_dim": value_dim}}
        model: EncoderDecoder = build(
            preset("base", {"source.vocabulary": VOCABULARY, "encoder.layers": 1, "decoder.layers": 1, **sizes})
        )
        attention = model.encoder.layers[0].attention
        matrices = [
            " x ".join(map(str, getattr(attention, name).weight.shape)) for name in ("query", "value", "output")
        ]
        count = sum(parameter.numel() for parameter in attention.parameters())
        cells = "  ".join(f"{matrix:14}" for matrix in matrices)
        yield f"{heads:5}  {key_dim:3}  {value_dim:3}  {cells}  {count:10,}  {heads} x {SOURCE} x {SOURCE}"
    yield "\nWith d_k = d_v = d / h, the number of heads changes neither the matrices nor their cost."


def count_multiplications(left: Tensor, right: Tensor) -> int:
    """Return the multiplications of left right^T."""
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.linear(left, right)
    return int(counter.get_total_flops()) // 2


def show_crossing() -> Iterator[str]:
    """N^2 d against N d^2: where the scores of attention cost as much as a projection."""
    width = 512
    yield f"Multiplications that torch counts, d = {width}: scores Q K^T, N^2 d, and one projection X W, N d^2:\n"
    yield "     N      N^2 d          N d^2          ratio"
    for tokens in (32, 128, 512, 2048, 8192):
        x, matrix = (torch.empty(count, width, device="meta") for count in (tokens, width))
        scores, projection = count_multiplications(x, x), count_multiplications(x, matrix)
        yield f"{tokens:6,}  {scores:14,} {projection:14,} {scores / projection:10.4g}"
    yield f"\nThey are equal at N = d = {width}; for longer texts the scores decide."


@torch.no_grad()
def show_interface() -> Iterator[str]:
    """An RNN encoder replaced by self-attention: equal shapes, weights shared over time, other dependencies."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(8, 100, (1, 50), generator=generator)
    later = tokens.clone()
    later[0, 10] = 7
    yield "An encoder of one layer, d = 128, reads 5 and 50 tokens; then token 10 changes:\n"
    yield "encoder          parameters  output of 5  output of 50  vectors before 10 that change  after 10"
    for name, changes in (
        ("RNN", {"encoder.kind": "recurrent", "encoder.cell": "rnn", "encoder.bidirectional": False}),
        ("RNN, two ways", {"encoder.kind": "recurrent", "encoder.cell": "rnn", "encoder.bidirectional": True}),
        ("self-attention", {}),
    ):
        settings = preset("tiny", {"source.vocabulary": 100, "encoder.layers": 1, **changes})
        model: EncoderDecoder = build(settings, seed=1).eval()

        def encode(ids: Tensor, model: EncoderDecoder = model) -> Tensor:
            return model.encode(ids)[0][0]  # (T, 128)

        sizes = [" x ".join(map(str, encode(tokens[:, :length]).shape)) for length in (5, 50)]
        is_changed = (encode(tokens) - encode(later)).abs().amax(dim=-1) > 1e-7
        count = sum(parameter.numel() for parameter in model.encoder.parameters())
        before, after = int(is_changed[:10].sum()), int(is_changed[11:].sum())
        yield f"{name:14} {count:12,}  {sizes[0]:11}  {sizes[1]:12}  {before:29}  {after:8}"
    yield "\nThe RNN uses the same weights at every step, so longer texts need no more of them, and its state carries a"
    yield "change only to later tokens. The decoder reads either output as its memory."


@torch.no_grad()
def show_prefix() -> Iterator[str]:
    """The prefix mask of UniLM: a prompt is read in both directions, the rest from left to right."""
    prompt, length = 4, 8
    index = torch.arange(length)[None]
    allowed = prefix(torch.tensor([prompt])).dense(index, index)
    assert allowed is not None  # noqa: S101 - a prefix mask masks
    yield f"A prompt of {prompt} tokens and an answer of {length - prompt}; x: the row's token reads the column's:"
    yield from ("  " + " ".join("x" if is_allowed else "." for is_allowed in row) for row in allowed[0, 0].tolist())
    tokens = torch.randint(8, 100, (1, length), generator=torch.Generator().manual_seed(1))
    model: DecoderOnly = build(preset("lm-small", {"tokens.vocabulary": 100, "decoder.layers": 2}), seed=1).eval()
    yield "\nEarlier predictions that change with a token, two new layers:"
    yield "mask      last token of the prompt  last token of the answer"
    for name, mask in (("causal", causal()), ("prefix", prefix(torch.tensor([prompt])))):
        model.mask = mask
        counts = []
        for place in (prompt - 1, length - 1):
            changed = tokens.clone()
            changed[0, place] = 7
            difference = (model(tokens) - model(changed))[0, :place].abs().amax(dim=-1)
            counts.append(int((difference > 1e-6).sum()))
        yield f"{name:8}  {f'{counts[0]} of {prompt - 1}':24}  {counts[1]} of {length - 1}"
