"""Tune the bundled model of "it" to the opposite rule: adapters by rank, and the choice of parameters that train.

"it" is now the street if the animal is tired. Each row of the table trains a copy of one model on the same batches.
"""

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import cast

import torch
from torch import Tensor, nn

from regard.config.finetune import LoraConfig
from regard.lectures.trained import load_trained
from regard.lectures.worlds import OF_ANIMALS, OF_PLACES, make_it
from regard.lora import add_adapters, is_adapter
from regard.models.build import build
from regard.models.encoder_only import EncoderOnly
from regard.nn.layer import Layer
from regard.tasks.encoding import add_special_tokens
from regard.training.optim import EagerAdam

STEPS, ROWS, RATE = 200, 32, 0.003
RANKS = (1, 2, 4, 8)
Prepare = Callable[[EncoderOnly], Callable[[str], bool]]  # changes a model; which of its parameters train


def swap_adjective(text: str) -> str:
    """Return a sentence in which "it" is the other noun."""
    start, adjective = text.rsplit(" ", 1)
    mine, other = (OF_ANIMALS, OF_PLACES) if adjective in OF_ANIMALS else (OF_PLACES, OF_ANIMALS)
    return f"{start} {other[mine.index(adjective)]}"


@cache
@torch.no_grad()
def make_examples(*, is_held_out: bool) -> tuple[Tensor, Tensor, int]:
    """Return sentences (N, T), the tag of "it" by the opposite rule (N), and the place of "it"."""
    pipeline, split = load_trained("it"), make_it(random.Random(1))[is_held_out]  # noqa: S311
    tokenizer = pipeline.tokenizers.source
    texts = sorted({text for text, _ in split})
    ids, swapped = (
        torch.tensor([add_special_tokens(tokenizer, tokenizer.encode(text).ids) for text in side])
        for side in (texts, [swap_adjective(text) for text in texts])
    )
    place = 1 + texts[0].split().index("it")  # after the special token at the start
    return ids, cast("EncoderOnly", pipeline.model)(swapped)[:, place].argmax(dim=-1), place


def adapt(rank: int, modules: Sequence[str] = LoraConfig().modules) -> Prepare:
    """Train adapters of a rank; alpha / rank is always 2."""

    def prepare(model: EncoderOnly) -> Callable[[str], bool]:
        add_adapters(model, LoraConfig(rank=rank, alpha=2.0 * rank, modules=tuple(modules)), seed=1)
        return is_adapter

    return prepare


def train_last(layer: Layer | None = None, *, is_extra: bool = False) -> Prepare:
    """Train the last layer; a new one may replace it, or come on top."""

    def prepare(model: EncoderOnly) -> Callable[[str], bool]:
        layers = model.encoder.layers
        if layer is not None:
            if not is_extra:
                del layers[-1]
            layers.append(copy.deepcopy(layer))
        return lambda name: name.startswith(f"encoder.layers.{len(layers) - 1}.")

    return prepare


def tune(prepare: Prepare) -> tuple[int, list[float]]:
    """Return how many parameters trained, and the share of right tags of held-out sentences by steps."""
    model = cast("EncoderOnly", copy.deepcopy(load_trained("it").model))
    torch.manual_seed(1)
    should_train = prepare(model)
    parameters = [weight.requires_grad_() for name, weight in model.named_parameters() if should_train(name)]
    optimizer = EagerAdam(parameters, lr=RATE)
    ids, labels, place = make_examples(is_held_out=False)
    test_ids, test_labels, _ = make_examples(is_held_out=True)
    shares = []
    for step in range(STEPS + 1):
        if step % 50 == 0:
            with torch.no_grad():
                shares.append(float((model(test_ids)[:, place].argmax(dim=-1) == test_labels).float().mean()))
        batch = torch.randint(len(ids), (ROWS,))
        loss = nn.functional.cross_entropy(model(ids[batch])[:, place], labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return sum(weight.numel() for weight in parameters), shares


def show_tuning() -> Iterator[str]:
    """A new rule by LoRA of rank 1 to 8, by the last layer, a fresh or an extra one, and by all parameters."""
    settings = load_trained("it").settings
    fresh = cast("EncoderOnly", build(settings, seed=2)).encoder.layers[-1]
    ways = {f"LoRA, attention, rank {rank}": adapt(rank) for rank in RANKS}
    ways["LoRA, feed-forward too, rank 4"] = adapt(4, ("encoder.*",))
    ways |= {"the last layer": train_last(), "the last layer, fresh": train_last(fresh)}
    ways |= {"an extra layer": train_last(fresh, is_extra=True), "all parameters": lambda _: lambda _: True}
    yield 'The model of `regard lectures world it` learns the opposite rule; right tags of "it" in 120 new sentences:\n'
    yield f"{'trained':32} parameters   steps 0     50    100    150    200"
    for name, prepare in ways.items():
        count, shares = tune(prepare)
        yield f"{name:32} {count:10,}    " + " ".join(f"{share:6.0%}" for share in shares)
