"""Numbers and controls of lecture 3: queries, keys, values and positions."""

import math
import random
from itertools import pairwise

import torch
from torch import Tensor, nn

from regard.config.codec import preset
from regard.lectures.blocks import Table
from regard.lectures.controls import list_inputs, make_control
from regard.lectures.load import Facts
from regard.lectures.positions import encode, iterate, recur, turn
from regard.lectures.stored import read_stored
from regard.lectures.trained import BANK, IT, LOOKUP, find_tag, look_at, read_heads, tag_last
from regard.lectures.worked_numbers import attend, build_small
from regard.lectures.worlds import write_order
from regard.models.build import build
from regard.nn.attend import resolve_mask
from regard.nn.attention import Attention, CrossAttention, SelfAttention
from regard.nn.context import Context
from regard.nn.feedforward import FeedForward
from regard.nn.layer import Layer, Residual
from regard.nn.masks import no_mask
from regard.nn.positions import Position
from regard.nn.stack import Stack

# RoFormer (Su et al. 2021), table 2; MNLI is the mean of its two parts.
GLUE = {
    "MRPC": (88.9, 89.5),
    "SST-2": (93.5, 90.7),
    "QNLI": (90.5, 88.0),
    "STS-B": (85.8, 87.0),
    "QQP": (71.2, 86.4),
    "MNLI": ((84.6 + 83.4) / 2, (80.2 + 79.8) / 2),
}
PARTS = {
    "embedding table": nn.Embedding,
    "position encoding": Position,
    "stack (encoder or decoder)": Stack,
    "layer": Layer,
    "self-attention": SelfAttention,
    "encoder-decoder attention": CrossAttention,
    "add & norm": Residual,
    "feed-forward": FeedForward,
}

ORDERS = tuple(f"order_{number}" for number in range(100, 110))
LAST_KEYS = ("order_109", "order_1109", "order_110", "order_100")  # of the eleventh row, as the repeated slides have it
ITEMS = tuple(f"{letter}1" for letter in "abcdefghijk")


def combine(tokens: int, value: float, first: float) -> dict[str, float]:
    """Return sum and product of values, and their slopes with respect to the first one."""
    values = torch.full((tokens,), value, dtype=torch.float64)
    values[0] = first
    values.requires_grad_()
    zeros = torch.zeros(tokens, 1, dtype=torch.float64)  # equal scores: each weight is 1/n
    total, _ = attend(zeros[:1], zeros, values[:, None])
    results = {"sum": total.sum(), "product": values.prod()}
    slopes = {f"{name}_slope": torch.autograd.grad(result, values)[0][0] for name, result in results.items()}
    return {name: result.item() for name, result in (results | slopes).items()}


def look_up(query: str, last: str, scale: float) -> dict[str, float]:
    """Return the look-up of a query in the database with this key in its last row."""
    names = (*ORDERS, last)
    unit = torch.eye(len(ORDERS) + len(LAST_KEYS), dtype=torch.float64)
    known = {name: unit[number] for number, name in enumerate(dict.fromkeys((*ORDERS, *LAST_KEYS)))}
    keys = torch.stack([known[name] for name in names])  # (11, K)
    values = torch.arange(len(names), dtype=torch.float64)[:, None]
    output, weights = attend(known[query][None], keys, values, scale)
    value = output.item()
    matches = sum(name == query for name in names)
    return {"matches": matches, "weight": weights.max().item(), "value": value, "nearest": round(value)}


def weigh_scores(factor: float) -> tuple[Tensor, Tensor]:
    """Return the weights over keys and over queries, (T, T) each, of the stored scores of "I ate an apple"."""
    scores = torch.tensor(read_stored("ate_sentence")["scores"], dtype=torch.float64)
    unit = torch.eye(len(scores), dtype=torch.float64)
    return attend(scores, unit, unit, factor)[1], attend(scores.T, unit, unit, factor)[1].T


def ate_an_apple() -> Facts:
    """Count the parts of the three families."""
    counts = {}
    for name in ("tiny", "lm-small", "encoder-tiny"):
        with torch.device("meta"):
            modules = list(build(preset(name)).modules())
        counts[name] = {part: sum(isinstance(module, kind) for module in modules) for part, kind in PARTS.items()}
    rows: list[list[str | int]] = [[part, *(count[part] for count in counts.values())] for part in PARTS]
    columns = ("part", "`tiny`: encoder-decoder", "`lm-small`: decoder only", "`encoder-tiny`: encoder only")
    return Facts({"count": counts}, {"parts": Table(title="Parts of three presets", columns=columns, rows=rows)})


@torch.inference_mode()
def change_first() -> dict[str, Tensor]:
    """Return how feed-forward and self-attention change at each of five words (T) if the first word changes."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        layer = build_small(width=32, vocabulary=20).encoder.layers[0]
    index = torch.arange(5)[None]
    mask = resolve_mask(no_mask(), index, index, is_square=True)
    context = Context(Position(), None, mask, None, None, None, None)
    x = torch.randn(1, 5, 32, generator=torch.Generator().manual_seed(1))
    changed = torch.cat((-x[:, :1], x[:, 1:]), dim=1)
    sublayers = {"feedforward": layer.feedforward, "attention": layer.attention}
    return {
        name: (compute(changed, context) - compute(x, context))[0].norm(dim=-1) for name, compute in sublayers.items()
    }


def where_is_the_context() -> Facts:
    """Return what the other words learn from a changed word."""
    fed, attended = change_first().values()
    return Facts({"own": fed[0].item(), "others": fed[1:].max().item(), "attended": attended[1:].min().item()})


def sum_or_product() -> Facts:
    """Return what sums and products do with 50 and 150 values."""
    inputs = [(50, 0.5, 0.5), (50, 0.5, 0.0), (400, 1.1, -2.0), (1, 0.5, 1.5)]
    cases = list_inputs("tokens value first", *inputs)
    params = {"tokens": 50, "value": 0.5, "other": 0.5}
    control = make_control("combine", "Sum and product of the same values", params, combine, *cases)
    underflow = torch.full((150,), 0.5).prod().item()
    numbers = {"half": combine(*inputs[0]), "zero": combine(*inputs[1]), "underflow": underflow}
    return Facts(numbers, {"control": control})


def duplicate_order() -> Facts:
    """Return look-ups of a key that is there twice."""
    inputs = [("order_109", "order_109", 50), ("order_100", "order_100", 50), ("order_104", "order_110", 3)]
    cases = list_inputs("query last scale", *inputs)
    params = {"keys": ORDERS, "last": LAST_KEYS, "items": ITEMS, "query": "order_104"}
    control = make_control("orders", "Eleven rows, one query", params, look_up, *cases)
    twice, mixed, soft = (probe.outputs for probe in control.probes)
    item = ITEMS[int(mixed["nearest"])]
    return Facts({"twice": twice, "mixed": mixed, "soft": soft, "item": item}, {"control": control})


def learned_orders() -> Facts:
    """Return what the model of the world "orders" answers, with keys that are there once, twice and not at all."""
    generator, count = random.Random(1), 100  # noqa: S311
    rows: list[tuple[str, str]] = []
    for entries in (2, 5, 8):
        texts, tags = zip(*(write_order(generator, entries) for _ in range(count)), strict=True)
        right = sum(tag == tags[i].split()[-1] for i, tag in enumerate(tag_last(texts)))
        rows.append((f"{entries} entries", f"{right} of {count} right"))
    singles = [write_order(generator, 4) for _ in range(count)]
    items = [tags.split()[-1] for _, tags in singles]
    earlier = ["b" if item == "a" else "a" for item in items]
    answers = tag_last([f"{text.split()[-1]}:{item} {text}" for (text, _), item in zip(singles, earlier, strict=True)])
    first, last = (sum(map(str.__eq__, answers, part)) for part in (earlier, items))
    rows.append(("its key twice", f"{first} times the first item, {last} times the other"))
    missing = tag_last([LOOKUP.format(105)])[0]
    rows.append(("no entry with its key", f"{missing}: a guess"))
    title = "Answers of the trained model; it was trained with five entries"
    heads = {number: read_heads(look_at("orders", LOOKUP.format(number)), f"order_{number}") for number in (104, 107)}
    numbers = {"first": first, "last": last, "count": count, "missing": missing, "right": rows[2][1], "heads": heads}
    table = Table(title=title, columns=("the query has", "answers"), rows=rows)
    return Facts(numbers, {"answers": table})


def same_time() -> Facts:
    """Compare one product of many queries with a product per query."""
    generator = torch.Generator().manual_seed(1)
    queries, keys, values = (torch.randn(count, 64, generator=generator) for count in (1000, 11, 11))
    together, _ = attend(queries, keys, values, 1 / 8)
    alone = torch.cat([attend(query[None], keys, values, 1 / 8)[0] for query in queries])
    two, _ = attend(queries[:2], keys, values, 1 / 8)
    numbers = {
        "difference": (together - alone).abs().max().item(),
        "third": (together[:2] - two).abs().max().item(),
        "products": len(queries),
        "flops": 2 * 2 * queries.size(0) * keys.size(0) * queries.size(1),
    }
    return Facts(numbers)


def alpha() -> Facts:
    """Return the scores and weights of five tokens."""
    tokens, scores = ("I", "ate", "an", "apple", "<eos>"), read_stored("ate_sentence")["scores"]

    def compute(query: int, by: str, factor: float) -> dict[str, float]:
        weights = weigh_scores(factor)[by == "column"][query].tolist()
        return {f"weight_{j}": weight for j, weight in enumerate(weights)} | {"sum": sum(weights)}

    cases = list_inputs("query by factor", (0, "row", 1), (3, "row", 1), (3, "column", 1), (1, "row", 4))
    params = {"tokens": tokens, "scores": scores}
    control = make_control("row", "One row of scores and weights", params, compute, *cases)
    by_key, by_query = weigh_scores(1)
    return Facts({"alpha": by_key.tolist(), "column": by_query.sum(dim=1).tolist()}, {"control": control})


def poll_1() -> Facts:
    """Return the consequences of the options of poll 1."""
    by_key, _ = weigh_scores(1)
    generator = torch.Generator().manual_seed(1)
    queries, keys = torch.randn(2, 500, 64, generator=generator, dtype=torch.float64)
    rows = []
    for name, scale in (("q·k", 1.0), ("q·k / √64", 1 / 8)):
        scores = (scale * queries @ keys[:10].T).requires_grad_()  # (500, 10)
        _, weights = attend(scores, torch.eye(10).double(), torch.eye(10).double())
        weights.amax(dim=-1).sum().backward()
        assert scores.grad is not None  # noqa: S101 - backward fills it
        slope = scores.grad.norm(dim=-1).median().item()
        rows.append((name, weights.min().item(), weights.max().item(), weights.amax(dim=-1).mean().item(), slope))
    columns = ("scores", "smallest weight", "largest weight", "mean of each row's largest", "median gradient")
    table = Table(title="500 queries, 10 keys, d_k = 64", columns=columns, rows=rows, digits=4)
    numbers = {"columns": by_key.sum(dim=0).tolist(), "rows": by_key.sum(dim=1).tolist(), "plain": rows[0]}
    return Facts(numbers | {"scaled": rows[1]}, {"table": table})


def recursions() -> Facts:
    """Return what the recursions do below and above c = 1/e."""
    steps = 100
    inputs = [("exp", 1.0, 0.3), ("exp", 1.0, 0.4), ("add", 1.0, 0.3), ("power", 2.0, 0.01), ("power", 1.0, 0.5)]

    def compute(rule: str, start: float, c: float) -> dict[str, float]:
        positions = recur(rule, start, c, steps)
        gaps = [abs(after - before) for before, after in pairwise(positions)]
        return {"last": positions[-1], "gap": gaps[-1], "distinct": sum(1e-6 < gap < math.inf for gap in gaps)}

    # log P(t + 1) = c^t t! log P(1), so P^(c t) grows without bound once c^t t! does.
    growth = next(t for t in range(1, 1000) if t * math.log(0.01) + math.lgamma(t + 1) > math.log(100))
    params = {"start": 1, "c": 0.3, "steps": steps}
    cases = list_inputs("rule start c", *inputs)
    control = make_control("recursion", "Three recursions", params, compute, *cases)
    small = {f"{rule}_{c:g}".replace("0.", "0"): compute(rule, start, c) for rule, start, c in inputs}
    explosion = sum(map(math.isfinite, recur("exp", 1.0, 0.4, steps)))
    return Facts(small | {"bound": 1 / math.e, "growth": growth, "explosion": explosion}, {"control": control})


def learned_matrix() -> Facts:
    """Return the powers of a matrix with eigenvalues of a size and an angle."""

    def compute(size: float, angle: float, t: int) -> dict[str, float]:
        path = iterate(size, angle, t)
        nearest = (path[1:] - path[0]).norm(dim=-1).min().item()
        x, y = path[-1].tolist()
        return {"x": x, "y": y, "length": path[-1].norm().item(), "return": nearest}

    inputs = ((1.0, 0.5, 1000), (0.99, 0.5, 1000), (1.02, 1.0, 40), (1.0, 1.57, 8))
    cases = list_inputs("size angle t", *inputs)
    params = {"size": 1, "angle": 0.5, "steps": 1000}
    control = make_control("eigenvalue", "Positions M^t P(0) in the plane", params, compute, *cases)
    kept, shrunk, grown, quarter = (probe.outputs for probe in control.probes)
    numbers: dict[str, object] = {"kept": kept, "shrunk": shrunk, "grown": grown, "quarter": quarter}
    for name, width in (("near", 2), ("far", 64)):
        encoded = encode(5001 if width > 2 else 101, width)
        distances = (encoded[1:] - encoded[0]).norm(dim=-1)
        numbers |= {name: distances.min().item(), f"{name}_at": int(distances[:100].argmin()) + 1}
    numbers["almost"] = 2 * read_stored("learned_matrix")["largest"] ** 1000
    return Facts(numbers, {"control": control})


def rotary_arrows() -> Facts:
    """Return products of a turned query and a turned key."""
    query, key = (1.0, 0.2), (0.6, 0.7)

    def compute(m: int, n: int, shift: int) -> dict[str, float]:
        q, k = turn(query, m + shift), turn(key, n + shift)
        return {"product": (q @ k).item(), "distance": m - n, "q_0": q[0].item(), "k_0": k[0].item()}

    inputs = ((5, 3, 0), (5, 3, 7), (5, 3, 1000), (3, 5, 0), (12, 12, 0))
    cases = list_inputs("m n shift", *inputs)
    control = make_control("rotary", "Two arrows turn", {"query": query, "key": key}, compute, *cases)
    rows = [(task, bert, former, "RoFormer" if former > bert else "BERT") for task, (bert, former) in GLUE.items()]
    columns = ("task", "BERT", "RoFormer", "better")
    table = Table(title="GLUE, as the slide prints it (MNLI: mean of both parts)", columns=columns, rows=rows, digits=1)
    wins = sum(row[-1] == "RoFormer" for row in rows)
    products = [probe.outputs["product"] for probe in control.probes]
    return Facts({"product": products, "wins": wins}, {"control": control, "glue": table})


def tired_wide() -> Facts:
    """Return what the heads of the toy model read at "it"."""
    looks = {adjective: look_at("it", IT.format(adjective)) for adjective in ("tired", "wide")}
    read = {adjective: read_heads(look, "it") for adjective, look in looks.items()}
    rows = [
        (adjective, find_tag(look, "it"), name, reading.word, reading.weight, reading.delta)
        for adjective, look in looks.items()
        for name, reading in read[adjective].items()
    ]
    columns = (
        "last word",
        "answer",
        "layer.head",
        '"it" reads most',
        "weight",
        "change of the log-probability without it",
    )
    table = Table(title='What each head reads at "it"', columns=columns, rows=rows, digits=3)
    parameters = looks["tired"].document["model"]["parameters"]
    bank = read_heads(look_at("bank", BANK.format("loan")), "bank")
    return Facts(
        read | {"bank": bank, "wide_tag": find_tag(looks["wide"], "it"), "parameters": parameters}, {"heads": table}
    )


@torch.inference_mode()
def poll_2() -> Facts:
    """Return the consequences of the options of poll 2."""
    model = build_small(width=32, vocabulary=20)
    cross = next(module for module in model.modules() if isinstance(module, CrossAttention))
    generator = torch.Generator().manual_seed(1)
    source, target = torch.randn(1, 5, 32, generator=generator), torch.randn(1, 3, 32, generator=generator)
    query, (key, value) = cross.project_query(target), cross.project_key_value(source)
    layer = next(module for module in model.modules() if isinstance(module, Attention))
    shapes = {name: list(part.shape[1:]) for name, part in (("query", query), ("key", key), ("value", value))}
    wide = read_heads(look_at("it", IT.format("wide")), "it")
    return Facts({"shape": shapes, "weights": list(layer.query.weight.shape), "wide": wide})
