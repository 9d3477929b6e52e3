"""Sentiment of film reviews by the last layer of an encoder: LoRA by rank, and kept, fresh and extra layers.

    python examples/sst2/last_layer.py --data DATA --encoder ENCODER

DATA is the folder of the corpora, ENCODER an imported MiniLM, whose learned positions enter before the first layer. The
layers below the last one stay as they are, so they read each sentence once. Every way trains a new head on the mean of
the last states, from the same sentences in the same order, and labels the validation sentences. `--sentences 40 --steps
2` tries it.
"""

import argparse
import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # started as a script, Python looks in this folder only

from examples.sst2.run import DEV, TRAIN, read_rows

from regard.config.finetune import LoraConfig
from regard.lora import add_adapters, is_adapter
from regard.models.build import build
from regard.models.encoder_only import EncoderOnly
from regard.models.inputs import pad
from regard.nn.layer import Layer
from regard.nn.masks import padding
from regard.nn.positions import Position
from regard.nn.stack import Stack
from regard.tasks.embedding import Embedder
from regard.tasks.load import load

BATCH, RATE, LAYER_RATE = 32, 0.0025, 0.0005  # sentences; learning rates of head and adapters, and of whole layers
Change = Callable[[Stack], Callable[[str], bool]]  # changes the last layer; which of its parameters train


@dataclass(frozen=True)
class Sentences:
    """What the layers below the last one make of sentences, each (T, D), and their labels (N)."""

    states: list[Tensor]
    labels: Tensor

    def stack(self, rows: list[int]) -> tuple[Tensor, Tensor]:
        """Return the padded states (B, T, D) of sentences, and where they have tokens (B, T)."""
        parts = [self.states[row] for row in rows]
        lengths = torch.tensor([len(part) for part in parts])
        return nn.utils.rnn.pad_sequence(parts, batch_first=True), torch.arange(int(lengths.max())) < lengths[:, None]


def split_last(model: EncoderOnly) -> tuple[EncoderOnly, Stack]:
    """Return a model without its last layer, and a stack of that layer only, which adds no positions."""
    below, last = copy.deepcopy(model).eval(), copy.deepcopy(model.encoder)
    del below.encoder.layers[-1], last.layers[:-1]
    below.encoder.final_norm = None
    last.position, last.input_norm = Position(), None
    return below, last


@torch.inference_mode()
def read_states(embedder: Embedder, below: EncoderOnly, path: Path, count: int | None) -> Sentences:
    """Return the states of the first sentences of a file."""
    rows = read_rows(path)[:count]
    tokens = embedder.encode_rows([text for text, _ in rows])
    states: list[Tensor] = [torch.empty(0)] * len(rows)
    order = sorted(range(len(rows)), key=lambda row: len(tokens[row]))
    for start in range(0, len(order), BATCH):
        part = order[start : start + BATCH]
        source, valid = pad([tokens[row] for row in part], embedder.tokenizers.source.specials.pad, torch.device("cpu"))
        for row, state in zip(part, below.hidden_states(source, valid)[0], strict=True):
            states[row] = state[: len(tokens[row])].clone()
    return Sentences(states, torch.tensor([int(label) for _, label in rows]))


def adapt(rank: int, *modules: str) -> Change:
    """Train adapters of a rank, on the attention if no modules are named; alpha is the same for all ranks."""

    def change(stack: Stack) -> Callable[[str], bool]:
        settings = LoraConfig(rank=rank, modules=modules) if modules else LoraConfig(rank=rank)
        add_adapters(stack, settings, seed=1)
        return is_adapter

    return change


def train_layer(layer: Layer | None = None, *, is_extra: bool = False) -> Change:
    """Train the last layer; a new one may replace it, or come on top."""

    def change(stack: Stack) -> Callable[[str], bool]:
        if layer is not None:
            if not is_extra:
                del stack.layers[-1]
            stack.layers.append(copy.deepcopy(layer))
        return lambda name: name.startswith(f"layers.{len(stack.layers) - 1}.")

    return change


def predict(stack: Stack, head: nn.Linear, sentences: Sentences, rows: list[int]) -> Tensor:
    """Return the logits (B, 2) of sentences."""
    states, valid = sentences.stack(rows)
    output = stack(states, padding(valid))  # (B, T, D)
    return cast("Tensor", head((output * valid[..., None]).sum(dim=1) / valid.sum(dim=1, keepdim=True)))


def tune(last: Stack, change: Change, train: Sentences, test: Sentences, steps: int) -> tuple[int, float]:
    """Return how many parameters trained, besides the head, and the share of right labels."""
    stack = copy.deepcopy(last)
    torch.manual_seed(1)
    should_train = change(stack)
    for name, parameter in stack.named_parameters():
        parameter.requires_grad_(should_train(name))
    chosen = [parameter for parameter in stack.parameters() if parameter.requires_grad]
    head = nn.Linear(train.states[0].size(-1), 2)
    rate = RATE if any(map(is_adapter, dict(stack.named_parameters()))) else LAYER_RATE
    optimizer = torch.optim.AdamW([{"params": chosen, "lr": rate}, {"params": head.parameters(), "lr": RATE}])
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, total_iters=steps)
    torch.manual_seed(1)  # the same order for all
    orders = [torch.randperm(len(train.states))[:BATCH].tolist() for _ in range(steps)]
    for rows in orders:
        loss = F.cross_entropy(predict(stack.train(), head, train, rows), train.labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    stack.eval()
    order = sorted(range(len(test.states)), key=lambda row: len(test.states[row]))
    with torch.inference_mode():
        parts = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        right = sum(int((predict(stack, head, test, rows).argmax(-1) == test.labels[rows]).sum()) for rows in parts)
    return sum(parameter.numel() for parameter in chosen), right / len(order)


def main() -> None:
    """Print a row for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--encoder", type=Path, required=True, help="an imported encoder")
    parser.add_argument("--sentences", type=int, default=1000, help="number of training sentences (default 1,000)")
    parser.add_argument("--steps", type=int, default=50, help="optimizer steps of 32 sentences (default 50)")
    parser.add_argument("--tests", type=int, help="number of validation sentences (default all)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    embedder = load(options.encoder)
    assert isinstance(embedder, Embedder)  # noqa: S101 - as MiniLM is
    below, last = split_last(embedder.model)
    train = read_states(embedder, below, options.data / TRAIN, options.sentences)
    test = read_states(embedder, below, options.data / DEV, options.tests)
    fresh = build(embedder.settings, seed=2).encoder.layers[-1]
    ways: dict[str, Change] = {"only the head": lambda _: lambda _: False}
    ways |= {f"LoRA, attention, rank {rank}": adapt(rank) for rank in (1, 2, 4, 8)}
    ways |= {"LoRA, feed-forward too, rank 4": adapt(4, "*"), "the last layer": train_layer()}
    ways |= {"the last layer, fresh": train_layer(fresh), "an extra layer": train_layer(fresh, is_extra=True)}
    print("| trained, and a head | parameters | right labels |\n|---|---:|---:|", flush=True)
    for name, change in ways.items():
        count, share = tune(last, change, train, test, options.steps)
        print(f"| {name} | {count:,} | {share:.1%} |", flush=True)


if __name__ == "__main__":
    main()
