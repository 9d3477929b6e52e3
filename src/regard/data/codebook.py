"""Images as tokens: each pixel becomes the nearest color of a codebook, row after row (ImageGPT, Chen et al. 2020).

    <label:shoe> #000000 #000000 #3a3a3a ...

A codebook is an ordinary tokenizer whose words are colors, so `tokenizer.json` holds it, and an image is a document
like any other. The colors are the centers of k-means over the pixels of the training images. The first token is the
label, an extra token; images without labels begin with <image>.
"""

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.config.tokenizers import CodebookConfig, WordLevelConfig
from regard.data.k_means import cluster_levels, cluster_vectors, find_nearest
from regard.text.learn import learn
from regard.text.specials import special_token_texts
from regard.text.tokenizer import Tokenizer

NO_LABEL = "<image>"
LEVELS = 256
_LABEL = re.compile(r"<label:(.*)>", re.DOTALL)
_COLOR = re.compile(r"#[0-9a-f]{6}")
_BIN_BITS = 5  # bits per channel of the bins in which colors are counted


class ColorCounter:
    """Counts the colors of images: exactly for grays, in 32,768 bins with their mean colors otherwise."""

    def __init__(self) -> None:
        self._grays = np.zeros(LEVELS, np.int64)
        bins = 1 << 3 * _BIN_BITS
        self._counts, self._sums = np.zeros(bins, np.int64), np.zeros((3, bins), np.int64)

    def add(self, pixels: NDArray[np.uint8]) -> None:
        """Count the pixels (channels, ...) of an image."""
        planes = pixels.reshape(len(pixels), -1).astype(np.int64)
        if len(planes) == 1:
            self._grays += np.bincount(planes[0], minlength=LEVELS)
            return
        numbers = np.zeros(planes.shape[1], np.int64)
        for plane in planes:
            numbers = numbers << _BIN_BITS | plane >> 8 - _BIN_BITS
        self._counts += np.bincount(numbers, minlength=self._counts.size)
        for plane, sums in zip(planes, self._sums, strict=True):
            sums += np.bincount(numbers, plane, minlength=sums.size).astype(np.int64)

    def find_colors(self, k: int) -> NDArray[np.int64]:
        """Return the k centers (k, 3) of the colors; fewer if the images have fewer colors.

        Raises:
            RegardError: If no image was counted.
        """
        used = np.flatnonzero(self._counts)
        if used.size:
            means = np.rint(self._sums[:, used] / self._counts[used]).astype(np.int64)
            return cluster_vectors(means.T, self._counts[used], k)
        if not self._grays.any():
            raise RegardError("There are no images to learn colors from.", hint="Give images to train on.")
        return np.repeat(cluster_levels(self._grays, k)[:, None], 3, axis=1)


def learn_codebook(colors: NDArray[np.int64], labels: Iterable[str], settings: CodebookConfig) -> Tokenizer:
    """Make the tokenizer of images.

    Args:
        colors: (k, 3), red, green and blue from 0 to 255.
        labels: The labels of the images; none if they have no labels.
        settings: Special tokens.
    """
    first_tokens = [f"<label:{label}>" for label in sorted(labels)] or [NO_LABEL]
    specials = settings.specials.model_copy(update={"extra": (*settings.specials.extra, *first_tokens)})
    names = ["#" + "".join(f"{value:02x}" for value in color) for color in colors.tolist()]
    size = len(names) + len(special_token_texts(specials))
    return learn([" ".join(names)], WordLevelConfig(vocabulary=size, specials=specials))


class Codebook:
    """The colors and labels of a tokenizer of images.

    Raises:
        RegardError: If the tokenizer has no colors or no first tokens of images.
    """

    def __init__(self, tokenizer: Tokenizer, location: str | None = None) -> None:
        names = [(token, name) for token, name in enumerate(tokenizer.vocabulary) if _COLOR.fullmatch(name)]
        self.labels = {
            match[1]: token for name, token in tokenizer.specials.extra.items() if (match := _LABEL.fullmatch(name))
        }
        self._no_label = tokenizer.specials.extra.get(NO_LABEL)
        if not names or (not self.labels and self._no_label is None):
            message = "This is not an image tokenizer: it has no colors."
            raise RegardError(message, location=location, hint="Use the tokenizer that the model was trained with.")
        self.tokens = np.array([token for token, _ in names], np.int64)  # (k)
        self.colors = np.array([list(bytes.fromhex(name[1:])) for _, name in names], np.int64)  # (k, 3)
        self._number_of_token = np.full(tokenizer.size, -1, np.int64)
        self._number_of_token[self.tokens] = np.arange(self.tokens.size)
        self._token_of_gray = self.tokens[find_nearest(np.repeat(np.arange(LEVELS)[:, None], 3, axis=1), self.colors)]

    def find_label(self, label: str | None) -> int:
        """Return the first token of an image with this label; None for images without labels.

        Raises:
            RegardError: If the codebook has no such label, or has labels and none is given.
        """
        names = ", ".join(sorted(self.labels)[:20])
        if label is None and self._no_label is not None:
            return self._no_label
        if label is None:
            raise RegardError("An image has no label.", hint=f"Give it one of the labels {names}.")
        if label not in self.labels:
            hint = f"The labels are {names}." if names else "Remove it: the training images had no labels."
            raise RegardError(f"No training image had the label '{label}'.", hint=hint)
        return self.labels[label]

    def encode(self, pixels: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the tokens (..., height * width) of the pixels (..., channels, height, width) of images."""
        *rest, channels, height, width = pixels.shape
        if channels == 1:
            return self._token_of_gray[pixels].reshape(*rest, height * width)
        points = np.moveaxis(pixels, -3, -1).reshape(-1, channels)
        return self.tokens[find_nearest(points, self.colors)].reshape(*rest, height * width)

    def decode(self, tokens: NDArray[np.integer], height: int, width: int) -> NDArray[np.uint8]:
        """Return the colors (..., height, width, 3) of the tokens (..., height * width) of images."""
        numbers = self._number_of_token[tokens]
        if numbers.size and numbers.min() < 0:
            raise RegardError("A token is not a color.", hint="Decode the tokens of pixels only.")
        return self.colors[numbers].astype(np.uint8).reshape(*tokens.shape[:-1], height, width, 3)
