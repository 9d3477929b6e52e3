"""Look into random models twice and write what a comparison must show: python compare_cases.py FOLDER.

LOOK_CASES is the number of comparisons. Probabilities and weights come from the models, not from the documents.
"""

import json
import os
import random
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from tests.look.conftest import make_encoder
from tests.tasks.factories import (
    TEXTS,
    make_decoder_only,
    make_encoder_decoder,
    make_generator_settings,
    make_tokenizers,
    make_translator_settings,
    perturb,
)

from regard.look import build
from regard.look.attention import attention_name
from regard.look.document import Token, TokenInfo
from regard.look.look import Look
from regard.look.tokens import describe_token
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.masked_lm import FillMask
from regard.tasks.pipeline import Pipeline
from regard.tasks.search import Beam, Sampling
from regard.tasks.text_classification import Classifier
from regard.tasks.translation.translator import Translator

CASES = int(os.environ.get("LOOK_CASES", "7"))
WORDS = sorted({word for text in TEXTS for word in text.split()})
LISTED = 8  # next tokens of a document


def make_model(kind: str, seed: int) -> Pipeline:
    """Return a small model with random weights."""
    tokenizers = make_tokenizers()
    if kind == "translation":
        translator = make_translator_settings()
        return Translator(make_encoder_decoder(translator, seed), tokenizers, translator)
    if kind == "causal_lm":
        generator = make_generator_settings()
        return TextGenerator(make_decoder_only(generator, seed), tokenizers, generator)
    heads = {"text_classification": "classes", "tagging": "tags"}
    head = {"kind": heads[kind], "labels": ["yes", "no", "maybe"]} if kind in heads else {}
    model, settings = make_encoder(head, kind)
    return (Classifier if head else FillMask)(perturb(model, seed), tokenizers, settings)


def make_text(kind: str, draw: random.Random) -> str:
    """Return a few random words, with gaps for a masked language model."""
    words = draw.choices(WORDS, k=draw.randint(2, 6))
    return " ".join([*words, "___"] if kind == "masked_lm" else words)


def key_of(token: Token | TokenInfo) -> str:
    """Return what tells a token apart, as compare.ts does."""
    return f"\u2039{token['bytes']}\u203a" if "bytes" in token else token["text"]


def is_break(token: Token) -> bool:
    """Return whether a token is a line break, which is no part of a word."""
    return any(sign in token["text"] for sign in "\n\r") and not token["text"].strip()


def describe(look: Look) -> dict[str, Any]:
    """Return certainty, word probabilities and next-token distributions of one look, from the model."""
    inputs, generated = look.run.input, look.run.generated
    logprobs = inputs.replay()[0].double()  # (labels)
    if generated is None:
        chances = logprobs.exp().tolist()
        return {"sure": min(chances), "words": chances, "next": [], "tokens": []}
    distributions = inputs.distributions(inputs.target, inputs.rows).double().exp()  # (rows, V)
    infos = [describe_token(generated.generation.tokenizer, token) for token in range(distributions.size(1))]
    tokens = [token for token in look.document["sequences"]["target"] if "logprob" in token]
    words: list[list[float]] = []
    previous: Token | None = None
    for token, logprob in zip(tokens, logprobs.tolist(), strict=True):
        if token["role"] == "special":
            continue
        is_same_word = previous is not None and token["word"] is not None and token["word"] == previous["word"]
        if previous is not None and is_same_word and not is_break(token) and not is_break(previous):
            words[-1].append(logprob)
        else:
            words.append([logprob])
        previous = token
    total = logprobs.mean() if isinstance(generated.generation.search, Sampling) else logprobs.sum()
    return {
        "sure": total.exp().item(),
        "words": torch.tensor([sum(word) for word in words], dtype=torch.float64).exp().tolist(),
        "tokens": [key_of(token) for token in tokens],
        "next": [
            {key_of(info): chance for info, chance in zip(infos, row, strict=True)} for row in distributions.tolist()
        ],
        "listed": [
            [key_of(infos[token]) for token in row] for row in distributions.topk(LISTED, dim=1).indices.tolist()
        ],
    }


def weights(look: Look, draw: random.Random) -> dict[str, Any]:
    """Return the exact weights of one head of every group."""
    heads = {}
    for group in look.document["attention"]:
        layer, head = draw.randrange(group["layers"]), draw.randrange(group["heads"])
        values = look.record.weights(attention_name(group["name"], layer), [head])[0, 0]
        heads[group["name"]] = {"layer": layer, "head": head, "weights": values.double().tolist()}
    return heads


def main() -> None:
    """Write the comparisons: two inputs of a model, two models with one input, or both."""
    torch.set_num_threads(1)
    kinds = ["translation", "causal_lm", "text_classification", "masked_lm", "tagging"]
    cases = []
    for number in range(CASES):
        draw = random.Random(number)  # noqa: S311
        kind, mode = kinds[number % len(kinds)], number % 3
        first = make_model(kind, 2 * number)
        second = first if mode == 0 else make_model(kind, 2 * number + 1)
        text = make_text(kind, draw)
        other = text if mode == 1 else make_text(kind, draw)
        search = draw.choice([Beam(2), Sampling()]) if kind == "causal_lm" else None
        options: dict[str, Any] = {"search": search, "max_new_tokens": 6, "ablation": False}
        if kind not in ("translation", "causal_lm"):
            options = {"ablation": False}
        a, b = build.look_into(first, text, **options), build.look_into(second, other, **options)
        sides = [describe(look) | {"heads": weights(look, draw)} for look in (a, b)]
        cases.append({"document": a.against(b).document, "sides": sides, "isSameModel": mode == 0})
    Path(sys.argv[1], "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    # Attribution, the leak test and forced continuations are no part of a comparison, and take most of the time.
    with patch.multiple(build, _attribute=lambda *_: None, check_leak=lambda *_: None, best_dropped=lambda *_: []):
        main()
