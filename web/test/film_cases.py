"""Write films of random models, and the same facts computed from the models: python film_cases.py FOLDER.

LOOK_CASES models, of four kinds in turn; `film.test.mjs` compares the numbers of the page with `expected`.
"""

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.tasks.factories import TEXTS, make_generator_settings, make_tokenizers, make_translator_settings, perturb

from regard.config import codec
from regard.look.film import read_film
from regard.models.build import build
from regard.nn.record import Record
from regard.store.examples import ValidationExample
from regard.tasks.encoding import add_special_tokens
from regard.training.film import Film

CASES = int(os.environ.get("LOOK_CASES", "4"))
LABELS = ["good", "bad", "neither"]
PAIR = make_tokenizers()
SPECIALS = PAIR.target.specials


def make_settings(kind: str, layers: int) -> Any:
    """Return the settings of a small model."""
    if kind == "translation":
        return make_translator_settings(**{"decoder.layers": layers})
    if kind == "causal_lm":
        return make_generator_settings(**{"decoder.layers": layers})
    sizes = {
        "d_model": 32,
        "source.vocabulary": PAIR.source.size,
        "encoder.layers": layers,
        "encoder.attention.heads": 4,
    }
    head = {} if kind == "masked_lm" else {"head": {"kind": "classes", "labels": LABELS}}
    return codec.preset(
        "bert", sizes | {"encoder.feedforward.d_ff": 64, "encoder.position.length": 64, "task": kind} | head
    )


def pick(logprobs: Tensor, labels: list[int]) -> float:
    """Return the sum of the log-probabilities of labels, one per row."""
    return float(logprobs.gather(1, torch.tensor(labels)[:, None]).sum())


def generate(model: Any, source: list[int], prompt: list[int], length: int) -> tuple[float, Record]:
    """Return ln p of the greedy output of this length, and the record of its last step."""
    target, record = list(prompt), Record()
    never = [token for token in SPECIALS.not_text if token != SPECIALS.eos]
    logprobs = torch.zeros(0)
    while len(target) < len(prompt) + length:
        record = Record()
        logprobs = read_sides(model, source, target, record)
        choice = logprobs[-1].clone()
        choice[never] = -torch.inf
        target.append(int(choice.argmax()))
    return pick(logprobs[len(prompt) - 1 :], target[len(prompt) :]), record


def read_sides(model: Any, source: list[int], target: list[int], record: Record | None = None) -> Tensor:
    """Return the log-probabilities of a decoder's rows."""
    sides = [torch.tensor([ids]) for ids in (source, target) if ids]
    return model(*sides, record=record)[0].float().log_softmax(dim=-1)  # type: ignore[no-any-return]


def compute(kind: str, model: Any, probe: Any, length: int) -> tuple[float, float, Tensor]:
    """Return ln p of the output and of the reference, and the weights of the last layer."""
    ids, record = PAIR.source.encode_ids([probe.text])[0], Record()
    if kind == "translation":
        source, bos = [*ids, SPECIALS.eos], [SPECIALS.bos]
        output, record = generate(model, source, bos, length)
        reference = pick(read_sides(model, source, bos + list(probe.labels[:-1])), list(probe.labels))
        return output, reference, record.weights(list(record.attention)[-1])[0]
    if kind == "causal_lm":
        prompt = [SPECIALS.bos, *ids]
        output, record = generate(model, [], prompt, length)
        logprobs = read_sides(model, [], prompt + list(probe.labels[:-1]))
        reference = pick(logprobs[len(prompt) - 1 :], list(probe.labels))
        return output, reference, record.weights(list(record.attention)[-1])[0]
    if kind == "masked_lm":
        before, after = probe.text.split("___")
        parts = PAIR.source.encode_ids([before.removesuffix(" "), after])
        row = add_special_tokens(PAIR.source, [*parts[0], SPECIALS.mask, *parts[1]])
        logits = model(torch.tensor([row]), record=record)[0, row.index(SPECIALS.mask)]
        logits[SPECIALS.not_text] = -torch.inf
    else:
        logits = model(torch.tensor([add_special_tokens(PAIR.source, ids)]), record=record)[0]
    logprobs = logits.float().log_softmax(dim=-1)
    weights = record.weights(list(record.attention)[-1])[0]
    return float(logprobs.max()), float(logprobs[probe.labels[0]]), weights


def main() -> None:
    """Write cases.json."""
    rng, cases = random.Random(1), []  # noqa: S311 - test data
    for case in range(CASES):
        kind, folder = ("translation", "causal_lm", "masked_lm", "text_classification")[case % 4], Path(sys.argv[1])
        settings = make_settings(kind, rng.randint(1, 3))
        sentences = ["A " + " ".join(rng.choices(" ".join(TEXTS).split(), k=rng.randint(4, 9))) for _ in range(8)]
        examples = [
            ValidationExample(text, rng.choice(TEXTS) if kind == "translation" else None, rng.choice(LABELS))
            for text in sentences
        ]
        film = Film(folder / str(case) / "film", settings, PAIR, examples)
        expected = []
        for step in range(2):
            model: Any = perturb(build(settings, seed=case), seed=case + step)
            film.record(step, model)
            frames = read_film(folder / str(case), [])
            assert frames is not None  # noqa: S101 - it was just written
            with torch.no_grad():
                shots = zip(film._probes, frames["frames"][step]["probes"], strict=True)
                values = [compute(kind, model, probe, shot["length"]) for probe, shot in shots]
            expected.append([[output, reference, weights.tolist()] for output, reference, weights in values])
        cases.append({"kind": kind, "film": frames, "expected": expected})
    (Path(sys.argv[1]) / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    main()
