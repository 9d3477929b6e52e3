"""The bundled models of toy worlds, and what their heads read."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file
from typing import cast

import torch
from torch import Tensor

from regard.lectures.worlds import JOBS, TRAINED, make_dia, make_it
from regard.look.build import look_into
from regard.look.document import Document
from regard.look.look import Look
from regard.models.encoder_only import EncoderOnly
from regard.nn.attend import eager_attention
from regard.nn.masks import no_mask, window
from regard.tasks.capabilities import TagsWords, Translates
from regard.tasks.encoding import add_special_tokens
from regard.tasks.load import load
from regard.tasks.pipeline import Pipeline

IT = "The animal did not cross the street because it was too {}"
BANK = "Anna went to the bank because of the {}"
LOOKUP = "order_100:a order_103:d order_104:e order_107:b order_109:c order_{}"
SYMBOLS = "a b c d e"


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
    """Look into the bundled model of a world while it reads a text."""
    return look_into(load_trained(world), text, name=world)


def tag_last(texts: Sequence[str]) -> list[str]:
    """Return what the model of the world "orders" answers: the tag of the last word of each text."""
    return [text.labels[-1] for text in cast("TagsWords", load_trained("orders")).tag(texts)]


def translate(world: str, texts: Sequence[str]) -> list[str]:
    """Return the translations of the model of a world."""
    return [translation.text for translation in cast("Translates", load_trained(world)).translate(texts)]


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
        weights = weigh(look, f"encoder.{layer}.self")[:, tokens.index(word)]  # (H, S)
        for head, delta in enumerate(row):
            best = int(weights[head].argmax())
            name = f"{layer + 1}.{head + 1}"
            readings[name] = HeadReading(
                name, tokens[best], weights[head, best].item(), math.nan if delta is None else delta
            )
    return readings


def weigh(look: Look, name: str) -> Tensor:
    """Return the weights of each head of an attention, (H, T, S)."""
    attention = look.record.attention[name]
    heads = attention.query, attention.key, attention.value
    return eager_attention(*heads, attention.mask, attention.score, dropout=0.0)[1][0]  # (H, T, S)


def compare_it() -> Document:
    """Return the model of "it" with "tired", compared with "wide"."""
    return look_at("it", IT.format("tired")).against(look_at("it", IT.format("wide"))).document


def compare_bank() -> Document:
    """Return the model of "bank" with "fish", compared with "loan"."""
    return look_at("bank", BANK.format("fish")).against(look_at("bank", BANK.format("loan"))).document


@torch.no_grad()
def read_within(reach: int | None) -> tuple[float, float]:
    """Return the shares of right tags, of "it" and of the other words, if a token reads at most `reach` tokens away."""
    pipeline, (_, validation) = load_trained("it"), make_it(random.Random(1))  # noqa: S311
    model = cast("EncoderOnly", pipeline.model)
    tokenizer = pipeline.tokenizers.source
    ids = torch.tensor([add_special_tokens(tokenizer, tokenizer.encode(text).ids) for text, _ in validation])  # (N, T)
    right = model(ids).argmax(dim=-1)  # with the whole sentence all tags are right
    model.mask = no_mask() if reach is None else window(reach + 1)
    same = model(ids).argmax(dim=-1) == right
    model.mask = no_mask()
    place = 1 + validation[0][0].split().index("it")  # after the special token at the start
    others = torch.arange(ids.size(1)) != place
    return float(same[:, place].float().mean()), float(same[:, others].float().mean())


def show_pronouns() -> Iterator[str]:
    """Malay "dia" is he or she: a model that reads both in training always writes the more frequent one."""
    train, _ = make_dia(random.Random(1))  # noqa: S311
    outputs = translate("dia", [f"dia seorang {job} dan tinggal di Ipoh" for job in JOBS])
    yield f'"dia seorang ... dan tinggal di Ipoh" by a model of {len(train):,} pairs (`regard lectures world dia`):\n'
    yield "she in training  translation"
    for job, output in zip(JOBS, outputs, strict=True):
        pronouns = [target.split()[0] for source, target in train if job in source.split()]
        yield f"{pronouns.count('she') / len(pronouns):15.0%}  {output}"
    yield "\nThe source does not say who it is. 4 of 5 become 5 of 5: the likeliest translation is always the majority."


def show_context() -> Iterator[str]:
    """Local and global context: the model of "it" with attention to near tokens only, and how far its heads read."""
    yield f'"{IT.format("tired")}": "it" is 2 tokens from "street", 3 from "tired"'
    yield 'and 7 from "animal". Right tags of 120 new sentences, if each token reads only tokens near it:\n'
    yield "reads up to    it  other words"
    for reach in (0, 1, 2, 6, 7, 11, None):
        shares = read_within(reach)
        yield f"{'all tokens' if reach is None else f'{reach} away':11} {shares[0]:5.0%} {shares[1]:12.1%}"
    yield "\nMean distance that a head reads in the sentence, and its weight on the token itself and its neighbors:"
    look = look_at("it", IT.format("tired"))
    for layer, name in enumerate(look.record.attention, start=1):
        weights = weigh(look, name)  # (H, T, T)
        places = torch.arange(weights.size(-1))
        far = (places[:, None] - places).abs()
        for head, rows in enumerate(weights, start=1):
            distance, near = ((rows * part).sum(dim=-1).mean() for part in (far, far <= 1))
            yield f"  head {layer}.{head} {distance:5.1f} {near:6.0%}"


def compare_orders() -> Document:
    """Return the model of "orders" with one query, compared with another."""
    return look_at("orders", LOOKUP.format(104)).against(look_at("orders", LOOKUP.format(107))).document


def compare_copy() -> Document:
    """Return the model of "copy" with different symbols, compared with repeated ones."""
    return look_at("copy", SYMBOLS).against(look_at("copy", "a b a b a")).document


PAGES: Mapping[str, Callable[[], Document]] = {
    "it": compare_it,
    "bank": compare_bank,
    "orders": compare_orders,
    "copy": compare_copy,
}
