"""Look into random models and write what switching heads off must show: python break_cases.py FOLDER.

LOOK_CASES is the number of models. The facts do not come from the look: in a copy of the model, the weights that read a
head are 0, and the copy runs the input by itself.
"""

import copy
import json
import os
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from tests.look.conftest import make_encoder
from tests.look.factories import zero_head
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
from regard.look.ablation import Head, head_key, iter_heads
from regard.look.attention import attention_name
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.masked_lm import FillMask
from regard.tasks.requests import ReplayOptions
from regard.tasks.search import Beam, Sampling
from regard.tasks.text_classification import Classifier
from regard.tasks.translation.translator import Translator

CASES = int(os.environ.get("LOOK_CASES", "5"))
RERUN = 3  # heads of a model without which it runs again
WORDS = sorted({word for text in TEXTS for word in text.split()})
KINDS = ["translation", "causal_lm", "text_classification", "masked_lm", "tagging"]
Model = Translator | TextGenerator | FillMask | Classifier


def make_model(kind: str, seed: int) -> Model:
    """Return a small model with random weights."""
    tokenizers = make_tokenizers()
    if kind == "translation":
        translator = make_translator_settings(**{"decoder.layers": 1 + seed % 2})
        return Translator(make_encoder_decoder(translator, seed), tokenizers, translator)
    if kind == "causal_lm":
        generator = make_generator_settings(**{"decoder.layers": 1 + seed % 2})
        return TextGenerator(make_decoder_only(generator, seed), tokenizers, generator)
    heads = {"text_classification": "classes", "tagging": "tags"}
    head = {"kind": heads[kind], "labels": ["yes", "no", "maybe", "9"]} if kind in heads else {}
    model, settings = make_encoder(head, kind)
    return (Classifier if head else FillMask)(perturb(model, seed), tokenizers, settings)


def without_head(pipeline: Model, head: Head) -> Model:
    """Return the pipeline with a model that lacks a head."""
    model: Any = copy.deepcopy(pipeline.model)
    zero_head(model, attention_name(head[0], head[1]), head[2])
    return type(pipeline)(model, pipeline.tokenizers, pipeline.settings)  # type: ignore[arg-type, return-value]


def main() -> None:
    """Write documents and facts."""
    torch.set_num_threads(1)
    cases = []
    for number in range(CASES):
        draw = random.Random(number)  # noqa: S311
        kind = KINDS[number % len(KINDS)]
        pipeline = make_model(kind, number)
        words = draw.choices(WORDS, k=draw.randint(2, 6))
        text = " ".join([*words, "___"] if kind == "masked_lm" else words)
        options: dict[str, Any] = {}
        if kind in ("translation", "causal_lm"):
            search = Sampling() if kind == "causal_lm" and draw.random() < 0.5 else Beam(draw.randint(1, 3))
            options = {"search": search, "max_new_tokens": 6}
        look = build.look_into(pipeline, text, **options)
        heads = list(iter_heads(look.record))
        facts: dict[str, Any] = {}
        rerun = draw.sample(heads, min(RERUN, len(heads)))
        before = look.run.input.replay()[0].double()  # (outputs)
        for head in heads:
            changed = without_head(pipeline, head)
            after = replace(look.run.input, model=changed.model).replay()[0].double()
            fact: dict[str, Any] = {"before": before.tolist(), "after": after.tolist()}
            if head in rerun:
                run = changed.replay(text, ReplayOptions(**options))
                fact["text"] = run.output if run.generated is not None else None
                fact["labels"] = [[item.labels[0], item.probabilities[0]] for item in run.predictions]
            facts[head_key(head)] = fact
        cases.append({"document": look.document, "facts": facts})
    Path(sys.argv[1], "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    # Attribution, the leak test and forced continuations have no part in it, and take most of the time.
    parts = {"_attribute": lambda *_: None, "check_leak": lambda *_: None, "best_dropped": lambda *_: []}
    with patch.multiple(build, **parts):
        main()
