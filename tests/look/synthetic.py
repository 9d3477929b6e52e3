"""Synthetic documents of any size, for tests of the page and for its budget.

    python -m tests.look.synthetic small.json
    python -m tests.look.synthetic large.json --tokens 2048 --layers 32 --heads 32

The attention patterns are those of trained models: a sink, the previous token, a diagonal band, a few far tokens. Every
head has another mixture. A large document is a decoder-only model; a small one has all parts.
"""

import argparse
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from regard.base.blobs import Blob, encode_f32, encode_sqrt
from regard.look.document import (
    FORMAT,
    THUMBNAIL_SIZE,
    Ablation,
    Attribution,
    Continuation,
    Document,
    Group,
    GroupName,
    HypothesisJson,
    LeakTest,
    MaskTerm,
    MaskView,
    Model,
    Positions,
    Race,
    SamplingJson,
    SamplingStepJson,
    SearchJson,
    Table,
    Token,
    TokenInfo,
    to_json,
)

WORDS = [
    "two",
    "young",
    "men",
    "are",
    "out",
    "side",
    "near",
    "many",
    "bush",
    "es",
    "a",
    "little",
    "girl",
    "climb",
    "s",
    "in",
    "to",
    "wood",
    "en",
    "play",
    "house",
]
HOSTILE = [
    "</script><script>alert(1)</script>",
    "\u202egnirts",
    "👩‍👩‍👧",
    "\ufffd",
    "x" * 5000,
    "<img src=x onerror=a>",
]
Weights = NDArray[np.float32]


def make_weights(rows: int, columns: int, kind: int, generator: np.random.Generator, *, causal: bool) -> Weights:
    """Return one head's weights (rows, columns); kind 0 to 3 is sink, previous, band, far tokens."""
    row, column = np.arange(rows)[:, None], np.arange(columns)[None]
    center = row * columns / max(rows, 1)
    scores = generator.normal(0, 0.7, (rows, columns)).astype(np.float32)
    if kind == 0:
        scores += 5.0 * (column == 0)
    elif kind == 1:
        scores += 6.0 * (column == np.round(center) - 1) + 4.0 * (row == 0) * (column == 0)
    elif kind == 2:
        scores += 4.0 * np.exp(-0.5 * ((column - center) / (1 + columns / 40)) ** 2)
    else:
        scores += 6.0 * (column == generator.integers(0, columns, (rows, 1)))
    if causal:
        scores = np.where(column <= row, scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)


def shrink(weights: Weights, size: int = THUMBNAIL_SIZE) -> Weights:
    """Shrink a map to at most size x size cells by maximum."""
    for axis, length in enumerate(weights.shape):
        if length > size:
            starts = np.arange(size) * length // size
            weights = np.maximum.reduceat(weights, starts, axis=axis)
    return weights


def make_group(
    name: GroupName, layers: int, heads: int, rows: int, columns: int, blobs: dict[str, Blob], max_maps: int, seed: int
) -> Group:
    """Return an attention group; its blobs go to `blobs`. Past 256 rows, 128 of them give the thumbnails."""
    generator = np.random.default_rng(seed)
    is_sampled, causal = rows > 256, name == "decoder.self"
    thumbnails, statistics = [], {key: [] for key in ("entropy", "distance", "previous", "first")}  # type: ignore[var-annotated]
    maps: dict[str, str] = {}
    for layer in range(layers):
        tables = cast("dict[str, list[float | None]]", {key: [] for key in statistics})
        for head in range(heads):
            kind = int(generator.integers(0, 4))
            if is_sampled:  # thumbnails at their own resolution: distinct, and cheap to make
                weights = make_weights(128, THUMBNAIL_SIZE, kind, generator, causal=False)
            else:
                weights = make_weights(rows, columns, kind, generator, causal=causal)
            thumbnails.append(shrink(weights))
            row, column = np.arange(weights.shape[0])[:, None], np.arange(weights.shape[1])[None]
            is_cross = name == "decoder.cross"
            entropy = float(-(weights * np.log(np.maximum(weights, 1e-12))).sum(axis=1).mean())
            tables["entropy"].append(round(entropy, 4))
            tables["distance"].append(
                None if is_cross else round(float((weights * abs(row - column)).sum(1).mean()), 4)
            )
            tables["previous"].append(
                None if is_cross else round(float((weights * (column == row - 1)).sum(1).mean()), 4)
            )
            tables["first"].append(round(float(weights[:, 0].mean()), 4))
            if len(maps) < max_maps:
                full = make_weights(rows, columns, kind, generator, causal=causal) if is_sampled else weights
                blobs[f"{name}.{layer}.{head}"] = encode_sqrt(full)
                maps[f"{layer}.{head}"] = f"{name}.{layer}.{head}"
        for key, values in tables.items():
            statistics[key].append(values)
    blobs[f"{name}.thumbnails"] = encode_sqrt(
        np.stack(thumbnails).reshape(layers, heads, *thumbnails[0].shape)  # (layers, heads, 48, 48)
    )
    return Group(
        name=name,
        layers=layers,
        heads=heads,
        rows="source" if name == "encoder.self" else "target",
        row_start=int(name == "decoder.cross"),
        row_count=rows,
        columns="target" if name == "decoder.self" else "source",
        column_count=columns,
        statistics=cast(Any, statistics),
        sampled_rows=128 if is_sampled else None,
        default_head=[0, 0],
        thumbnails=f"{name}.thumbnails",
        maps=maps,
        errors=[[4.8e-7] * heads for _ in range(layers)],
    )


def make_tokens(count: int, *, has_bos: bool, hostile: bool = False) -> list[Token]:
    """Return tokens with words of one or two pieces, eos last."""
    tokens: list[Token] = []
    if has_bos:
        tokens.append(Token(id=1, text="<s>", role="special", word=None, prompt=True))
    word = -1
    while len(tokens) < count - 1:
        index = len(tokens) % len(WORDS)
        text = WORDS[index]
        if hostile and len(tokens) <= len(HOSTILE):
            text = HOSTILE[len(tokens) - 1]
        is_suffix = text in ("side", "es", "s", "to", "en", "house")
        word += not is_suffix
        token = Token(id=10 + index, text=text if is_suffix else f" {text}", role="text", word=word)
        if text == "\ufffd":
            token["bytes"] = "c3"
        if has_bos:
            token["logprob"] = -round(0.1 + 0.05 * index, 4)
        tokens.append(token)
    tokens.append(Token(id=2, text="</s>", role="special", word=None))
    return tokens


def make_search(target: list[Token], beam_size: int = 3) -> SearchJson:
    """Return a search whose lineage spells `target`; 2 * beam_size candidates a step, and two steps of proof."""
    generator = np.random.default_rng(5)
    columns: dict[str, list[Any]] = {
        key: [] for key in ("parent", "step", "token", "logprob", "total", "score", "status")
    }

    def add(parent: int, token: int, logprob: float, status: str) -> int:
        step = 0 if token < 0 else columns["step"][parent] + 1
        total = 0.0 if token < 0 else columns["total"][parent] + logprob
        row = (parent, step, token, round(logprob, 5), round(total, 5), round(total / max(step, 1), 5), status)
        for key, value in zip(columns, row, strict=True):
            columns[key].append(value)
        return len(columns["parent"]) - 1

    lineage, others = [add(0, -1, 0.0, "open")], [0]
    for step, token in enumerate(target[1:], 1):
        is_last = step == len(target) - 1
        best = add(lineage[-1], token["id"], float(token.get("logprob") or -0.1), "finished" if is_last else "open")
        opened = [
            add(int(generator.choice([lineage[-1], *others])), int(generator.integers(10, 30)), -1.5 - rank, "open")
            for rank in range(beam_size - 1)
        ]
        for rank in range(beam_size):
            add(int(generator.choice([lineage[-1], *others])), int(generator.integers(10, 30)), -3.0 - rank, "dropped")
        lineage.append(best)
        others = opened
    for step in range(2):  # the bound proves that nothing better exists
        others = [add(other, 10 + step, -2.0, "beaten" if step else "open") for other in others]
    return SearchJson(  # type: ignore[typeddict-item]  # `columns` has the other keys
        settings={
            "search": "beam",
            "beam_size": beam_size,
            "length_penalty": "|y|^1",
            "max_new_tokens": 71,
            "n_best": 1,
            "stop_after": None,
            "exact": False,
        },
        **cast(Any, columns),
        winners=[lineage[-1]],
        lineage=lineage,
        end="bound",
        winner_step=len(target) - 1,
        last_step=len(target) + 1,
        continuations={
            str(columns["status"].index("dropped")): Continuation(
                tokens=[12, 13, 14, 2], forced=1, logprobs=[-3.0, -0.5, -0.4, -0.2], text="men are out", score=-1.025
            )
        },
    )


def make_sampling(target: list[Token], blobs: dict[str, Blob]) -> SamplingJson:
    """Return three sampled steps over a vocabulary of 400 tokens."""
    generator, steps = np.random.default_rng(9), []
    for position in range(1, min(4, len(target))):
        logits = generator.normal(0, 2.0, 400)
        logprobs = logits - np.log(np.exp(logits).sum())
        blobs[f"logits.{position}"] = encode_f32(logprobs)
        probabilities, times = np.exp(logprobs), generator.exponential(size=400)
        order = np.argsort(-probabilities / times)[:8]
        race = Race(
            tokens=order.tolist(),
            probabilities=[round(float(value), 7) for value in probabilities[order]],
            times=[round(float(value), 7) for value in times[order]],
            contenders=400,
        )
        token = int(order[0])
        steps.append(
            SamplingStepJson(
                position=position, token=token, logprob=float(logprobs[token]), race=race, logits=f"logits.{position}"
            )
        )
    order_of_filters = ["no_repeat_ngram", "repetition_penalty", "temperature", "top_k", "top_p", "min_p", "typical_p"]
    values: list[float | int | None] = [None, 1.0, 0.8, None, 0.95, None, None]
    return SamplingJson(
        filters=dict(zip(order_of_filters, values, strict=True)),
        filter_order=order_of_filters,
        seed=0,
        suppressed=[0, 1, 3, 4, 5, 6],
        steps=steps,
    )


def make_attribution(target: list[Token], tokens: int, blobs: dict[str, Blob]) -> Attribution:
    """Return an attribution whose rows follow a diagonal."""
    generator, count = np.random.default_rng(7), len(target) - 1
    matrix = generator.normal(0, 0.1, (count, tokens + count)).astype(np.float32)
    matrix[np.arange(count), np.arange(count) % tokens] += 1.5
    matrix[:, tokens:] *= np.tri(count)
    methods = {}
    for scale, name in enumerate(("occlusion", "gradient_x_input", "integrated_gradients"), 1):
        blobs[f"attribution.{name}"] = encode_f32(matrix * scale)
        methods[name] = f"attribution.{name}"
    return Attribution(
        outputs=list(range(1, count + 1)),
        source_columns=tokens,
        target_columns=count,
        methods=methods,  # type: ignore[typeddict-item]
        logits=[8.0] * count,
        baseline_logits=[3.0] * count,
        completeness=[0.002] * count,
        steps=32,
    )


def make_document(
    *, tokens: int = 12, layers: int = 2, heads: int = 4, max_maps: int = 10**6, hostile: bool = False
) -> Document:
    """Return a synthetic document: of an encoder-decoder up to 256 tokens, beyond that of a decoder-only model."""
    is_large = tokens >= 256
    blobs: dict[str, Blob] = {}
    source = [] if is_large else make_tokens(tokens, has_bos=False, hostile=hostile)
    target = make_tokens(tokens + 1, has_bos=True, hostile=hostile)
    shapes: list[tuple[GroupName, int, int]] = [("decoder.self", tokens, tokens)]
    if not is_large:
        shapes = [("encoder.self", tokens, tokens), *shapes, ("decoder.cross", tokens, tokens)]
    groups = [
        make_group(name, layers, heads, rows, columns, blobs, max_maps, seed)
        for seed, (name, rows, columns) in enumerate(shapes)
    ]
    hypotheses = []
    if not is_large:
        generator = np.random.default_rng(3)
        cross = np.stack([make_weights(tokens, tokens, 2, generator, causal=False) for _ in range(layers * heads)])
        blobs["hypothesis.0"] = encode_sqrt(cross.reshape(layers, heads, tokens, tokens))
        words = sorted({token["word"] for token in source if token["word"] is not None})
        text = "".join(token["text"] for token in target[1:-1]).strip()
        hypotheses.append(
            HypothesisJson(
                candidate=make_search(target)["winners"][0],
                text=text,
                score=-0.4,
                tokens=target[1:],
                cross="hypothesis.0",
                links=[[word, word] for word in words],
                link_heads=[[layers - 1, 0]],
            )
        )
    random = np.random.default_rng(1)
    delta: dict[GroupName, Table] = {
        group["name"]: [[round(float(random.normal(-0.1, 0.3)), 5) for _ in range(heads)] for _ in range(layers)]
        for group in groups
    }
    stacks = ["decoder"] if is_large else ["encoder", "decoder"]
    return Document(
        format=FORMAT,
        live=False,
        text="".join(token["text"] for token in (source or target)[:-1] if token["role"] == "text").strip(),
        output="".join(token["text"] for token in target if token["role"] == "text").strip(),
        model=Model(
            family="decoder_only" if is_large else "encoder_decoder",
            task="causal_lm" if is_large else "translation",
            name="synthetic",
            width=64 * heads,
            layers=dict.fromkeys(stacks, layers),
            heads={group["name"]: heads for group in groups},
            positions={"decoder": "rotary"} if is_large else {"encoder": "sinusoidal", "decoder": "alibi"},
            parameters=1_234_567,
            vocabulary={"source": 400, "target": 400},
            sha256="0" * 64,
            regard="synthetic",
        ),
        sequences={"target": target} if is_large else {"source": source, "target": target},
        vocabulary={
            str(number): TokenInfo(
                text=f" {WORDS[number - 10]}" if 0 <= number - 10 < len(WORDS) else f" word{number}", role="text"
            )
            for number in range(3, 400)
        }
        | {"1": TokenInfo(text="<s>", role="special"), "2": TokenInfo(text="</s>", role="special")},
        attention=groups,
        search=None if is_large else make_search(target),
        sampling=make_sampling(target, blobs),
        ablation=Ablation(
            output="the translation", baseline=-4.2, delta=delta, texts={f"{groups[0]['name']}.0.0": "A new text."}
        ),
        attribution=None if is_large else make_attribution(target, tokens, blobs),
        hypotheses=hypotheses,
        predictions=[],
        masks=[
            MaskView(
                group=group["name"],
                rows=group["row_count"],
                columns=group["column_count"],
                terms=[MaskTerm(kind="causal")] if group["name"] == "decoder.self" else [],
                leak=LeakTest(prefix=tokens // 2, replaced=tokens - tokens // 2, change=0.0, later_change=3.2)
                if group["name"] == "decoder.self"
                else None,
            )
            for group in groups
        ],
        positions=[
            Positions(
                stack="decoder",
                kind="rotary",
                length=tokens,
                max_positions=None,
                base=10000.0,
                key_dim=64,
                interleaved=False,
            )
        ]
        if is_large
        else [
            Positions(
                stack="encoder",
                kind="sinusoidal",
                length=tokens,
                max_positions=None,
                width=64,
                base=10000.0,
                interleaved=True,
            ),
            Positions(
                stack="decoder",
                kind="alibi",
                length=tokens,
                max_positions=None,
                slopes=[0.25, 0.0625, 0.015625, 0.00390625][:heads],
            ),
        ],
        merges=None,
        notes=["This document is synthetic."],
        blobs=blobs,
    )


def main() -> None:
    """Write a synthetic document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--tokens", type=int, default=12)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--maps", type=int, default=None, help="full maps per group; default: all, 1 if large")
    parser.add_argument("--hostile", action="store_true", help="tokens that try to break a page")
    options = parser.parse_args()
    max_maps = options.maps if options.maps is not None else (1 if options.tokens >= 256 else 10**6)
    document = make_document(
        tokens=options.tokens, layers=options.layers, heads=options.heads, max_maps=max_maps, hostile=options.hostile
    )
    options.file.write_text(to_json(document), encoding="utf-8")


if __name__ == "__main__":
    main()
