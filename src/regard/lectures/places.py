"""Encodings of positions, and what the order of words changes."""

import math

import torch
from torch import Tensor

from regard.lectures.blocks import Number
from regard.lectures.worked_numbers import attend
from regard.nn.positions import Sinusoidal


def encode_places(kind: str, width: int, base: float, length: int) -> Tensor:
    """Return the vectors of positions (length, dimensions), as controls/positions.ts does."""
    places = torch.arange(length)
    match kind:
        case "index":
            return places[:, None].double()
        case "normalized":
            return places[:, None].double() / (length - 1)
        case "bits":
            return (places[:, None] // 2 ** torch.arange(width) % 2).double()
        case _:
            return Sinusoidal(width, base, interleaved=True).encode(places[None])[0].double()


def judge_places(kind: str, width: int, base: float, length: int) -> dict[str, Number]:
    """Return the numbers of the four requirements, and whether each is met."""
    rows, twice = (encode_places(kind, width, base, n) for n in (length, 2 * length))
    unique, longer = (float(torch.nn.functional.pdist(part).min()) for part in (rows, twice))
    steps = torch.cat([part.diff(dim=0).norm(dim=1) for part in (rows, twice)])
    spread, largest = float(steps.max() - steps.min()), float(rows.abs().max())
    lights = {"unique": unique > 0.02, "steps": spread < 1e-4, "longer": longer > 0.02, "largest": largest <= 1}
    values: dict[str, Number] = {"unique": unique, "steps": spread, "longer": longer, "largest": largest}
    return values | {f"{name}_light": int(light) for name, light in lights.items()}


def embed_word(word: str) -> list[float]:
    """Return a fixed vector for any word, as controls/order.ts does."""
    code = sum((i + 1) * ord(letter) for i, letter in enumerate(word))
    return [math.cos((i + 1) * code) for i in range(8)]


def compare_words(a: str, b: str, has_positions: bool) -> list[float]:
    """Return the largest difference of each word's output in two sentences of the same words."""
    outputs = []  # of the words in alphabetical order; the sort is stable, so equal words keep theirs
    for sentence in (a, b):
        words = sentence.split()
        x = torch.tensor([embed_word(word) for word in words], dtype=torch.float64)  # (T, 8)
        if has_positions:
            x = x + Sinusoidal(8, 10000.0, interleaved=True).encode(torch.arange(len(words))[None])[0]
        y, _ = attend(x, x, x, 1 / math.sqrt(8))
        outputs.append(y[sorted(range(len(words)), key=words.__getitem__)])
    differences: list[float] = (outputs[0] - outputs[1]).abs().amax(dim=1).tolist()
    return differences
