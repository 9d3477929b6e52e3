"""Numbers and controls of lecture 2: Attention, language models, images and sound."""

import inspect
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from regard.config.codec import preset
from regard.lectures.blocks import Number
from regard.lectures.controls import list_inputs, make_control
from regard.lectures.lecture_2_language import (  # noqa: F401 - stations, which the loader finds by name
    all_at_once,
    decoding_counts,
    n_grams,
    peter_piper,
    sampling,
    word2vec_window,
)
from regard.lectures.lecture_2_media import masked_tokens, mel_tokens, pixel_orders  # noqa: F401
from regard.lectures.load import Facts
from regard.lectures.positions import encode
from regard.lectures.worked_numbers import attend, measure_gradient
from regard.models.cost import cost
from regard.nn.attend import eager_attention, resolve_mask
from regard.nn.attention import Attention
from regard.nn.masks import no_mask
from regard.nn.scores import ScoreFunction

POINTS = ((1.0, 0.0), (0.8, 0.6), (-1.0, 0.2))
TOKENS, WIDTH, HEADS, KEY_DIM, VALUE_DIM = 5, 6, 2, 3, 4  # all different, so that a shape names its sizes


def weighted_points() -> Facts:
    """Return softmax(X X^T) X of three points."""

    def compute(**inputs: float) -> dict[str, Number]:
        x = torch.tensor([[inputs[f"{axis}_{i}"] for axis in "xy"] for i in range(3)], dtype=torch.float64)
        y, weights = attend(x, x, x)
        doubled, _ = attend(2 * x, 2 * x, 2 * x)
        outputs = {f"out_{axis}_{i}": float(y[i, j]) for i in range(3) for j, axis in enumerate("xy")}
        nonlinear = float((doubled - 2 * y).abs().max())
        return outputs | {"nonlinear": nonlinear, "sum": float(weights.sum(dim=1).max())}

    def spread(*points: Sequence[float]) -> dict[str, float]:
        return {f"{axis}_{i}": point[j] for i, point in enumerate(points) for j, axis in enumerate("xy")}

    params = {"points": POINTS, "most": 2}
    cases = [spread(*points) for points in (POINTS, ((2.0, -1.5), (0.8, 0.6), (-1.0, 0.2)), [(0.5, 0.5)] * 3)]
    control = make_control("points", "Three points that you can drag", params, compute, *cases)
    return Facts(compute(**cases[0]), {"control": control})


def equal_features() -> Facts:
    """Return the weights of four keys of which features 3 to 6 say nothing."""
    generator = torch.Generator().manual_seed(7)
    keys = torch.randn(4, 6, generator=generator).mul(100).round().double() / 100
    query = torch.cat((keys[0, :2], torch.tensor([-1.2, 0.7, 0.4, -0.9], dtype=torch.float64)))
    keys[0, :2] = query[:2] = torch.tensor([1.4, -1.1])

    def compute(size: float, projection: str) -> dict[str, float]:
        factors = torch.tensor([1.0] * 2 + [0.0 if projection == "first" else size] * 4, dtype=torch.float64)
        _, weights = attend((query * factors)[None], keys * factors, keys)
        return {"right": float(weights[0, 0])}

    cases = [{"size": size, "projection": kind} for kind in ("none", "first") for size in (0, 1, 4, 2)]
    params = {"query": query.tolist(), "keys": keys.tolist(), "useful": 2}
    control = make_control("features", "Two useful features and four others", params, compute, *cases[::-1])
    return Facts(blocks={"control": control})


def score_variance() -> Facts:
    """Return softmax and gradient of ten scores whose variance is d_k."""
    scores = torch.randn(10, generator=torch.Generator().manual_seed(0)).mul(100).round().double() / 100

    def compute(exponent: int, scaled: str) -> dict[str, float]:
        size = 2**exponent
        parts = scores if scaled == "yes" else scores * math.sqrt(size)
        derivative = torch.autograd.functional.jacobian(lambda row: row.softmax(dim=-1), parts)
        return {"d_k": size, "largest": float(parts.softmax(-1).max()), "gradient": float(derivative.norm())}

    cases = [{"exponent": exponent, "scaled": scaled} for exponent in (0, 6, 12) for scaled in ("no", "yes")]
    control = make_control(
        "variance", "Ten scores, and how steep their softmax is", {"scores": scores.tolist()}, compute, *cases
    )
    many = torch.randn(500, 10, generator=torch.Generator().manual_seed(1))
    means = [float(measure_gradient((part * many).softmax(dim=-1)).mean()) for part in (32, 1)]
    numbers = {
        "plain": compute(10, "no"),
        "scaled": compute(10, "yes"),
        "plain_mean": means[0],
        "scaled_mean": means[1],
    }
    return Facts(numbers, {"control": control})


def quote(function: Callable[..., object], start: str) -> str:
    """Return the line of a function that begins with `start`, without its comment."""
    lines = (line.strip() for line in inspect.getsource(function).splitlines())
    return next(line for line in lines if line.startswith(start)).partition("  #")[0]


def algorithms() -> Facts:
    """Return Algorithms 1 and 2 line by line, with their matrices."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).mul(100).round().double() / 100

    def make_linear(outputs: int, inputs: int) -> nn.Linear:
        linear = nn.Linear(inputs, outputs, bias=False)
        linear.weight = nn.Parameter(draw(outputs, inputs), requires_grad=False)
        return linear

    x, index = draw(TOKENS, WIDTH), torch.arange(TOKENS)[None]
    score = ScoreFunction(1 / math.sqrt(KEY_DIM))
    sizes = (HEADS * KEY_DIM, WIDTH), (HEADS * KEY_DIM, WIDTH), (HEADS * VALUE_DIM, WIDTH), (WIDTH, HEADS * VALUE_DIM)
    linears = w_query, w_key, w_value, w_output = [make_linear(*size) for size in sizes]
    layer = Attention("", w_query, w_key, w_value, w_output, KEY_DIM, VALUE_DIM, score, None, None, dropout=0.0)
    mask = resolve_mask(no_mask(), index, index, is_square=True)
    query, (key, value) = layer.project_query(x[None]), layer.project_key_value(x[None])  # (1, C, N, size)
    heads, weights = eager_attention(query, key, value, mask, score, dropout=0.0)
    matrices = {"q": query[0, 0], "k": key[0, 0], "v": value[0, 0], "scores": score.scores(query, key)[0, 0]}
    matrices |= {"weights": weights[0, 0], "h": heads[0, 0], "all": heads[0].transpose(0, 1).flatten(1)}
    matrices |= {"y": layer.attend(query, key, value, mask, None)[0]}
    lines = [
        ("q", "Q₁ ← X W₁⁽q⁾", quote(Attention.project_query, "return"), ("N", "Dₖ")),
        ("k", "K₁ ← X W₁⁽k⁾", quote(Attention.project_key_value, "key ="), ("N", "Dₖ")),
        ("v", "V₁ ← X W₁⁽v⁾", quote(Attention.project_key_value, "return"), ("N", "Dᵥ")),
        ("scores", "L ← Q₁ K₁ᵀ / √Dₖ", quote(ScoreFunction.scores, "return"), ("N", "N")),
        ("weights", "A ← softmax(L)", quote(eager_attention, "weights = scores"), ("N", "N")),
        ("h", "H₁ ← A V₁", quote(eager_attention, "return"), ("N", "Dᵥ")),
        ("all", "H ← (H₁, …, H_C)", "heads.transpose(1, 2).flatten(-2)", ("N", "C Dᵥ")),
        ("y", "Y ← H W⁽o⁾", quote(Attention.attend, "return"), ("N", "D")),
    ]

    def compute(line: str) -> dict[str, Number]:
        matrix = matrices[line]
        return {"rows": matrix.size(0), "columns": matrix.size(1), "norm": float(matrix.norm())}

    def split(linear: nn.Linear) -> list[object]:
        return [part.T.tolist() for part in linear.weight.chunk(HEADS)]  # of each head: (D, size)

    names = ("query", "key", "value")
    params = {"x": x.tolist(), "lines": lines, "output": w_output.weight.T.tolist()}
    params |= {name: split(linear) for name, linear in zip(names, linears, strict=False)}
    title = f"Line by line: N = {TOKENS}, D = {WIDTH}, C = {HEADS}, Dₖ = {KEY_DIM}, Dᵥ = {VALUE_DIM}"
    control = make_control("algorithm", title, params, compute, *({"line": line} for line, *_ in lines))
    try:
        error = f"{x @ draw(TOKENS, KEY_DIM)}"
    except RuntimeError as refused:
        error = str(refused)
    return Facts({"error": error, "parameters": sum(linear.weight.numel() for linear in linears)}, {"control": control})


def cost_crossing() -> Facts:
    """Return the FLOPs of a layer by its part."""

    def compute(n: int, d: str) -> dict[str, Number]:
        changes = {"d_model": int(d), "encoder.feedforward.d_ff": 4 * int(d), "encoder.layers": 1}
        flops = cost(preset("encoder-tiny", changes), batch_size=1, source=n).forward
        parts = {"projections": flops["projections"], "attention": flops["source x source"]}
        parts |= {"feedforward": flops["feedforward"]}
        return {**parts, "share": parts["attention"] / sum(parts.values()), "ratio": n / int(d)}

    params = {"widths": (256, 512, 1024), "d_model": 512, "tokens": 512, "most": 8192}
    cases = list_inputs("n d", (512, "256"), (512, "512"), (3072, "512"), (8192, "1024"))
    control = make_control("cost", "One layer with N tokens", params, compute, *cases)
    return Facts({f"at_{n}": compute(n, "512")["share"] for n in (512, 1024, 3072, 8192)}, {"control": control})


def permutation() -> Facts:
    """Return how far the outputs of the same word differ between two orders of a sentence."""
    words, orders = ("dog", "bites", "man"), ("012", "021", "102", "120", "201", "210")
    vectors = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)).mul(100).round().double() / 100
    encoding = encode(3, 4)

    def attend_in(order: str, positions: str) -> Tensor:
        x = vectors[[int(word) for word in order]] + (encoding if positions == "yes" else 0)  # (3, 4)
        output, _ = attend(x, x, x, 1 / math.sqrt(x.size(1)))
        return output[torch.tensor([int(word) for word in order]).argsort()]  # back in the order of the words

    def compute(order: str, positions: str) -> dict[str, float]:
        return {"difference": float((attend_in(order, positions) - attend_in(orders[0], positions)).abs().max())}

    params = {"words": words, "vectors": vectors.tolist(), "positions": encoding.tolist(), "orders": orders}
    cases = [{"order": order, "positions": kind} for kind in ("yes", "no") for order in ("120", "210")]
    control = make_control("permute", "Three words in six orders", params, compute, *cases)
    numbers = {kind: compute("210", kind)["difference"] for kind in ("yes", "no")}
    return Facts(numbers, {"control": control})
