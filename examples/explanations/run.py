"""Which explanations find the head that carries the answer? A toy world, where patching tells the truth.

    python examples/explanations/run.py --out explanations        # 10 seeds, about 12 CPU-minutes
    python examples/explanations/run.py --out explanations --seeds 1 --steps 100

A model tags "it" with its noun; the last adjective decides which of two nouns that is (`regard lectures world it`). Two
sentences differ in the adjective alone. Patching replaces the output of one head by its output for the other sentence.
The head whose patching flips most tags carries the answer: this is the truth, measured on one half of the held-out
sentences. Each method chooses a head on the other half:

attention    the head with the largest weight in the row of "it"
ablation     the head without which the tag's log-probability falls most
attribution  the head with the largest |gradient x (output - output for the other sentence)|
patching     the head whose patching flips most tags
"""

import argparse
import random
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor

import regard
from regard.lectures.worlds import OF_ANIMALS, OF_PLACES, WORLDS, write_world
from regard.models.encoder_only import EncoderOnly
from regard.nn.record import AttentionRecord, Record
from regard.tasks.load import load

METHODS = ("attention", "ablation", "attribution", "patching")
Head = tuple[str, int]  # name of the attention, index of the head


class HeadOutputs(Record):
    """A record that replaces the outputs (N, T, V) of some heads and keeps the gradients of the others."""

    def __init__(self, changes: dict[Head, Tensor] | None = None) -> None:
        super().__init__()
        self._changes = changes or {}

    def add_attention(self, name: str, attention: AttentionRecord) -> Tensor:
        """Record one attention; return its heads (N, H, T, V), with the changes."""
        heads = super().add_attention(name, attention).clone()
        for (other, head), output in self._changes.items():
            if other == name:
                heads[:, head] = output
        return heads


class Pairs:
    """Pairs of sentences that differ in the adjective, and a model's answers at "it"."""

    def __init__(self, model: EncoderOnly, first: Tensor, second: Tensor, place: int) -> None:
        self.model, self.first, self.second, self.place = model, first, second, place  # (N, T) each
        self.record, self.other = HeadOutputs(), HeadOutputs()
        self.logprobs = self.compute(self.record)  # (N, labels)
        with torch.no_grad():
            self.answer = model(second, record=self.other)[:, place].argmax(dim=-1)  # (N)
        self.label = self.logprobs.argmax(dim=-1)  # (N)
        self.heads = [(name, i) for name, item in self.record.attention.items() for i in range(item.output.size(1))]

    def compute(self, record: Record) -> Tensor:
        """Return the log-probabilities of the tags of "it", (N, labels)."""
        logits: Tensor = self.model(self.first, record=record)
        return logits[:, self.place].log_softmax(dim=-1)

    def change(self, head: Head, output: Tensor) -> Tensor:
        """Return the log-probabilities with another output (N, T, V) of a head."""
        with torch.no_grad():
            return self.compute(HeadOutputs({head: output}))

    def flip(self, head: Head) -> float:
        """Return the share of tags that become the other sentence's if this head's output does."""
        name, index = head
        logprobs = self.change(head, self.other.attention[name].output[:, index])
        return float((logprobs.argmax(dim=-1) == self.answer).float().mean())

    def score(self, method: str) -> dict[Head, float]:
        """Return a method's score of every head."""
        if method == "patching":
            return {head: self.flip(head) for head in self.heads}
        if method == "attention":
            weights = {name: self.record.weights(name)[:, :, self.place] for name, _ in self.heads}  # (N, H, T)
            return {(name, i): weights[name][:, i].amax(dim=-1).mean().item() for name, i in self.heads}
        outputs = {name: self.record.attention[name].output for name, _ in self.heads}
        chosen = self.choose(self.logprobs)
        if method == "ablation":
            without = {(name, i): self.change((name, i), 0 * outputs[name][:, i].detach()) for name, i in self.heads}
            return {head: float((chosen.detach() - self.choose(logprobs)).mean()) for head, logprobs in without.items()}
        gradients = dict(zip(outputs, torch.autograd.grad(chosen.sum(), list(outputs.values())), strict=True))
        effects = {
            name: gradients[name] * (outputs[name] - self.other.attention[name].output).detach() for name in outputs
        }  # (N, H, T, V) each
        return {(name, i): float(effects[name][:, i].sum(dim=(1, 2)).abs().mean()) for name, i in self.heads}

    def choose(self, logprobs: Tensor) -> Tensor:
        """Return the log-probability of each sentence's tag, (N)."""
        return logprobs.gather(1, self.label[:, None])[:, 0]


def train(out: Path, seed: int, steps: int | None) -> Path:
    """Train a model of the world "it" with this seed, unless it is there; return its folder."""
    folder = out / f"seed-{seed}"
    if not (folder / "model" / "best").is_dir():
        write_world("it", folder, seed)
        settings = {"device.threads": 1}
        regard.train(
            run=folder / "run.toml", out=folder / "model", steps=steps, seed=seed, settings=settings, progress=False
        )
    return folder / "model"


def make_pairs(folder: Path, seed: int) -> tuple[Pairs, Pairs]:
    """Return two halves of the held-out pairs of sentences."""
    pipeline = load(folder)
    model = pipeline.model
    assert isinstance(model, EncoderOnly)  # noqa: S101 - the world's model is one
    _, validation = WORLDS["it"].make(random.Random(seed))  # noqa: S311
    texts = [text for text, _ in validation if text.endswith(OF_ANIMALS)]
    others = [f"{text.rsplit(' ', 1)[0]} {OF_PLACES[OF_ANIMALS.index(text.rsplit(' ', 1)[1])]}" for text in texts]
    rows = [[list(pipeline.replay(text).input.source) for text in side] for side in (texts, others)]
    first, second = (torch.tensor(side) for side in rows)  # (N, T)
    place = 1 + texts[0].split().index("it")  # after the special token at the start
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(seed))
    halves = order[: len(texts) // 2], order[len(texts) // 2 :]
    torch.set_grad_enabled(True)
    return tuple(Pairs(model, first[half], second[half], place) for half in halves)  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the models")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--steps", type=int, help="training steps; default: the number that the world names")
    options = parser.parse_args()
    found: Counter[str] = Counter()
    print("| seed | tags differ | truth: head, flips | " + " | ".join(METHODS) + " |")
    print("|---|---|---|" + "---|" * len(METHODS))
    for seed in range(options.first, options.first + options.seeds):
        truth_half, half = make_pairs(train(options.out, seed, options.steps), seed)
        flips = truth_half.score("patching")
        truth = max(flips, key=lambda head: flips[head])
        chosen = {method: max((scores := half.score(method)), key=lambda head: scores[head]) for method in METHODS}
        found.update(method for method, head in chosen.items() if head == truth)
        differ = float((truth_half.label != truth_half.answer).float().mean())
        cells = (f"{write(head)}{' *' if head == truth else ''}" for head in chosen.values())
        print(f"| {seed} | {differ:.0%} | {write(truth)}, {flips[truth]:.0%} | " + " | ".join(cells) + " |")
    print("| found | | | " + " | ".join(f"{found[method]} of {options.seeds}" for method in METHODS) + " |")


def write(head: Head) -> str:
    """Return layer and head, from 1 as in `regard look`."""
    return f"{int(head[0].split('.')[1]) + 1}.{head[1] + 1}"


if __name__ == "__main__":
    main()
