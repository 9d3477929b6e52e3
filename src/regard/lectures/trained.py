"""The bundled models of toy worlds, and what their heads read."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file

import torch
from torch import Tensor

from regard.lectures.worlds import TRAINED
from regard.look.build import look_into
from regard.look.document import Document
from regard.look.look import Look
from regard.nn.attend import eager_attention
from regard.tasks.load import load
from regard.tasks.pipeline import Pipeline

IT = "The animal did not cross the street because it was too {}"
BANK = "Anna went to the bank because of the {}"


@dataclass(frozen=True)
class HeadReading:
    """What one head reads most at one word, and what the output loses without the head."""

    name: str  # layer.head, from 1 as in the pages of `regard look`
    word: str
    weight: float
    delta: float  # change of the output's log-probability if the head is off


@cache
def load_trained(world: str) -> Pipeline:
    """Return the bundled model of a world."""
    with as_file(TRAINED / world) as folder:
        return load(folder)


@cache
def look_at(world: str, text: str) -> Look:
    """Look into the bundled model of a world while it tags a text."""
    return look_into(load_trained(world), text, name=world)


def find_tag(look: Look, word: str) -> str:
    """Return the tag of a word."""
    tags = dict(pair.rsplit("/", 1) for pair in look.document["output"].split())
    return tags[word]


@torch.inference_mode()
def read_heads(look: Look, word: str) -> dict[str, HeadReading]:
    """Return what each head reads at a word, by layer and head, both counted from 1."""
    tokens = [token["text"] for token in look.document["sequences"]["source"]]
    ablation = look.document["ablation"]
    assert ablation is not None  # noqa: S101 - the models are small
    readings = {}
    for layer, row in enumerate(ablation["delta"]["encoder.self"]):
        weights = _weigh(look, f"encoder.{layer}.self")[:, tokens.index(word)]  # (H, S)
        for head, delta in enumerate(row):
            best = int(weights[head].argmax())
            name = f"{layer + 1}.{head + 1}"
            readings[name] = HeadReading(
                name, tokens[best], weights[head, best].item(), math.nan if delta is None else delta
            )
    return readings


def _weigh(look: Look, name: str) -> Tensor:
    attention = look.record.attention[name]
    heads = attention.query, attention.key, attention.value
    return eager_attention(*heads, attention.mask, attention.score, dropout=0.0)[1][0]  # (H, T, S)


def show_it() -> Document:
    """Return the model of "it" with "tired", compared with "wide"."""
    return look_at("it", IT.format("tired")).against(look_at("it", IT.format("wide"))).document


def show_bank() -> Document:
    """Return the model of "bank" with "fish", compared with "loan"."""
    return look_at("bank", BANK.format("fish")).against(look_at("bank", BANK.format("loan"))).document


PAGES: Mapping[str, Callable[[], Document]] = {"it": show_it, "bank": show_bank}
