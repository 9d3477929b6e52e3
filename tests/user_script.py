"""A program as a user writes it, checked with `mypy --strict` by tests/test_package.py: train, extend, save, use."""

import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.nn import functional as F

import regard
from regard.nn.positions import Position
from regard.training.events import Event, StepFinished, Validated

PAIRS = [(f"the dog sees cat {number}", f"der Hund sieht Katze {number}") for number in range(60)]
REVIEWS = [{"text": f"film {number}", "label": "good" if number % 2 else "bad"} for number in range(60)]


@regard.register("position", "ramp")
class Ramp(Position):
    """Adds a learned multiple of the position."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.slopes = torch.nn.Parameter(torch.zeros(d_model))
        self.heads = heads

    def init_weights(self, generator: torch.Generator) -> None:
        torch.nn.init.normal_(self.slopes, std=0.02, generator=generator)

    def on_input(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return x + positions[..., None] * self.slopes


def focal_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    losses = F.cross_entropy(logits, labels, reduction="none")
    return (1 - torch.exp(-losses)) ** 2 * losses


def same_length(outputs: Sequence[str], references: Sequence[str]) -> float:
    return sum(len(a) == len(b) for a, b in zip(outputs, references, strict=True)) / len(outputs)


class Stopper:
    """Stops a run after a number of steps, and remembers the scores."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.scores: list[float] = []

    def __call__(self, event: Event) -> bool:
        if isinstance(event, Validated):
            self.scores.append(event.scores["loss"])
        return isinstance(event, StepFinished) and event.step >= self.steps


def train(folder: Path) -> regard.Translator:
    ramp = {"kind": "custom", "name": "ramp"}
    stopper = Stopper(steps=2)
    finished = regard.train(
        data=PAIRS,
        validation=iter(PAIRS[:10]),
        out=folder / "run",
        languages=("en", "de"),
        steps=4,
        settings={"model.d_model": 32, "model.encoder.position": ramp},
        loss=focal_loss,
        metrics={"same_length": same_length},
        listeners=[stopper, print],
        force=True,
        progress=False,
    )
    if finished.reason == "stop requested":
        finished = regard.resume(finished.folder, loss=focal_loss, metrics={"same_length": same_length})
    return regard.load_translator(finished.folder)


def train_yourself(folder: Path) -> Path:
    tokenizer = regard.learn_tokenizer((text for pair in PAIRS for text in pair), vocabulary=300)
    config = regard.preset("tiny", {"d_model": 32, "source.vocabulary": tokenizer.size})
    model = regard.build(config, seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for source_text, target_text in PAIRS[:4]:
        source = torch.tensor([[*tokenizer.encode(source_text).ids, tokenizer.specials.eos]])
        target = torch.tensor([[tokenizer.specials.bos, *tokenizer.encode(target_text).ids]])
        logits = model(source, target[:, :-1])
        F.cross_entropy(logits[0], target[0, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad()
    return regard.save(folder / "own", model.eval(), tokenizer, config, replace=True)


def main(folder: Path) -> None:
    translator = train(folder)
    translation = translator.translate("the dog sees cat 7", regard.Beam(beam_size=2), n_best=2)
    print(translation.text, [alternative.text for alternative in translation.alternatives])
    sampling = regard.Sampling(filters=regard.Filters(top_p=0.9, temperature=0.8))
    print([result.text for result in translator.translate(["the dog", "the cat"], sampling, seed=1)])
    print(regard.load_translator(train_yourself(folder)), regard.list_presets())
    try:
        regard.train(data=REVIEWS, out=folder / "run")
    except regard.RegardError as error:
        print(error.message, error.location, error.hint)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
