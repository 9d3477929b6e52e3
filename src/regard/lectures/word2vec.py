"""word2vec in small: two matrices, CBOW and skip-gram, and which matrix holds the vectors."""

from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from torch import Tensor

from regard.config.codec import preset
from regard.models.build import build
from regard.models.encoder_only import EncoderOnly
from regard.models.heads import BagHead
from regard.models.inputs import TokenInput

WINDOW, WIDTH, STEPS = 2, 8, 150
ANIMALS, COLORS = ("dog", "cat", "cow", "pig"), ("red", "blue", "green", "black")
VERBS = ("sees", "likes")


def make_texts(count: int) -> list[list[str]]:
    """Return sentences such as "the red dog sees the cow": animals, colors and verbs each in their places."""
    generator = np.random.default_rng(1)
    return [
        [
            "the",
            *(str(generator.choice(kind)) for kind in (COLORS, ANIMALS, VERBS)),
            "the",
            str(generator.choice(ANIMALS)),
        ]
        for _ in range(count)
    ]


def train(ids: Tensor, vocabulary: int, *, is_cbow: bool) -> EncoderOnly:
    """Train the preset `word2vec` on sentences (N, T): CBOW, or skip-gram."""
    changes = {
        "d_model": WIDTH,
        "source.vocabulary": vocabulary,
        "head.window": WINDOW,
        "task": "cbow" if is_cbow else "skip_gram",
    }
    model: EncoderOnly = build(preset("word2vec", changes), seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    length = ids.size(1)
    offsets = (0,) if is_cbow else tuple(offset for offset in range(-WINDOW, WINDOW + 1) if offset)
    for _ in range(STEPS):
        logits = model(ids)  # (N, T, K): from the neighbors of each position, or from its own word
        parts = [  # the label of a position is its word, or each of its neighbors
            (logits[:, max(0, -offset) : length - max(0, offset)], ids[:, max(0, offset) : length - max(0, -offset)])
            for offset in offsets
        ]
        loss = torch.stack(
            [torch.nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten()) for scores, labels in parts]
        ).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def find_share(vectors: Tensor, words: list[str]) -> float:
    """Return how often the nearest vector of an animal or color is one of its own kind."""
    directions = torch.nn.functional.normalize(vectors, dim=-1)
    nearest = (directions @ directions.T).fill_diagonal_(-1).argmax(dim=-1).tolist()
    hits = [words[nearest[words.index(word)]] in kind for kind in (ANIMALS, COLORS) for word in kind]
    return sum(hits) / len(hits)


def show_word2vec() -> Iterator[str]:
    """Windows of M = 5 words, CBOW and skip-gram, and the two matrices that may be E."""
    texts = make_texts(100)
    words = sorted({word for text in texts for word in text})
    ids = torch.tensor([[words.index(word) for word in text] for text in texts])
    yield f"A window of M = {2 * WINDOW + 1} adjacent words, {WINDOW} on each side (head.window = {WINDOW}):"
    sentence = texts[0]
    for place in (0, 2):
        context = sentence[max(0, place - WINDOW) : place] + sentence[place + 1 : place + 1 + WINDOW]
        yield f"  CBOW: {', '.join(context)} -> {sentence[place]}; skip-gram: {sentence[place]} -> each of them"
    yield f"\nTwo layers, K = {len(words)} words, D = {WIDTH}; {STEPS} steps on {len(texts)} sentences. How often the"
    yield "nearest neighbor of an animal is an animal, and of a color a color:"
    yield "task       first layer (K x D)   transpose of the second layer"
    for name, is_cbow in (("CBOW", True), ("skip-gram", False)):
        model = train(ids, len(words), is_cbow=is_cbow)
        source, head = cast("TokenInput", model.source), cast("BagHead", model.head)  # of the preset
        first, second = source.embedding.weight.detach(), head.lm_head.projection.weight.detach()
        sizes = [
            f"{find_share(matrix, words):.0%} of {matrix.size(0)} x {matrix.size(1)}" for matrix in (first, second)
        ]
        yield f"{name:10} {sizes[0]:21} {sizes[1]}"
    yield "\nThe lecture takes E from the second layer for CBOW and from the first for skip-gram. `regard embed` reads"
    yield "the first layer of both, as word2vec's own program does."
