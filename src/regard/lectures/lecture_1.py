"""Numbers and controls of lecture 1: from recurrent networks to the Transformer."""

import math
from typing import cast

import torch

from regard.lectures.blocks import Case, Control, Number, Table
from regard.lectures.controls import Row, list_inputs, look_up, make_control, make_lookup, make_series
from regard.lectures.load import Facts
from regard.lectures.positions import SENTENCES, compare_orders, compare_words, judge_places
from regard.lectures.searches import END, SOLVED, search_greedy
from regard.lectures.stacks import DEPTHS, VARIANTS, follow_printed_index, measure_depths, take_steps
from regard.lectures.stored import read_rows
from regard.lectures.worked_numbers import build_small
from regard.models.inputs import TokenInput
from regard.nn.scores import Additive


def one_vector() -> Facts:
    """Return the share of copies by length."""
    rows = [row for name, row in read_rows("before-length").items() if name.isdigit()]
    fixed, attention = ([row[i] for row in rows] for i in (0, 1))
    points = range(2, 2 + len(rows))
    curves = {"fixed vector: % copied": fixed, "attention: % copied": attention}
    control = make_series("The same task, symbol by symbol", "Symbols to copy", points, curves, 6, False)
    return Facts({"least": min(attention)}, {"control": control})


def gradient_reach() -> Facts:
    """Return the gradients of a loss by distance."""
    rows = {name: row for name, row in read_rows("before-gradients").items() if "," in name}
    distances = (2, 5, 10, 20, 50, 100)
    curves = {name: row[1:7] for name, row in rows.items()}
    control = make_series("Drag k", "k: tokens back", distances, curves, 5, True)
    return Facts(blocks={"control": control})


def align() -> Facts:
    """Return the alignment of "Ich habe einen Apfel gegessen" by an additive score with weights set by hand."""
    source, target = ["Ich", "habe", "einen", "Apfel", "gegessen"], ["I", "ate", "an", "apple"]
    meanings = torch.eye(4)[[0, 1, 2, 3, 1]]  # (5, 4): "habe" and "gegessen" both mean "ate"
    score = Additive(heads=1, key_dim=4, hidden=4)
    with torch.no_grad():
        score.query_weight.copy_(torch.eye(4))
        score.key_weight.copy_(torch.eye(4))
        score.vector.fill_(-8.0)  # tanh(1) + tanh(1) > tanh(2): words that match get the higher score
        scores = score.scores(score.on_query(torch.eye(4)[None, None]), score.on_key(meanings[None, None]))[0, 0]
    places = [1.0, 2.0, 3.0, 4.0, 5.0]
    rows = [look_up(row, places, 1.0)[1] for row in scores.tolist()]
    table = Table(
        title="Weights: each row is a target word, each column a source word",
        columns=["target", *source],
        rows=[[word, *row] for word, row in zip(target, rows, strict=True)],
        shaded=True,
    )
    control = make_lookup("One target word", "source positions 1 to 5", target, source, places, scores.tolist())
    numbers = {"ate": rows[1], "place": look_up(scores[1].tolist(), places, 1.0)[0]}
    return Facts(numbers, {"table": table, "control": control})


def one_hot() -> Facts:
    """Return the rows of an embedding matrix, as products and as the model's input."""
    source = cast(TokenInput, build_small(width=4, vocabulary=5).source)
    matrix = source.embedding.weight.detach()  # (5, 4)
    with torch.no_grad():
        vectors = source(torch.arange(5)[None])[0][0]  # (5, 4)
    products = torch.eye(5) @ matrix

    def compute(token: int) -> dict[str, float]:
        return {f"x_{j}": float(x) for j, x in enumerate(vectors[token])}

    params = {"tokens": [f"token {i}" for i in range(5)], "matrix": matrix.tolist()}
    control = make_control("one_hot", "Choose a token", params, compute, *({"token": token} for token in (0, 4, 3)))
    numbers = {"difference": float((products - matrix).abs().max()), "ratio": float((vectors / matrix).mean())}
    return Facts(numbers, {"control": control})


def order() -> Facts:
    """Return how the two sentences with "do not" differ."""

    def compute(a: str, b: str, positions: str) -> dict[str, float]:
        differences = compare_words(a, b, positions == "sinusoidal")
        return {"shared": len(differences), "largest": max(differences)}

    pairs = (SENTENCES, ("dog bites man", "man bites dog"))
    cases = [{"a": a, "b": b, "positions": kind} for a, b in pairs for kind in ("none", "sinusoidal")]
    title = "Y = softmax(X Xᵀ / √d) X of both sentences; bars: largest difference of a word"
    control = make_control("order", title, {"sentences": SENTENCES}, compute, *cases)
    without, sines = compare_orders("none"), compare_orders("sinusoidal")
    numbers = {"none": float(without.max()), "low": float(sines.min()), "high": float(sines.max())}
    return Facts(numbers, {"control": control})


def positions() -> Facts:
    """Return four encodings and what they fulfill."""
    cases = [("index", 2, 4, 64), ("normalized", 2, 4, 64), ("bits", 4, 4, 64), ("bits", 16, 4, 64)]
    cases += [("sinusoidal", 2, 4, 64), ("sinusoidal", 16, 1, 24), ("sinusoidal", 32, 4, 64)]

    def compute(kind: str, d: int, exponent: float, length: int) -> dict[str, Number]:
        return judge_places(kind, d, 10.0**exponent, length)

    inputs = list_inputs("kind d exponent length", *cases)
    control = make_control("positions", "Four encodings, four requirements", {}, compute, *inputs)
    judged = {f"{probe.inputs['kind']}_{probe.inputs['d']}": probe.outputs for probe in control.probes}
    return Facts({"judged": judged}, {"control": control})


def library() -> Facts:
    """Return a soft match of queries with three articles, by the words that they share."""
    articles = {
        "Violin: four strings, a bow, lessons for beginners": 4.0,
        "Guitar: six strings, lessons with chords": 6.0,
        "Harp: 47 strings, in the orchestra": 47.0,
    }
    queries = ("violin lessons", "orchestra", "strings")

    def read(text: str) -> set[str]:
        return {word.strip(",:").lower() for word in text.split()}

    scores = [[float(len(read(query) & read(key))) for key in articles] for query in queries]
    values = list(articles.values())
    title = "How many strings? Scores count shared words"
    keys = [key.split(":")[0] for key in articles]
    control = make_lookup(title, "numbers of strings", queries, keys, values, scores, duplicate=(0, 5.0))
    results = {name: look_up(scores[0], values, 10.0**x) for name, x in (("hard", -2), ("soft", 0), ("flat", 2))}
    numbers = {"value": {name: value for name, (value, _) in results.items()}, "weights": results["soft"][1]}
    table = Table(
        title="Keys (summaries), values, and the scores of three queries",
        columns=["summary", "strings", *queries],
        rows=[[key, values[i], *(row[i] for row in scores)] for i, key in enumerate(articles)],
    )
    both = look_up([*scores[0], scores[0][0]], [*values, 5.0], 0.01)[0]
    return Facts(numbers | {"both": both, "mean": sum(values) / 3}, {"control": control, "table": table})


def scaled_scores() -> Facts:
    """Return the weights of "Thinking Machines"."""
    scores = (112, 96)

    def weigh(d_k: float) -> Row:
        return look_up(scores, scores, math.sqrt(d_k))[1]

    def compute(d_k: float, **_: float) -> dict[str, float]:
        return {f"weight_{i}": weight for i, weight in enumerate(weigh(d_k))}

    params = {"labels": ["Thinking", "Machines"], "scores": scores, "d_k": 64}
    cases = [{"score_0": scores[0], "score_1": scores[1], "d_k": d_k} for d_k in (64, 1, 256)]
    control = make_control("softmax", "From hard to soft: the same scores with another d_k", params, compute, *cases)
    numbers = {"scaled": weigh(64), "unscaled": weigh(1), "plain": scores[0] / sum(scores)}
    return Facts(numbers, {"control": control})


def residual_and_norm() -> Facts:
    """Return the steps of one block, and the gradients and similarities of stacks without its parts."""
    steps = {has_residual: take_steps(has_residual) for has_residual in (True, False)}
    measured = {name: measure_depths(*variant) for name, variant in VARIANTS.items()}
    codes = [f"{residual:d}{norm:d}" for residual, norm in VARIANTS.values()]
    depths = list(measured.values())
    probes = []
    for (residual, norm), code, stack in zip(VARIANTS.values(), codes, depths, strict=True):
        for depth in (DEPTHS, 3):
            outputs = {"gradient": stack[depth - 1].gradient, "similarity": stack[depth - 1].similarity}
            if norm:
                output = torch.tensor(steps[residual].output)
                outputs |= {"mean": float(output.mean()), "deviation": float(output.std(correction=0))}
            probes.append(Case(inputs={"variant": code, "depth": depth}, outputs=outputs))
    params = {
        "x": steps[True].x,
        "sublayer": steps[True].sublayer,
        "variants": codes,
        "names": list(VARIANTS),
        "gradients": [[depth.gradient for depth in stack] for stack in depths],
        "similarities": [[depth.similarity for depth in stack] for stack in depths],
    }
    control = Control(control="block", title="Take a part out of the block", params=params, probes=probes)
    stacks = dict(zip(("both", "residual", "norm", "neither"), depths, strict=True))
    return Facts({"stack": stacks}, {"control": control})


def generation() -> Facts:
    """Return what greedy search writes with a table of next tokens, free, after "I", and without an end."""
    words, table, most = SOLVED.words, SOLVED.probabilities, 8
    chosen, start = words.index("I"), len(words) - 1
    free, rest = search_greedy(SOLVED, most=most), search_greedy(SOLVED, torch.tensor([[chosen]]), most)
    endless = search_greedy(SOLVED, most=most, suppress=torch.tensor([END]))
    p, rest_p = math.exp(free.score), math.exp(rest.score)
    forced, forced_p = [chosen, *rest.tokens], table[start][chosen] * rest_p
    probes = [
        Case(
            inputs={"restart": 1, **inputs, "next": most},
            outputs={"tokens": len(tokens), "p": p, "logprob": math.log(p), "finished": 1},
        )
        for inputs, tokens, p in (({}, free.tokens, p), ({f"add_{chosen}": 1}, forced, forced_p))
    ]
    params = {"words": words, "probabilities": table, "start": start, "end": END, "most": most}
    control = Control(control="generate", title="Token after token", params=params, probes=probes)
    texts = {name: SOLVED.write(ids) for name, ids in (("a", free.tokens), ("b", forced), ("c", endless.tokens))}
    numbers = {"p": p, "forced_p": forced_p, "ran": rest_p, "most": most, "steps": len(free.tokens), "texts": texts}
    return Facts(numbers, {"control": control})


def printed_index() -> Facts:
    """Return what the slide's index of the cross-attention changes."""
    return Facts(dict(zip(("difference", "unused"), follow_printed_index(), strict=True)))


def without_mask() -> Facts:
    """Return the losses with and without the causal mask."""
    rows = read_rows("without-mask")
    steps = {int(name.split()[-1]): row for name, row in rows.items() if name.startswith("training loss")}
    curves = {name: [row[i] for row in steps.values()] for i, name in enumerate(("with the mask", "without it"))}
    control = make_series("Training loss, step by step", "Step", list(steps), curves, 6, True)
    return Facts(blocks={"control": control})
