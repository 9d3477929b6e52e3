"""Numbers of the lectures, computed by Regard's own attention, masks, positions and searches, without training."""

import math
from collections.abc import Iterator, Sequence
from typing import cast

import torch
from torch import Tensor

from regard.config.codec import preset
from regard.lectures.lines import join
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.inputs import TokenInput
from regard.models.loss.token import class_loss
from regard.nn.attend import ResolvedMask, eager_attention, resolve_mask
from regard.nn.masks import Mask, causal, no_mask, padding
from regard.nn.scores import ScoreFunction

# The lecture's "Attention raw scores". Its row labels are rotated, so that 6 and 9 look alike; these are rows 0 to 11.
RAW_SCORES = (
    (-0.08, 1.24, 0.69, -0.98, 1.43, -0.60, 0.70, 0.16, 0.93, 1.28, -1.61, -1.10),
    (-0.09, -0.00, -0.70, 0.06, 0.25, 0.23, 0.26, 0.18, 0.78, -0.21, -1.01, 1.01),
    (0.86, 1.19, 1.59, 0.86, -0.13, -0.15, -2.13, -0.98, -0.87, -1.72, 1.87, -0.72),
    (0.12, -0.03, -0.02, 0.88, -0.46, -0.70, 0.54, -0.42, -1.89, -0.38, 0.04, -0.84),
    (0.51, 0.17, 0.13, -1.64, 0.24, -0.02, 1.68, -0.36, 0.64, 0.36, 0.27, 0.66),
    (0.24, -1.44, 0.43, 0.74, 0.96, -1.21, -0.31, 1.54, 1.66, 1.14, 0.58, -1.44),
    (0.26, -0.10, 0.93, 0.72, -0.38, 1.65, 0.47, -0.96, -0.17, -0.90, -1.57, 0.22),
    (-0.55, 0.81, 0.71, 1.70, -0.80, -1.14, -0.32, 1.78, -0.70, -0.04, 1.54, 0.81),
    (0.74, -0.76, -0.44, -0.08, -1.38, -0.13, 1.25, -1.37, 1.84, 0.30, 0.57, 0.74),
    (-0.97, -0.91, 0.15, 0.35, -0.81, 0.11, 1.14, -1.52, 1.06, 1.87, 0.50, -0.30),
    (1.56, 0.90, 0.39, 1.46, 1.44, -1.05, 0.90, -0.73, 0.36, -0.67, -0.62, -0.43),
    (0.32, 0.74, 0.44, -0.10, 1.19, 0.83, 0.29, 2.06, 0.51, -0.26, 1.51, 0.11),
)


def attend(
    query: Tensor, key: Tensor, value: Tensor, scale: float = 1.0, mask: Mask | None = None
) -> tuple[Tensor, Tensor]:
    """Return output (T, V) and weights (T, S) of one head: queries (T, K), keys (S, K), values (S, V)."""
    index, key_index = torch.arange(query.size(0))[None], torch.arange(key.size(0))[None]
    resolved: ResolvedMask = resolve_mask(mask or no_mask(), index, key_index, is_square=False)
    heads = query[None, None], key[None, None], value[None, None]
    output, weights = eager_attention(*heads, resolved, ScoreFunction(scale), dropout=0.0)
    return output[0, 0], weights[0, 0]


def build_small(width: int, vocabulary: int, position: str = "sinusoidal") -> EncoderDecoder:
    """Build the preset `tiny` in a smaller size, with random weights and without dropout."""
    model: EncoderDecoder = build(
        preset("tiny", {"d_model": width, "source.vocabulary": vocabulary, "encoder.position.kind": position})
    )
    return model.eval()


def format_table(
    rows: Tensor | Sequence[Sequence[float]], labels: Sequence[object] = (), digits: int = 2
) -> Iterator[str]:
    """Yield rows of numbers in columns, each after its label."""
    width = max((len(str(label)) for label in labels), default=0)
    for number, row in enumerate(rows):
        label = f"{labels[number]!s:>{width}} " if labels else ""
        yield (
            label
            + " ".join(
                f"{'-':>{digits + 4}}" if value == -math.inf else f"{value:{digits + 4}.{digits}f}"
                for value in map(float, row)
            )
        )


def show_lookup() -> Iterator[str]:
    """An order database as a hard and as a soft look-up: query, key, value."""
    names = [f"order_{number}" for number in (*range(100, 110), 109)]  # the slide has order_109 twice
    yield "Eleven orders: keys order_100 ... order_109 and order_109 again, values 0 ... 10 for the items a1 ... k1."
    yield "Three queries, computed in one product: order_104, order_106 and order_109."
    keys, values = torch.eye(10)[[*range(10), 9]], torch.arange(11.0)[:, None]
    queries = keys[[4, 6, 9]]
    for scale, kind in ((1000.0, "hard: scores x 1000"), (3.0, "soft: scores x 3"), (0.0, "no scores: the mean")):
        output, weights = attend(queries, keys, values, scale)
        yield f"\n{kind}"
        for place, result, row in zip((4, 6, 9), output, weights, strict=True):
            best = [number for number, weight in enumerate(row) if weight == row.max()]
            items = " and ".join(f"{'abcdefghijk'[number]}1" for number in best) if len(best) < 11 else "all"
            match = f"weight {row.max():.2f} on {names[place]}, items {items}"
            yield f"  {names[place]} -> {match}; weighted sum of the values {result[0]:.2f}"
    yield "\nHard look-up returns one value. Attention returns the sum of all values, each times its weight. A"
    yield "dictionary must choose one of the two orders 109; attention returns the mean of both."


def show_attention() -> Iterator[str]:
    """The example "Thinking Machines": 112, 96 -> 14, 12 -> 0.88, 0.12."""
    query = torch.ones(1, 64)
    keys = torch.stack((torch.full((64,), 112 / 64), torch.full((64,), 96 / 64)))
    values = torch.eye(2)  # the output then shows the weight of each value
    yield 'The query of "Thinking" and the keys of "Thinking" and "Machines", d_k = 64:\n'
    yield join(
        "q.k                      ", "  ".join(f"{score:g}" for score in ScoreFunction(1.0).scores(query, keys)[0])
    )
    scale = 1 / math.sqrt(64)
    yield join(
        "divided by sqrt(64) = 8  ", "  ".join(f"{score:g}" for score in ScoreFunction(scale).scores(query, keys)[0])
    )
    output, weights = attend(query, keys, values, scale)
    yield join("softmax                  ", "  ".join(f"{weight:.2f}" for weight in weights[0]))
    yield f"output                    {output[0, 0]:.2f} v1 + {output[0, 1]:.2f} v2"
    _, hard = attend(query, keys, values)
    yield join("softmax without the scale", "  ".join(f"{weight:.7f}" for weight in hard[0]))
    x = torch.tensor([[1.0, 0.0], [0.8, 0.6], [-1.0, 0.2]])
    output, weights = attend(x, x, x)
    yield "\nWithout parameters, Y = softmax(X X^T) X. X, weights (rows sum to 1) and Y:"
    yield from format_table(torch.cat((x, weights, output), dim=1), digits=3)


def show_variance() -> Iterator[str]:
    """Why scores are divided by sqrt(d_k)."""
    yield "q and k with independent elements of mean 0 and variance 1; 5,000 pairs; weights of 10 keys, and the norm of"
    yield "the softmax's gradient, each as it is and with the scale:\n"
    yield "   d_k  var(q.k)  var(q.k / sqrt(d_k))  largest weight  scaled  gradient  scaled"
    generator = torch.Generator().manual_seed(0)
    for size in (1, 4, 16, 64, 256, 1024):
        query, key = torch.randn(2, 5_000, size, generator=generator)
        products = (query * key).sum(dim=-1)
        scores = products.view(-1, 10)
        weights = [part.softmax(dim=-1) for part in (scores, scores / math.sqrt(size))]  # (500, 10) each
        plain, scaled = (part.amax(dim=-1).mean() for part in weights)
        steep, scaled_steep = (measure_gradient(part).mean() for part in weights)
        variances = f"{products.var():9.1f} {(products / math.sqrt(size)).var():21.2f}"
        yield f"{size:6d} {variances} {plain:15.2f} {scaled:7.2f} {steep:9.3f} {scaled_steep:7.3f}"
    yield "\nWithout the scale one key takes all the weight, and the gradient of the softmax vanishes."


def multiply_mask(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return scores times a mask of 1 and -inf, which a slide draws: a negative score becomes +inf."""
    return scores * torch.where(allowed, 1.0, -math.inf).to(scores.dtype)


def measure_gradient(weights: Tensor) -> Tensor:
    """Return the norm of the softmax's derivative diag(p) - p p^T for weights (N, keys) -> (N)."""
    return (weights.diag_embed() - weights[:, :, None] * weights[:, None]).flatten(1).norm(dim=1)


def show_mask() -> Iterator[str]:
    """Raw scores, causal mask and probabilities, 12 x 12; and the mask as a factor, which fails."""
    raw, unit = torch.tensor(RAW_SCORES), torch.eye(12)
    index = torch.arange(12)[None]
    allowed = causal().dense(index, index)
    assert allowed is not None  # noqa: S101 - a causal mask masks
    yield "Raw scores: row = query, column = key"
    yield from format_table(raw, range(12))
    yield "\nCausal mask, added to the scores: 0, or - for minus infinity"
    yield from format_table(torch.where(allowed[0, 0], 0.0, -math.inf), range(12), digits=0)
    yield "\nMasked scores"
    yield from format_table(raw.masked_fill(~allowed[0, 0], -math.inf), range(12))
    _, weights = attend(raw, unit, unit, mask=causal())
    yield "\nProbabilities: every row sums to 1, later positions get exactly 0"
    yield from format_table(weights, range(12))
    product = multiply_mask(raw, allowed[0, 0])
    infinite, hidden = int((product == math.inf).sum()), int((~allowed).sum())
    failed = int(product.softmax(dim=-1).isnan().any(dim=-1).sum())
    yield "\nScores times a mask of 1 and minus infinity, as a slide draws it: a negative score becomes +inf"
    yield from format_table(product, range(12))
    yield f"\n{infinite} of {hidden} hidden scores are +inf. The softmax of {failed} of 12 rows is NaN: inf - inf."


def describe_rows(weights: Tensor, allowed: Tensor) -> str:
    """Return how many rows (T, S) are nan, and the largest weight of a key that is not allowed."""
    is_nan = weights.isnan().any(dim=-1)
    forbidden = torch.where(allowed, 0.0, weights)[~is_nan]
    return f"{int(is_nan.sum()):2} of {len(weights)} rows are nan; forbidden keys get up to {forbidden.max():.4f}"


def show_mask_values() -> Iterator[str]:
    """A mask added or multiplied, with minus infinity or -1e9, and a row that sees nobody."""
    raw, unit = torch.tensor(RAW_SCORES), torch.eye(12)
    allowed = torch.ones(12, 12, dtype=torch.bool).tril()
    added, product = torch.where(allowed, 0.0, -math.inf), torch.where(allowed, 1.0, -math.inf)
    negative = int((raw[~allowed] < 0).sum())
    yield "The 12 x 12 scores with a causal mask:"
    yield f"  0 or -inf, added          {describe_rows((raw + added).softmax(-1), allowed)}"
    yield f"  0 or -1e9, added          {describe_rows((raw + added.clamp(min=-1e9)).softmax(-1), allowed)}"
    yield f"  1.0 or -inf, multiplied   {describe_rows((raw * product).softmax(-1), allowed)}"
    _, weights = attend(raw, unit, unit, mask=causal())
    yield f"  Regard's attention        {describe_rows(weights, allowed)}"
    yield f"A slide draws 1.0 and -inf as a product: {negative} of {int((~allowed).sum())} hidden scores are negative,"
    yield "and times -inf they are +inf, so that their row is nan.\n"
    scores, nobody = raw[:1, :5], torch.zeros(1, 5, dtype=torch.bool)
    _, blind = attend(scores, torch.eye(5), torch.eye(5), mask=padding(nobody))
    yield "A row that may attend to none of 5 keys (padding only):"
    yield from format_table(
        torch.cat(((scores - math.inf).softmax(-1), (scores - 1e9).softmax(-1), blind)),
        ("-inf", "-1e9", "Regard's attention"),
    )
    yield "With -1e9 the row is the mean of the forbidden values: 1e9 swallows the scores in float32."


def show_padding() -> Iterator[str]:
    """A batch of rows of different lengths: padding gets no weight."""
    lengths = torch.tensor([5, 2, 3])
    valid = torch.arange(5)[None] < lengths[:, None]  # (3, 5)
    yield "Three sentences of 5, 2 and 3 tokens in one batch, <pad> after each\n"
    for row in valid:
        yield join("  ", "  ".join("token" if token else "<pad>" for token in row))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 5, 8, generator=generator)
    index = torch.arange(5)[None]
    mask = resolve_mask(padding(valid), index, index, is_square=True)
    heads = x[:, None]
    _, weights = eager_attention(heads, heads, heads, mask, ScoreFunction(1 / math.sqrt(8)), dropout=0.0)
    yield "\nAttention weights of each sentence's first token"
    yield from format_table(weights[:, 0, 0])


def show_embedding() -> Iterator[str]:
    """One-hot vector times embedding matrix = row of the matrix."""
    source = cast("TokenInput", build_small(width=4, vocabulary=5).source)
    matrix = source.embedding.weight.detach()  # (vocabulary, width): the lectures write its transpose
    one_hot = torch.nn.functional.one_hot(torch.tensor(3), num_classes=5).float()
    with torch.no_grad():
        vectors, _ = source(torch.tensor([[3]]))
    yield "Embedding matrix E, one row per token (K = 5, D = 4)"
    yield from format_table(matrix, range(5), digits=4)
    yield "\nOne-hot vector of token 3, and the vector times E"
    yield from format_table([one_hot.tolist()], digits=0)
    yield from format_table([(one_hot @ matrix).tolist()], digits=4)
    yield "\nThe model's input: row 3 times sqrt(D) = 2"
    yield from format_table(vectors[0], digits=4)


def show_loss() -> Iterator[str]:
    """Cross-entropy = KL divergence + entropy of the target."""
    logits = torch.tensor([[2.0, 0.5, 0.1, -1.0]])
    label = torch.tensor([0])
    logprobs = logits.log_softmax(dim=-1)[0]
    yield "Probabilities of four tokens; the right one is the first"
    yield from format_table([logprobs.exp().tolist()], digits=4)
    for smoothing in (0.0, 0.1):
        target = torch.full((4,), smoothing / 4)
        target[0] += 1 - smoothing
        entropy = torch.special.entr(target).sum()
        divergence = -entropy - (target * logprobs).sum()
        loss = class_loss(logits, label, label_smoothing=smoothing).total
        yield f"\nlabel smoothing {smoothing:g}: cross-entropy {loss:.4f}"
        yield f"  KL divergence {divergence:.4f} + entropy of the target {entropy:.4f} = {divergence + entropy:.4f}"
