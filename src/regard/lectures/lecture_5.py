"""Numbers and controls of lecture 5: sequence-to-sequence models, attention, the Transformer."""

import gzip
import math
import random
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import product

import torch
from torch import Tensor

from regard.lectures import stacks
from regard.lectures.blocks import Block, Control, Table
from regard.lectures.controls import list_inputs, make_control, make_series, make_switches
from regard.lectures.load import Facts
from regard.lectures.merges import ONCE, WORD_COUNTS, count_pairs, list_merges
from regard.lectures.positions import MAX_DISTANCE, encode, multiply
from regard.lectures.searches import END, MAX_TOKENS, MISSED, SOLVED, probe_beam, probe_penalty, search_all, search_beam
from regard.lectures.stored import read_stored
from regard.lectures.trained import SYMBOLS, look_at, translate, weigh
from regard.lectures.worlds import write_symbols
from regard.nn.scores import Additive, Concat, General, ScoreFunction

KEYS = ((1.0, 0.0), (0.0, 1.0), (-1.0, -0.5))
WEIGHTS: Mapping[str, Sequence[Sequence[float]]] = {
    "general": ((0.0, 2.0), (1.0, 0.0)),
    "query": ((1.0, -0.5), (0.5, 1.0)),
    "key": ((0.8, 0.2), (-0.4, 1.2)),
}
VECTOR = (1.5, -1.0)
TABLES = {"solved": ("k = 2 succeeds", SOLVED), "missed": ("k = 2 fails", MISSED)}


def five_tasks() -> Facts:
    """Return how many outputs five tasks can have."""
    summary, sequences = read_stored("summary"), read_stored("sequences")
    rows = [
        (
            "translation",
            "I ate an apple.",
            "Ich habe einen Apfel gegessen.",
            f"{read_stored('demo_test')['bleu']} BLEU",
        ),
        ("commands to actions", "jump left twice", "LTURN JUMP LTURN JUMP", f"{sequences['scan']} % exact match"),
        ("letters to phonemes", "regard", "R AH G AA R D", f"{sequences['phonemes']} % phoneme error rate"),
        ("dialogue", "Where is my book?", "On the table.", "not measured"),
        ("summary", "16 sentences", "3 of them", "no decoder needed"),
    ]
    columns = ("task", "input", "output", "measured with Regard")
    selections = math.comb(summary["sentences"], summary["kept"])
    numbers = {
        "selections": selections,
        "subsets": 2 ** summary["sentences"],
        "digits": summary["words"] * math.log10(4000),
        "words": summary["words"],
        "bits": math.log2(selections),
    }
    return Facts(
        numbers, {"tasks": Table(title="One shape: a sequence in, a sequence out", columns=columns, rows=rows)}
    )


def product_of_factors() -> Facts:
    """Return the probability of a sentence and of its misspelled form as products."""
    right, wrong = (read_stored(name)["logprobs"] for name in ("apple", "misspelled_apple"))
    numbers = {
        "sum": sum(right),
        "product": math.prod(math.exp(value) for value in right),
        "smallest": min(math.exp(value) for value in right),
        "mean": sum(math.exp(value) for value in right) / len(right),
        "count": len(right),
        "wrong": sum(wrong),
        "falls": [value for value in wrong if value < -5],
        "ratio": math.exp(sum(right) - sum(wrong)),
    }
    return Facts(numbers)


def teacher_forced_tokens() -> Facts:
    """Return the share of perfect outputs if token errors were independent."""
    test = read_stored("demo_test")
    length = test["tokens"] / test["texts"]
    return Facts({"length": length, "independent": test["accuracy"] ** length})


def greedy_is_stuck() -> Facts:
    """Return log p of the sentences of the five-word table."""
    greedy, best = search_beam(SOLVED, 1)[0], search_all(SOLVED)
    table = SOLVED.probabilities
    he, ran = SOLVED.words.index("he"), SOLVED.words.index("ran")
    numbers = {
        "greedy": greedy.score,
        "best": best.score,
        "ratio": math.exp(best.score - greedy.score),
        "he_ran": math.log(table[-1][he] * table[he][ran] * table[ran][END]),
        "he_end": math.log(table[-1][he] * table[he][END]),
        "first": [math.log(p) for p in table[-1][1:3]],
        "first_ratio": table[-1][1] / table[-1][2],
    }
    return Facts(numbers)


def beam_step_by_step() -> Facts:
    """Return beam search over two tables, step by step."""
    tables = {
        name: {"label": label, "words": table.words, "probabilities": table.probabilities}
        for name, (label, table) in TABLES.items()
    }
    control = Control(
        control="beam",
        title="Beam search, one step at a time",
        params={"tables": tables, "table": "solved", "k": 2, "steps": MAX_TOKENS},
        probes=[
            probe
            for name, (_, table) in TABLES.items()
            for size in range(1, 5)
            for probe in probe_beam(name, table, size)
        ],
    )
    numbers = {
        "missed": {size: search_beam(MISSED, size)[0].score for size in range(1, 5)},
        "best": search_all(MISSED).score,
        "first": [math.log(p) for p in MISSED.probabilities[-1][1:4]],
    }
    return Facts(numbers, {"control": control})


def finished_by_length() -> Facts:
    """Return the finished hypotheses of a beam search and their scores for many alphas."""
    found = search_beam(MISSED, 2, n_best=4)
    names = [MISSED.write(one.tokens) for one in found]
    lengths, totals = [len(one.tokens) for one in found], [one.score for one in found]
    keys = ("text", "length", "logprob")
    rows = [dict(zip(keys, row, strict=True)) for row in zip(names, lengths, totals, strict=True)]
    control = Control(
        control="length-penalty",
        title="The finished hypotheses of k = 2 on the second table",
        params={"hypotheses": rows, "alpha": 0},
        probes=probe_penalty(totals, lengths),
    )

    def cross(i: int, j: int) -> float:
        """Return the alpha at which two hypotheses have the same score."""
        return math.log(totals[j] / totals[i]) / math.log(lengths[j] / lengths[i])

    numbers = {
        "names": names,
        "totals": totals,
        "first_change": cross(0, 1),
        "second_change": cross(1, 3),
        "times": math.exp(totals[1] - totals[3]),
        "stopped": search_beam(MISSED, 3, stop_after=1)[0].score,
        "exact": search_beam(MISSED, 3)[0].score,
    }
    return Facts(numbers, {"control": control})


def nurse_programmer() -> Facts:
    """Return how often the demo's training text has the masculine and the feminine form of a profession."""
    data = gzip.decompress((files("regard") / "assets" / "demo" / "train.tsv.gz").read_bytes()).decode()
    forms = ("Arzt", "Ärztin", "Lehrer", "Lehrerin", "Student", "Studentin")
    words = re.findall(r"\w+", data)
    counts = [words.count(form) for form in forms]
    rows = [(forms[i], counts[i], forms[i + 1], counts[i + 1]) for i in (0, 2, 4)]
    table = Table(title="Training text of the demo", columns=("masculine", "count", "feminine", "count"), rows=rows)
    absent = [words.count(name) for name in ("nurse", "programmer")]
    return Facts(
        {"forms": counts, "men": sum(counts[::2]), "women": sum(counts[1::2]), "absent": sum(absent)}, {"forms": table}
    )


def bottleneck_by_length() -> Facts:
    """Return the share of exact copies, and the gain of attention by source length."""
    copies, translation = read_stored("copies"), read_stored("before_translation")
    values = {str(number): row for number, row in enumerate(zip(copies["fixed"], copies["attention"], strict=True), 2)}
    names = {"fixed": "Fixed vector", "attention": "Attention"}
    control = make_switches(
        "Copies without an error by length", {"symbols": ("Symbols to copy", list(values))}, names, values, bars=True
    )
    gains = [a - b for a, b in zip(translation["attention"], translation["fixed"], strict=True)]
    return Facts({"gains": gains, "copies": copies}, {"control": control})


def learned_copy() -> Facts:
    """Return what the model of the world "copy" reads, and how long texts it copies."""
    look = look_at("copy", SYMBOLS)
    weights = weigh(look, "decoder.0.cross").mean(dim=0)  # (T, S): mean over heads
    tokens = [token["text"] for token in look.document["sequences"]["source"]]
    rows = [[f"writes {token}", *row] for token, row in zip(tokens, weights.tolist(), strict=True)]
    table = Table(
        title="Weights over the source, mean of the heads", columns=["symbol", *tokens], rows=rows, shaded=True
    )
    generator, shares = random.Random(1), {}  # noqa: S311
    for count in (2, 6, 8, 9, 10, 11, 12, 14):
        texts = [write_symbols(generator, count) for _ in range(25)]
        shares[count] = 100 * sum(map(str.__eq__, translate("copy", texts), texts)) / len(texts)
    curves = {"% copied without an error": list(shares.values())}
    control = make_series("Longer than in training", "Symbols to copy", list(shares), curves, 4, False)
    numbers = {"diagonal": weights.diagonal().min().item(), "shares": shares}
    return Facts(numbers, {"weights": table, "control": control})


def make_scores() -> dict[str, ScoreFunction]:
    """Return the five score functions for one head of two dimensions."""
    general, query, key = (torch.tensor(matrix)[None] for matrix in WEIGHTS.values())  # (1, 2, 2) each
    functions = {
        "dot": ScoreFunction(1.0),
        "scaled_dot": ScoreFunction(1 / math.sqrt(2)),
        "general": General(1, 2),
        "concat": Concat(1, 2, 2),
        "additive": Additive(1, 2, 2),
    }
    values: dict[str, Tensor] = {"query_weight": query, "key_weight": key, "vector": torch.tensor(VECTOR)[None]}
    for name, function in functions.items():
        values["weight"] = general if name == "general" else torch.cat((query, key), dim=2)
        for parameter, tensor in function.named_parameters():
            tensor.data = values[parameter]
    return functions


def five_score_functions() -> Facts:
    """Return five scores of one query and three keys."""
    functions = make_scores()

    @torch.no_grad()
    def compute(kind: str, angle: float, size: float) -> dict[str, float]:
        query = size * torch.tensor([[[[math.cos(math.radians(angle)), math.sin(math.radians(angle))]]]])
        function = functions[kind]
        scores = function.scores(function.on_query(query), function.on_key(torch.tensor([[KEYS]])))[0, 0, 0]
        named = {"score": scores, "weight": scores.softmax(dim=0)}
        return {f"{name}_{i}": value for name, row in named.items() for i, value in enumerate(row.tolist())}

    params = {**WEIGHTS, "keys": KEYS, "vector": VECTOR}
    cases = list_inputs("kind angle size", *((kind, *turn) for kind in functions for turn in ((30, 1.0), (120, 5.0))))
    control = make_control("five-scores", "One query and three keys", params, compute, *cases)
    cost = read_stored("score_cost")
    ratios = {key: cost[key]["additive"] / cost[key]["dot"] for key in ("milliseconds", "kept")}
    return Facts({"ratios": ratios}, {"control": control})


def low_lower_newest_widest() -> Facts:
    """Return the pairs that tie, and the text's symbols after each merge."""
    once, often = count_pairs(ONCE), count_pairs(WORD_COUNTS)
    rows = [(pair, count, often[pair]) for pair, count in once.most_common(9)]
    columns = ("pair", "each word once", "low 5, lower 2, newest 6, widest 3")
    ties = [pair for pair, count in once.items() if count == max(once.values())]
    merges = list_merges(ONCE)
    steps = [(merged or "(characters)", count, size, merges[0][2] / size) for merged, count, size in merges]
    shrinks = Table(title="Compression", columns=("merge", "count", "symbols", "characters per symbol"), rows=steps)
    blocks = {"ties": Table(title="The most frequent pairs", columns=columns, rows=rows), "shrinks": shrinks}
    numbers = {"ties": ", ".join(ties), "count": len(ties), "most": max(once.values()), "often": often, "steps": steps}
    return Facts(numbers, blocks)


def positions_of_the_slide() -> Facts:
    """Return PE and PE PE^T for 5 positions in 4 dimensions, and dot products by distance."""
    small, widths = encode(5, 4), (4, 8, 64, 512)
    printed = (0.0, 0.0017, 0.0033, 0.0050, 0.0067)  # the slide's third column
    rows = [(position, *row, printed[position]) for position, row in enumerate(small.tolist())]
    columns = ("position", "sin p", "cos p", "sin p/100", "cos p/100", "slide, third column")
    gram = [(position, *row) for position, row in enumerate((small @ small.T).tolist())]
    names = ("position", "0", "1", "2", "3", "4")

    def compute(d: str, distance: int) -> dict[str, float]:
        products = multiply(int(d))
        rise = 1 + int((products.diff() > 0).nonzero()[0])
        value, share = products[distance].item(), (products[distance] / products[0]).item()
        return {"product": value, "share": share, "rise": rise}

    cases = list_inputs("d distance", *((str(width), far) for width in widths for far in (0, 3, 4, MAX_DISTANCE)))
    params = {"widths": widths, "d": widths[0]}
    control = make_control("position-products", "Dot product by distance", params, compute, *cases)
    blocks: dict[str, Block] = {
        "positions": Table(title="PE of five positions, d = 4", columns=columns, rows=rows, digits=4),
        "products": Table(title="PE PEᵀ", columns=names, rows=gram, digits=4),
        "control": control,
    }
    products = {width: multiply(width).tolist() for width in widths}
    numbers = {"small": small.tolist(), "divisor": 1 / math.asin(printed[1]), "products": products}
    return Facts(numbers, blocks)


def three_tricks() -> Facts:
    """Return the gradient of a new stack with residual connections and norms on or off, and of the softmax."""
    switch, depths = ["on", "off"], [str(depth) for depth in stacks.PRE_NORM_DEPTHS]
    inputs = {"residual": ("Residual", switch), "norm": ("Layer norm", switch), "layers": ("Layers", depths)}
    values = {
        ",".join(key): stacks.measure_stack(int(key[2]), has_residual=key[0] == "on", has_norm=key[1] == "on")
        for key in product(*(options for _, options in inputs.values()))
    }
    names = {"output": "Size of the output", "gradient": "Size of the gradient at the input"}
    control = make_switches(
        "Three switches of a new stack (input and last gradient have size 1)", inputs, names, values
    )
    scaled = {
        size: (stacks.measure_softmax(size, 1), stacks.measure_softmax(size, size**-0.5)) for size in (4, 64, 512)
    }
    columns = ("d_k", "largest of 16 weights", "its gradient", "largest, scaled", "gradient, scaled")
    rows = [(size, *plain, *with_scale) for size, (plain, with_scale) in scaled.items()]
    table = Table(title="Softmax of random queries and keys", columns=columns, rows=rows, digits=3)
    return Facts({"sizes": values, "scaled": scaled}, {"control": control, "scale": table})
