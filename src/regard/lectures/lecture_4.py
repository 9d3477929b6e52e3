"""Numbers and controls of lecture 4: The Transformer, line by line."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from regard.config.codec import preset
from regard.config.training import AdamWConfig
from regard.lectures.blocks import Case, Control, Number, Table
from regard.lectures.controls import list_inputs, make_control
from regard.lectures.load import Facts
from regard.lectures.positions import encode
from regard.lectures.stored import read_stored
from regard.lectures.worked_numbers import RAW_SCORES, multiply_mask
from regard.models.build import build
from regard.models.cost import cost
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.loss.token import class_loss
from regard.nn.attend import ResolvedMask, eager_attention
from regard.nn.context import Context
from regard.nn.masks import no_mask
from regard.nn.scores import ScoreFunction
from regard.training.optim import make_optimizers

RAW = torch.tensor(RAW_SCORES, dtype=torch.float64)
CAUSAL = torch.ones(12, 12, dtype=torch.bool).tril()
TEXT = ["<s>", "the", "cat", "sat", "on", "the", "mat", "</s>"]
VOCABULARY = sorted(set(TEXT))


def history_of_models() -> Facts:
    """Return stored results of language models of four decades."""
    rows = [(name, value, math.log2(value)) for name, value in read_stored("history_words").items()]
    names, perplexities, bits = zip(*rows, strict=True)

    def compute(model: int) -> dict[str, float]:
        return {"perplexity": perplexities[model], "bits": bits[model]}

    params = {"names": names, "perplexities": perplexities}
    title = "Perplexity per word of WikiText-2, by the age of the idea"
    control = make_control("history", title, params, compute, *({"model": i} for i in range(len(rows))))
    return Facts({"gained": bits[0] - bits[-1]}, {"control": control})


def thinking_quiz() -> Facts:
    """Compute each answer of the quiz by the program that gives it."""
    scores = torch.tensor([112.0, 96.0], dtype=torch.float64)
    right = (scores / 8).softmax(dim=0)
    programs = (
        ("a", "`(0 * scores).softmax(0)`", (0 * scores).softmax(dim=0), "no scores: the mean"),
        ("b", "`scores / scores.sum()`", scores / scores.sum(), "no exponential"),
        ("c", "`(scores / 8).softmax(0)`", right, "attention"),
        ("d", "`(scores / 8).softmax(0).flip(0)`", right.flip(0), "values in another order than keys"),
    )
    rows = [(name, code, *weights.tolist(), bug) for name, code, weights, bug in programs]
    table = Table(title="Each answer is a program", columns=["answer", "program", "v₁", "v₂", "computes"], rows=rows)
    # A softmax that gives 112/208 has the scores ln 112 and ln 96: 16 / sqrt(d_k) = ln(112 / 96).
    numbers = {name: weights.tolist() for name, _, weights, _ in programs}
    return Facts({**numbers, "d_k": (16 / math.log(112 / 96)) ** 2}, {"table": table})


def quadratic_attention() -> Facts:
    """Return FLOPs of an encoder by length: where the quadratic term overtakes the others."""
    settings = preset("bert")
    d = settings.d_model
    costs = {length: cost(settings, batch_size=1, source=length) for length in (128, 512, 2 * d, 6 * d, 16 * d)}
    parts = ("source x source", "projections", "feedforward")
    rows = [
        (length, *(part.forward[name] / 1e9 for name in parts), part.attention_weights[parts[0]] / 1e6)
        for length, part in costs.items()
    ]
    columns = ["N", "scores, weighted sum: N² d", "projections: N d²", "feed-forward: N d²", "weights: N² h, MB"]
    title = "`bert`, d = 768, h = 12, 12 layers: GFLOP of a forward pass, and MB of one layer's attention weights"
    recurrent = cost(preset("rnnsearch"), batch_size=1, source=512, target=1)
    short = costs[128].forward
    numbers = {
        "d": d,
        "rows": rows,
        "steps": (costs[512].sequential["encoder"], recurrent.sequential["encoder"]),
        "share": short[parts[0]] / sum(short[name] for name in parts),
    }
    return Facts(numbers, {"table": Table(title=title, columns=columns, rows=rows, digits=1)})


def heads_are_free() -> Facts:
    """Return parameters, FLOPs and attention weights of the preset `base` by the number of heads."""
    names = ("encoder.attention", "decoder.attention", "decoder.cross")
    choices = {f"{h} of {512 // h}": {f"{name}.heads": h for name in names} for h in (1, 2, 4, 8, 16)}
    choices["8 of 512"] = {f"{name}.key_dim": 512 for name in names}
    rows = []
    for name, changes in choices.items():
        part = cost(preset("base", changes), batch_size=1, source=100, target=100)
        weights = part.attention_weights["source x source"]
        rows.append((name, part.parameters.total() / 1e6, part.forward.total() / 1e9, weights / 1e3))
    columns = ["heads", "parameters, millions", "forward pass, GFLOP", "weights of a layer, kB"]
    title = "`base`, d = 512, 100 source and 100 target tokens"
    return Facts({"rows": rows}, {"table": Table(title=title, columns=columns, rows=rows)})


def add_or_concatenate() -> Facts:
    """Compare the two, and find the position of each sum of a word and a position."""
    model = build(preset("tiny", {"source.vocabulary": 200}), seed=1)
    with torch.no_grad():
        words = model.source(torch.arange(200)[None])[0][0]  # (200, D)
    positions = encode(51, 128).float()  # (51, D)
    matrix = torch.randn(128, 256, generator=torch.Generator().manual_seed(1)) / 16
    joined = torch.cat((words[:51], positions), dim=1) @ matrix.T
    added = words[:51] @ matrix[:, :128].T + positions @ matrix[:, 128:].T
    rows = []
    for scale in (0.1, 0.25, 0.5, 1.0, 2.0):
        sums = (scale * words[:, None] + positions).flatten(0, 1)  # (200 x 51, D)
        nearest = [torch.cdist(sums, centers).argmin(dim=-1) for centers in (positions, scale * words)]
        own = (torch.arange(51).repeat(200), torch.arange(200).repeat_interleave(51))
        shares = (100 * float((found == right).float().mean()) for found, right in zip(nearest, own, strict=True))
        rows.append((float((scale * words).norm(dim=-1).mean()), *shares))
    columns = ["length of a word's vector", "nearest position is its own, %", "nearest word is its own, %"]
    title = "200 words + 51 positions of length 8, d = 128; `tiny` begins with words of length 11.3"
    numbers = {"rows": rows, "difference": float((joined - added).abs().max()), "more": matrix.numel()}
    return Facts(numbers, {"table": Table(title=title, columns=columns, rows=rows, digits=1)})


def waves_130() -> Facts:
    """Return the figure of positions 0 to 50 in 130 dimensions, and their dot products."""
    count, width, base = 51, 130, 10000.0
    encoded = encode(count, width, base)
    products = encoded @ encoded.T
    lengths = [2 * math.pi * base ** (2 * k / width) for k in range(width // 2)]

    def compute(position: int, other: int, dimension: int) -> dict[str, float]:
        value, dot = float(encoded[position, dimension]), float(products[position, other])
        return {"value": value, "dot": dot, "wavelength": lengths[dimension // 2]}

    inputs = ((20, 21, 0), (20, 19, 129), (50, 3, 60))
    cases = list_inputs("position other dimension", *inputs)
    params = {"positions": count, "width": width, "base": base}
    control = make_control("waves", "Positions 0 to 50, 130 dimensions", params, compute, *cases)
    fall = products[0].tolist()
    rise = next(distance for distance in range(1, count) if fall[distance + 1] > fall[distance])
    numbers = {
        "lengths": (lengths[0], lengths[-1]),
        "full": sum(length <= count - 1 for length in lengths),
        "near": (float(products[20, 19]), float(products[20, 21])),
        "rise": (rise, fall[rise], rise + 1, fall[rise + 1]),
    }
    return Facts(numbers, {"control": control})


def loss_and_step() -> Facts:
    """Train a small Transformer for one step on one text, and a table of logits in the page."""
    tokens = torch.tensor([VOCABULARY.index(word) for word in TEXT])
    inputs, labels = tokens[:-1], tokens[1:]
    changes = {f"decoder.dropout.{name}": 0.0 for name in ("embedding", "sublayer")}
    model = build(preset("lm-small", {"tokens.vocabulary": len(VOCABULARY), **changes}), seed=1)
    optimizer = make_optimizers(model, AdamWConfig())
    optimizer.set_learning_rate(0.003)
    watched = model.decoder.layers[0].attention.query.weight
    history = []
    for _ in range(2):
        logits = model(inputs[None])[0]  # (T, vocabulary)
        each = [
            float(class_loss(row[None], label[None]).total.detach()) for row, label in zip(logits, labels, strict=True)
        ]
        history.append((each, float(watched.detach()[0, 0])))
        class_loss(logits, labels).total.backward()
        optimizer.step()
    (before, first), (after, second) = history
    columns = ["X = text[:-1]", "Y = text[1:]", "loss before", "loss after"]
    rows = [*zip(TEXT[:-1], TEXT[1:], before, after, strict=True), ("", "sum", sum(before), sum(after))]
    table = Table(title="One step of AdamW, loss of each position", columns=columns, rows=rows)
    generator = torch.Generator().manual_seed(1)
    start = torch.randn(len(VOCABULARY), len(VOCABULARY), generator=generator, dtype=torch.float64).round(decimals=3)

    def compute(rate: float) -> dict[str, float]:
        weight = nn.Parameter(start.clone())
        loss = class_loss(weight[inputs], labels).total
        loss.backward()
        torch.optim.SGD([weight], lr=rate).step()
        moved = class_loss(weight[inputs], labels).total.item()
        return {"before": loss.item(), "after": moved, "weight": weight[inputs[0], labels[0]].item()}

    params = {"words": VOCABULARY, "inputs": inputs.tolist(), "labels": labels.tolist(), "logits": start.tolist()}
    title = "One step of gradient descent on a table of logits; bars: p of the right token after it"
    control = make_control("step", title, params, compute, *({"rate": rate} for rate in (1.0, 0.0, 20.0)))
    numbers = {
        "uniform": len(labels) * math.log(len(VOCABULARY)),
        "sums": (sum(before), sum(after)),
        "floor": 2 * math.log(2),
        "watched": (first, second),
        "far": control.probes[-1].outputs["after"],
    }
    return Facts(numbers, {"table": table, "control": control})


def weigh(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return Regard's attention weights (T, S) of scores (T, S), as queries of unit keys."""
    unit = torch.eye(scores.size(1), dtype=scores.dtype)[None, None]
    mask = ResolvedMask(False, allowed[None, None], None, None)
    return eager_attention(scores[None, None], unit, unit, mask, ScoreFunction(1.0), dropout=0.0)[1][0, 0]


def make_mask_control(title: str, mode: str, view: str, cell: tuple[int, int], probes: Sequence[Case]) -> Control:
    """Return the control of the 12 x 12 table."""
    params = {"scores": RAW_SCORES, "mode": mode, "view": view, "row": cell[0], "column": cell[1]}
    return Control(control="mask", title=title, params=params, probes=probes)


def mask_table() -> Facts:
    """Return the table with the mask absent, added and multiplied."""
    product = multiply_mask(RAW, CAUSAL)
    everything = torch.ones_like(CAUSAL)
    weights = {"none": weigh(RAW, everything), "add": weigh(RAW, CAUSAL), "multiply": product.softmax(dim=-1)}
    counts = {"infinite": int((product == math.inf).sum())}
    probes = []
    for mode, i in (("none", 3), ("add", 3), ("multiply", 3), ("multiply", 8)):
        outputs: dict[str, Number] = {"weight": float(weights[mode][i, i]), "infinite": 0}
        outputs["nan_rows"] = int(weights[mode].isnan().any(dim=-1).sum())
        probes.append(Case(inputs={"mode": mode, "row": i, "column": i}, outputs=outputs))
        if mode == "multiply":
            outputs |= counts
    control = make_mask_control("Scores, mask and weights", "none", "scores", (3, 3), probes)
    numbers = {**counts, "failed": probes[-1].outputs["nan_rows"], "hidden": int((~CAUSAL).sum())}
    return Facts({**numbers, "right": float(weights["add"][3, 3])}, {"control": control})


def more_than_pruning() -> Facts:
    """Return what hiding one more cell does to its row."""
    row, cut, kept = 8, 6, 8
    allowed = CAUSAL.clone()
    allowed[row, cut] = False
    before, after = weigh(RAW, CAUSAL)[row], weigh(RAW, allowed)[row]
    plain = RAW[row].softmax(dim=0)
    sums = [float(plain[shown[row]].sum()) for shown in (CAUSAL, allowed)]
    probes = [
        Case(inputs={"row": row, "column": kept}, outputs={"weight": float(before[kept]), "kept": sums[0]}),
        Case(inputs={"column": cut, "toggle": 1}, outputs={"weight": 0.0, "kept": sums[1]}),
        Case(inputs={"column": kept}, outputs={"weight": float(after[kept])}),
        Case(inputs={"column": cut, "toggle": 1}, outputs={"weight": float(before[cut])}),
    ]
    control = make_mask_control("Hide one more cell", "add", "weights", (row, cut), probes)
    numbers = {
        "before": before.tolist(),
        "after": after.tolist(),
        "sums": sums,
        "factor": float(after[kept] / before[kept]),
        "rest": float(1 - before[cut]),
        "given": float(before[kept] + before[cut]),
    }
    return Facts(numbers, {"control": control})


def blocked_row() -> Facts:
    """Return what each convention gives to a query that may see no token."""
    nothing = torch.zeros(1, 12, dtype=torch.bool)
    conventions: dict[str, Callable[[Tensor], Tensor]] = {
        "-1e9": lambda scores: scores.masked_fill(~nothing, -1e9).softmax(dim=-1),
        "-inf": lambda scores: scores.masked_fill(~nothing, -math.inf).softmax(dim=-1),
        "`regard.nn.attend`": lambda scores: weigh(scores, nothing),
    }
    rows = []
    for name, compute in conventions.items():
        values = nn.Parameter(torch.arange(12.0))
        weights = compute(RAW[:1].float())
        (gradient,) = torch.autograd.grad((weights @ values).sum(), values)
        rows.append((name, float(weights[0, 0]), float((weights @ values).detach()), float(gradient[0])))
    columns = ["hidden scores", "each weight", "output, values 0 to 11", "gradient of each value"]
    table = Table(title="A row that sees nothing, 12 keys", columns=columns, rows=rows, digits=4)
    return Facts({"rows": rows, "half": torch.tensor(-1e9).half().item()}, {"table": table})


def cost_areas() -> Facts:
    """Return the three attentions of an encoder-decoder as areas."""
    settings, names = preset("base"), ("source x source", "target x target", "target x source")

    def compute(source: int, target: int) -> dict[str, float]:
        part = cost(settings, batch_size=1, source=source, target=target).forward
        share = part[names[2]] / sum(part[name] for name in names)
        return {name.replace(" x ", "_"): part[name] / 1e9 for name in names} | {"cross_share": share}

    pair = cost(settings, batch_size=1, source=1, target=1).forward[names[0]]
    params = {"source": 1000, "target": 500, "flops": pair}
    cases = [{"source": n, "target": m} for n, m in ((1000, 500), (4000, 100), (300, 300))]
    title = "Query-key pairs as areas, FLOPs of the preset base"
    control = make_control("areas", title, params, compute, *cases)
    outputs = [probe.outputs for probe in control.probes]
    pairs = round(sum(float(outputs[0][name.replace(" x ", "_")]) for name in names) * 1e9 / pair)
    numbers = {"outputs": outputs, "tokens": 1000 + 500, "pairs": pairs}
    return Facts(numbers, {"control": control})


@torch.no_grad()
def which_connection() -> Facts:
    """Run one model with four connections of encoder and decoder layers."""
    model = build(preset("tiny", {"source.vocabulary": 100}), seed=1).eval()
    source, target = torch.arange(8)[None], torch.arange(10, 16)[None]
    expected = model(source, target)
    connections: dict[str, Callable[[list[Tensor], int], Tensor]] = {
        "last encoder layer → every decoder layer": lambda states, _: states[-1],
        "encoder layer i → decoder layer i": lambda states, i: states[i],
        "first encoder layer → every decoder layer": lambda states, _: states[0],
        "last encoder layer → last decoder layer only": lambda states, i: states[-1] * (i == len(states) - 1),
    }
    rows = []
    for name, choose in connections.items():
        difference = float((connect(model, source, target, choose) - expected).abs().max())
        rows.append((name, difference, "equal" if difference == 0 else "another function"))
    columns = ["connection", "largest difference of the logits", "result"]
    table = Table(title="`tiny`, the same weights, four connections", columns=columns, rows=rows, digits=4)
    return Facts({"rows": rows}, {"table": table})


def connect(
    model: EncoderDecoder, source: Tensor, target: Tensor, choose: Callable[[list[Tensor], int], Tensor]
) -> Tensor:
    """Return logits if decoder layer i reads `choose(outputs of the encoder layers, i)`."""
    states: list[Tensor] = []
    hooks = [layer.register_forward_hook(lambda *call: states.append(call[2])) for layer in model.encoder.layers]
    for i, layer in enumerate(model.decoder.layers):

        def give_memory(_: nn.Module, call: tuple[Tensor, Context], i: int = i) -> tuple[Tensor, Context]:
            return call[0], replace(call[1], memory=choose(states, i))

        hooks.append(layer.register_forward_pre_hook(give_memory))
    logits = model(source, target)
    for hook in hooks:
        hook.remove()
    return logits


def decoder_cache() -> Facts:
    """Return bytes of the cache, and FLOPs with and without it."""
    part = cost(preset("base"), batch_size=1, source=20, target=30)
    numbers = {
        "tiny": cost(preset("tiny"), batch_size=1, source=10, target=1).kv_cache,
        "flops": (part.decoding.total() / 1e9, part.decoding_uncached.total() / 1e9),
        "ratio": part.decoding_uncached.total() / part.decoding.total(),
        "token": part.kv_cache["self"] // 30,
    }
    return Facts(numbers)


def clones() -> Facts:
    """Train four deep copies of a layer, and four times the same layer, for one step."""
    rows = []
    for name in ("copy.deepcopy(layer)", "layer"):
        encoder = build(preset("tiny", {"source.vocabulary": 100}), seed=1).eval().encoder
        first = encoder.layers[0]
        layers = nn.ModuleList(copy.deepcopy(first) if "deepcopy" in name else first for _ in range(4))
        encoder.layers = layers  # type: ignore[assignment]
        before = measure_spread(layers)
        x = torch.randn(1, 8, 128, generator=torch.Generator().manual_seed(2))
        encoder(x, no_mask())[..., 0].sum().backward()
        torch.optim.SGD(encoder.parameters(), lr=0.1).step()
        count = sum(parameter.numel() for parameter in encoder.parameters())
        rows.append((f"`[{name} for _ in range(4)]`", count, before, measure_spread(layers)))
    columns = ["layers", "parameters", "difference of layers 1 and 4", "after one step"]
    return Facts({"rows": rows}, {"table": Table(title="Four layers of `tiny`", columns=columns, rows=rows, digits=4)})


def measure_spread(layers: nn.ModuleList) -> float:
    """Return the largest difference of a parameter of the first and of the last layer."""
    pairs = zip(layers[0].parameters(), layers[-1].parameters(), strict=True)
    return max(float((first - last).detach().abs().max()) for first, last in pairs)
