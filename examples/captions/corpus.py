"""The corpus: images as words, and captions, in both directions.

    draw: a photo of a coat          -> #000000 #1f1f1f ... (196 grays, row after row)
    caption: #000000 #1f1f1f ...     -> a photo of a coat

Grays are the codebook of ImageGPT (`regard.data.codebook`), learned from the training images. Captions are a template
over ten labels. The last images of the training file are the validation part.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.config.tokenizers import CodebookConfig
from regard.data.codebook import Codebook, ColorCounter, learn_codebook
from regard.data.example import Defects
from regard.data.readers import read
from regard.data.readers.detect import make_image_source

NAMES = ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle-boot"]
DRAW, CAPTION = "draw:", "caption:"
Pixels = NDArray[np.uint8]  # (N, side, side)


def load_images(path: Path, side: int) -> tuple[Pixels, list[str]]:
    """Return the pixels of gray images, scaled to a side, and their captions."""
    source = make_image_source(str(path)).model_copy(update={"size": (side, side), "channels": 1})
    examples = [example for example in read(source, Defects()) if example.image is not None]
    pixels = b"".join(example.image.pixels for example in examples if example.image)
    captions = [make_caption(int(example.label or "")) for example in examples]
    return np.frombuffer(pixels, np.uint8).reshape(-1, side, side), captions


def make_caption(label: int) -> str:
    """Return the caption of a label.

    >>> make_caption(9)
    'a photo of an ankle-boot'
    """
    name = NAMES[label]
    return f"a photo of {'an' if name[0] in 'aeiou' else 'a'} {name}"


def find_grays(images: Pixels, count: int) -> list[int]:
    """Return the centers of k-means over the grays of images."""
    counter = ColorCounter()
    counter.add(images[None])
    return counter.find_colors(count)[:, 0].tolist()


class GrayWords:
    """Images as words: each pixel is the nearest gray of the codebook, named as the codebook names it."""

    def __init__(self, grays: list[int]) -> None:
        colors = np.repeat(np.array(grays)[:, None], 3, axis=1)
        self.tokenizer = learn_codebook(colors, (), CodebookConfig())
        self.codebook = Codebook(self.tokenizer)
        self._token_of_word = {self.tokenizer.vocabulary[token]: int(token) for token in self.codebook.tokens}

    def encode(self, images: Pixels) -> list[str]:
        """Return the words of images, row after row."""
        names = np.array(self.tokenizer.vocabulary)
        return [" ".join(names[tokens]) for tokens in self.codebook.encode(images[:, None])]

    def decode(self, text: str, side: int) -> NDArray[np.uint8] | None:
        """Return the pixels (side, side) of a text; None if it has other words, or too few or many."""
        tokens = [self._token_of_word.get(word) for word in text.split()]
        if None in tokens or len(tokens) != side * side:
            return None
        return self.codebook.decode(np.array(tokens, np.int64), side, side)[..., 0]


def prepare(train: Path, out: Path, side: int, grays: int, validation: int) -> None:
    """Learn the codebook, and write the rows of both directions of both parts."""
    out.mkdir(parents=True, exist_ok=True)
    images, captions = load_images(train, side)
    count = len(images) - validation
    words = GrayWords(find_grays(images[:count], grays))
    texts = words.encode(images)
    for part, rows in (("train", slice(count)), ("validation", slice(count, None))):
        write(out / f"{part}.draw", [f"{DRAW} {caption}" for caption in captions[rows]], texts[rows])
        write(out / f"{part}.caption", [f"{CAPTION} {text}" for text in texts[rows]], captions[rows])
    (out / "grays.txt").write_text(" ".join(map(str, words.codebook.colors[:, 0])) + "\n", encoding="utf-8")
    print(f"{count:,} training images, {validation:,} validation images, {grays} grays, two rows for each image")


def write(path: Path, prompts: list[str], responses: list[str]) -> None:
    """Write the lines of prompts and responses."""
    for name, lines in (("prompts", prompts), ("responses", responses)):
        path.with_name(f"{path.name}.{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
