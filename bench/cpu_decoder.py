"""What `CpuDecoder` saves in one step, in translation at batch size 1, and in a validation during training.

    python -m bench.cpu_decoder [--seconds 120]         one step
    python -m bench.cpu_decoder RUN [--seconds 120]     translation and validation

step         one token of one row, 24 times; also the cost of examining the model's modules, once per call

translate    one sentence per call, beam 5, as a user who types sentences
validation   what a validation does: the loss of all validation examples that the run kept as text, and the
             greedy translation of `validation.sentences` of them

A ratio is the median over all rounds of the CPU time without it / with it. The last line is JSON.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import torch

from bench.timing import format_table, race, ratio, restart_with_tuned_malloc
from regard.config.codec import RUN_FILES, preset
from regard.models.build import build
from regard.models.cpu_decoder import CpuDecoder, _find_change, eval_mode
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.models.inputs import pad
from regard.store.examples import read_examples
from regard.tasks.encoding import batch_by_length
from regard.tasks.load import load
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator

PRESETS, STEPS, SOURCE = ("mini", "tiny", "lm-small"), 24, torch.arange(5, 25)[None]


class ModelStep:
    """Takes the place of `LazyCpuDecoder`: every step is the model's own."""

    def __init__(self, model: Any) -> None:
        self._model, self.step = model, model.step

    @contextmanager
    def prepared(self, _model: Any) -> Iterator[None]:
        """Put the model into evaluation mode."""
        with eval_mode(self._model):
            yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="folder of a run that trained a translation model")
    parser.add_argument("--seconds", type=float, default=120.0, help="seconds per case")
    parser.add_argument("--part", type=int, default=1, help="validate with one of this many parts of the examples")
    parser.add_argument("--only", choices=["translation", "validation"], help="run only this case")
    options = parser.parse_args()
    restart_with_tuned_malloc()
    torch.set_num_threads(1)
    if options.run is None:
        for name in PRESETS:
            race_steps(name, options.seconds)
        return
    fast, plain = (load(options.run, task="translation") for _ in range(2))
    plain._decoder = ModelStep(plain.model)  # type: ignore[assignment]
    settings = RUN_FILES.load(options.run / "run.toml").validation
    examples = read_examples(options.run / "validation.jsonl")
    examples, sentences = examples[:: options.part], settings.sentences // options.part
    sources, targets = [example.source for example in examples], [example.target or "" for example in examples]
    batches = make_batches(fast, sources, targets)

    def validate(translator: Translator) -> None:
        with eval_mode(translator.model), torch.inference_mode():
            for source, valid, target in batches:
                logits = translator.model(source, target[:, :-1], valid)
                torch.nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        translator.translate(sources[:sentences], Beam(1))

    def translate_each(translator: Translator) -> Callable[[], object]:
        rounds = cycle(sources[start : start + 5] for start in range(0, 100, 5))
        return lambda: [translator.translate(text, Beam(5)) for text in next(rounds)]

    results = {}
    print(f"{len(examples)} examples; a validation translates {sentences} greedily")
    cases: dict[str, dict[str, Callable[[], object]]] = {
        "translation": {"with": translate_each(fast), "without": translate_each(plain)},
        "validation": {"with": lambda: validate(fast), "without": lambda: validate(plain)},
    }
    for name, steps in cases.items():
        if options.only not in (None, name):
            continue
        times = race(steps, seconds=options.seconds, warm_up=1)
        print(f"\n{name}\n{format_table(times, ours='with')}", flush=True)
        results[f"cpu_decoder/{name}"] = round(ratio(times["without"], times["with"]), 3)
    print(json.dumps(results))


@torch.inference_mode()
def race_steps(name: str, seconds: float) -> None:
    """Print the time of 24 steps of a preset with random weights."""
    model = build(preset(name), seed=0).eval()
    assert not isinstance(model, EncoderOnly)  # noqa: S101
    decoder, token = CpuDecoder(model), torch.tensor([[5]])

    def repeat(step: Callable[[Any, Any], object]) -> None:
        state = (
            model.start(SOURCE, capacity=STEPS) if isinstance(model, EncoderDecoder) else model.start(capacity=STEPS)
        )
        for _ in range(STEPS):
            step(token, state)

    steps: dict[str, Callable[[], object]] = {
        "with": lambda: repeat(decoder.step),
        "without": lambda: repeat(model.step),
        "examine": lambda: [_find_change(model) for _ in range(STEPS)],
    }
    print(f"\n{name}, {STEPS} steps\n{format_table(race(steps, seconds=seconds), ours='with')}", flush=True)


def make_batches(translator: Translator, sources: list[str], targets: list[str]) -> list[tuple[Any, Any, Any]]:
    """Return padded batches of about 4,096 source tokens: source, padding mask, target with bos and eos."""
    encoded = translator.encode_sources(sources, None)
    specials = translator.tokenizers.target.specials
    rows = [[specials.bos, *ids, specials.eos] for ids in translator.tokenizers.target.encode_ids(targets)]
    batches = []
    for indices in batch_by_length([len(row) for row in encoded], 4096):
        source, valid = pad([encoded[index] for index in indices], specials.pad, torch.device("cpu"))
        target, _ = pad([rows[index] for index in indices], specials.pad, torch.device("cpu"))
        batches.append((source, valid, target))
    return batches


if __name__ == "__main__":
    main()
