"""Look into random models, and write documents with the findings computed from the models: story_cases.py FOLDER.

LOOK_CASES models in turn of nine kinds. Everything comes from plain forward passes of the models, except which
candidates a search had and the integrated gradients, which have tests of their own.
"""

import math
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

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
from tests.tasks.media_models import (
    make_png,
    make_wav,
    write_audio_model,
    write_captioning_model,
    write_image_model,
    write_transcription_model,
)
from torch import Tensor

from regard.base.blobs import decode_blob
from regard.look import build
from regard.look.attention import attention_name
from regard.look.build import look_into
from regard.look.document import to_json
from regard.look.look import Look
from regard.nn.record import AttentionRecord, Record
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.load import load
from regard.tasks.masked_lm import FillMask
from regard.tasks.search import Beam
from regard.tasks.text_classification import Classifier
from regard.tasks.translation.translator import Translator

CASES = int(os.environ.get("LOOK_CASES", "9"))
BLANK = "\t\n\x0b\x0c\r \xa0\u2028\u2029\u3000\ufeff"  # what JavaScript trims
WITHOUT_ATTRIBUTION = mock.patch.object(
    build, "_attribute", return_value=None
)  # slow; a text's story has no use for it
ORDER = ("decoder.cross", "decoder.self", "encoder.self")
Numbers = dict[str, float]
Unit = list[int]  # places of the tokens of a word


class WithoutHead(Record):
    """Sets the output of one head to 0."""

    def __init__(self, name: str, head: int) -> None:
        super().__init__()
        self.name, self.head = name, head

    def add_attention(self, name: str, attention: AttentionRecord) -> Tensor:
        """Return the output, without the head if it belongs to this attention."""
        output = super().add_attention(name, attention).clone()
        if name == self.name:
            output[:, self.head] = 0.0
        return output


class Facts:
    """The numbers of one look, from forward passes of its model."""

    def __init__(self, look: Look) -> None:
        self.look, self.document, self.input = look, look.document, look.run.input
        self.record = Record()
        self.logprobs = self.forward(self.record)  # (rows, V)
        self.groups = {group["name"]: group for group in self.document["attention"]}
        self.group = next(self.groups[name] for name in ORDER if name in self.groups)
        self.deltas = self.ablate()

    def forward(self, record: Record) -> Tensor:
        """Return the log-probabilities at the rows of the output."""
        inputs, sides = self.input, []
        if inputs.media is not None:
            sides.append(inputs.media)
        elif inputs.source:
            sides.append(torch.tensor([list(inputs.source)]))
        if inputs.target:
            sides.append(torch.tensor([list(inputs.target)]))
        with torch.no_grad():
            logits: Tensor = inputs.model.eval()(*sides, record=record).double()
        logits = logits if inputs.is_pooled else logits[0, list(inputs.rows)]
        logits[:, list(inputs.suppressed)] = -torch.inf
        return logits.log_softmax(dim=-1)

    def total(self, logprobs: Tensor) -> float:
        """Return the log-probability of the whole output."""
        return sum(float(row[label]) for row, label in zip(logprobs, self.input.labels, strict=True))

    def ablate(self) -> dict[tuple[int, int, int], float]:
        """Return the change of the output's log-probability without each head."""
        before, deltas = self.total(self.logprobs), {}
        for number, group in enumerate(self.document["attention"]):
            for layer in range(group["layers"]):
                for head in range(group["heads"]):
                    without = WithoutHead(attention_name(group["name"], layer), head)
                    deltas[number, layer, head] = self.total(self.forward(without)) - before
        return deltas

    def head(self) -> Numbers:
        """Return the head that matters most."""
        group, layer, head = min(self.deltas, key=self.deltas.__getitem__)
        if self.deltas[group, layer, head] >= 0:
            group, layer, head = max(self.deltas, key=self.deltas.__getitem__)
        before, delta = self.total(self.logprobs), self.deltas[group, layer, head]
        numbers = {"delta": delta, "before": math.exp(before), "after": math.exp(before + delta)}
        return {"group": group, "layer": layer, "head": head, **numbers}

    def weights(self) -> Tensor:
        """Return what each output read: the mean of the aligning heads, or the group's head that matters most."""
        heads = [tuple(place) for place in self.document["reads"]["heads"]]
        if not self.document["hypotheses"]:
            number = self.document["attention"].index(self.group)
            own = {place[1:]: delta for place, delta in self.deltas.items() if place[0] == number}
            best = min(own, key=own.__getitem__)
            heads = [best if own[best] < 0 else max(own, key=own.__getitem__)]
        maps = [self.record.weights(attention_name(self.group["name"], layer))[0, head] for layer, head in heads]
        mean = torch.stack(maps).double().mean(dim=0)  # (rows, columns)
        if self.input.is_pooled:
            pool = self.input.model.head.pool
            return {"first": mean[:1], "last": mean[-1:], "mean": mean.mean(dim=0, keepdim=True)}[pool]
        return mean[list(self.input.rows)]

    def units(self, side: str, *, words: bool, first: int = 0, count: int | None = None) -> list[Unit]:
        """Return the places of each word (or token) of a sequence, without special tokens."""
        tokens = self.document["sequences"][side]  # type: ignore[literal-required]
        units: list[Unit] = []
        for place in range(first, len(tokens) if count is None else count):
            token, previous = tokens[place], tokens[place - 1] if place > first else None
            if token["role"] == "special":
                continue
            joins = previous is not None and token["word"] is not None and token["word"] == previous["word"]
            if words and joins and units and not is_break(token["text"]) and not is_break(previous["text"]):
                units[-1].append(place)
            else:
                units.append([place])
        return units

    def is_word(self, side: str, unit: Unit) -> bool:
        """Return whether a word has a letter or a digit."""
        tokens = self.document["sequences"][side]  # type: ignore[literal-required]
        return any(character.isalnum() for place in unit for character in tokens[place]["text"])

    def written(self) -> list[tuple[str, Numbers]]:
        """Return the findings about a text that was generated."""
        first, labels, target = self.input.rows[0] + 1, list(self.input.labels), self.document["sequences"]["target"]
        words = self.units("target", words=True, first=first)
        outputs = words if len(words) > 2 else self.units("target", words=False, first=first)
        side = self.group["columns"]
        inputs = self.units(side, words=True, count=self.group["column_count"])
        weights, found = self.weights(), []
        links = []
        for unit in outputs:
            lead = next((place for place in unit if target[place]["text"].strip(BLANK)), unit[0])
            for members in inputs:
                share = float(weights[lead - first, members].sum())
                rank = share + (self.is_word("target", unit) and self.is_word(side, members))
                links.append((rank, {"place": unit[0], "column": members[0], "share": share}))
        if links and max(links, key=lambda item: item[0])[1]["share"] > 0:
            found.append(("link", max(links, key=lambda item: item[0])[1]))
        chosen = {first + i: float(self.logprobs[i, label]) for i, label in enumerate(labels)}
        likely = {unit[0]: math.exp(sum(chosen[place] for place in unit)) for unit in outputs}
        named = [unit[0] for unit in outputs if self.is_word("target", unit)] or list(likely)
        if len(outputs) > 1:
            place = max(named, key=likely.__getitem__)
            found.append(("surest", {"place": place, "probability": likely[place]}))
        places = [place for unit in outputs for place in unit]
        if places:
            place = min(places, key=chosen.__getitem__)
            best = self.logprobs[place - first].topk(2)
            index = int(best.indices[0] == labels[place - first])
            other, probability = int(best.indices[index]), math.exp(float(best.values[index]))
            numbers = {"place": place, "probability": math.exp(chosen[place])}
            found.append(("surprise", {**numbers, "other": other, "otherProbability": probability}))
        favorites = int((self.logprobs.argmax(dim=1) == torch.tensor(labels)).sum())
        found.append(("favorites", {"favorites": favorites, "total": len(labels)}))
        return found + self.beam()

    def beam(self) -> list[tuple[str, Numbers]]:
        """Return the last step after which another beginning was ahead, with the model's own probabilities."""
        generated = self.look.run.generated
        trace = None if generated is None else generated.trace
        if trace is None or int(str(trace.settings.get("beam_size", 1))) < 2:
            return []
        lineage = trace.lineage(trace.winners[0][0])
        for step in range(len(lineage) - 2, 0, -1):
            rivals = [
                item
                for item in trace.candidates
                if item.length == step and item.status != "finished" and item.total > lineage[step].total
            ]
            if rivals:
                leader = max(rivals, key=lambda item: item.total)
                paths = (trace.lineage(item.number)[1:] for item in (lineage[step], leader))
                winner, other = (self.probability([item.token for item in path]) for path in paths)
                numbers = {"probability": winner, "leaderProbability": other}
                return [("beam", {"step": step, "rank": len(rivals) + 1, **numbers})]
        return [("beam", {"step": 0})] if len(lineage) > 2 else []

    def probability(self, tokens: list[int]) -> float:
        """Return the probability of the first tokens of an output."""
        first = self.input.rows[0]
        target = [*self.input.target[: first + 1], *tokens]
        logprobs = self.input.distributions(target, range(first, first + len(tokens))).double()
        return math.exp(sum(float(row[token]) for row, token in zip(logprobs, tokens, strict=True)))

    def decided(self) -> list[tuple[str, Numbers]]:
        """Return the findings about labels, tags or filled gaps."""
        ranked = [row.exp().sort(descending=True).values for row in self.logprobs]
        if len(ranked) == 1:
            found = [
                ("decision", {"probability": float(ranked[0][0]), "second": float(ranked[0][1])}),
                *self.counting(),
            ]
            if self.input.is_pooled:
                entropy = -float((self.logprobs.exp() * self.logprobs).sum())
                found.append(("choices", {"choices": math.exp(entropy)}))
            return found
        surest = max(range(len(ranked)), key=lambda row: float(ranked[row][0]))
        least = min(range(len(ranked)), key=lambda row: float(ranked[row][0]))
        doubt = {"probability": float(ranked[least][0]), "second": float(ranked[least][1])}
        return [
            ("surest", {"prediction": surest, "probability": float(ranked[surest][0])}),
            ("doubt", {"prediction": least, **doubt}),
            *self.counting()[:1],
        ]

    def counting(self) -> list[tuple[str, Numbers]]:
        """Return what counted for an output and against it, or what it read most."""
        attribution = self.document["attribution"]
        inputs = self.units("source", words=True, count=len(self.document["sequences"]["source"]))
        if attribution is None:
            values = self.weights()
        else:
            blob = self.document["blobs"][attribution["methods"]["integrated_gradients"]]
            values = torch.from_numpy(decode_blob(blob).copy()).double()
        table = torch.stack([values[:, members].sum(dim=1) for members in inputs], dim=1)  # (outputs, inputs)
        shares = table if attribution is None else table / table.abs().sum(dim=1, keepdim=True)

        def tell(index: int) -> Numbers:
            row, column = divmod(index, len(inputs))
            return {"prediction": row, "column": inputs[column][0], "share": abs(float(shares[row, column]))}

        most, least = int(shares.argmax()), int(shares.argmin())
        if attribution is not None:
            found = [("for", tell(most))] if float(shares.max()) > 0 else []
            return found + ([("against", tell(least))] if float(shares.min()) < 0 else [])
        row = shares[most // len(inputs)].sort(descending=True).values
        needed = int((row.cumsum(dim=0) < row.sum() / 2).sum()) + 1
        return [("for", tell(most)), ("half", {"needed": needed, "count": len(inputs)})]


def is_break(text: str) -> bool:
    """Return whether a token is a line break."""
    return ("\n" in text or "\r" in text) and not text.strip(BLANK)


def look_at_text(seed: int, kind: str) -> Look:
    """Look into a random model that reads text."""
    text = " ".join(TEXTS[seed % 4].split()[: 3 + seed % 4])
    if kind == "translator":
        settings = make_translator_settings(**{"encoder.layers": 2, "decoder.layers": 2})
        translator = Translator(make_encoder_decoder(settings, seed), make_tokenizers(), settings)
        with WITHOUT_ATTRIBUTION:
            return look_into(translator, text, search=Beam(1 + seed % 4), max_new_tokens=8)
    if kind == "generator":
        generator_settings = make_generator_settings(**{"decoder.layers": 2})
        generator = TextGenerator(make_decoder_only(generator_settings, seed), make_tokenizers(), generator_settings)
        with WITHOUT_ATTRIBUTION:
            return look_into(generator, text, max_new_tokens=8, seed=seed)
    heads: dict[str, tuple[dict[str, object], str]] = {
        "classifier": ({"kind": "classes", "labels": ["yes", "no", "maybe"]}, "text_classification"),
        "tagger": ({"kind": "tags", "labels": ["N", "V", "D"]}, "tagging"),
        "filler": ({}, "masked_lm"),
    }
    model, encoder_settings = make_encoder(*heads[kind])
    task = FillMask if kind == "filler" else Classifier
    pipeline = task(perturb(model, seed), make_tokenizers(), encoder_settings)
    return look_into(pipeline, f"{text} ___ men{' ___' * (seed % 2)}." if kind == "filler" else text)


def look_at_file(seed: int, write: Callable[..., Path], folder: Path) -> Look:
    """Look into a random model that reads an image or an audio clip."""
    is_image = write in (write_image_model, write_captioning_model)
    path = folder / f"{seed}.{'png' if is_image else 'wav'}"
    path.write_bytes(make_png(seed) if is_image else make_wav(seed))
    pipeline = load(write(folder / f"{write.__name__}{seed}"))
    perturb(pipeline.model, seed)
    return look_into(pipeline, str(path), max_new_tokens=6)


def main() -> None:
    """Write the cases."""
    media: list[Callable[..., Path]] = [write_image_model, write_captioning_model, write_transcription_model]
    kinds = ["translator", "generator", "classifier", "tagger", "filler", *media, write_audio_model]
    build.MAX_SEARCHES = 1  # a finding needs one new output at most
    cases: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(CASES):
            kind = kinds[seed % len(kinds)]
            look = look_at_text(seed, kind) if isinstance(kind, str) else look_at_file(seed, kind, Path(folder))
            facts = Facts(look)
            found = facts.decided() if look.run.generated is None else facts.written()
            name = kind if isinstance(kind, str) else kind.__name__
            cases.append(
                {"name": f"{name} {seed}", "document": look.document, "found": [*found, ("head", facts.head())]}
            )
    Path(sys.argv[1], "cases.json").write_text(to_json({"cases": cases}), encoding="utf-8")


if __name__ == "__main__":
    main()
