"""Interface of all model inputs, so that servers, pages and commands work with every kind."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.data.example import AudioClip, Image

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from regard.tasks.replay import DrawnInput

MEDIA_TYPES = (str, PathLike, np.ndarray, Image, AudioClip)  # one input, not a list of inputs
Item = TypeVar("Item")  # an input as given by the user: a text, file or array
Media = TypeVar("Media")  # a decoded file


class InputAdapter(ABC, Generic[Item]):
    """One kind of model input."""

    plural: ClassVar[str]
    """Plural name of these inputs in the server."""
    reads_files: ClassVar[bool] = True
    """Whether clients send files; otherwise inputs are in the JSON body."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """Description of the input, for the repr."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Describe the input for `/v1/models`: its kind and the format of the training inputs."""

    @abstractmethod
    def decode(self, content: bytes, location: str, *, max_pixels: int, max_vectors: int) -> Item:
        """Decode an uploaded file.

        The size in the file header is checked against the limits first, so an image of 100,000 x 100,000 pixels or a
        .flac file with hours of silence is never decoded.

        Args:
            content: Bytes of the file.
            location: File name in errors.
            max_pixels: Maximum number of pixels.
            max_vectors: Maximum number of input vectors.

        Raises:
            RegardError: The content is damaged, too large, or not in a supported format.
        """

    @abstractmethod
    def count_vectors(self, media: Any) -> int:
        """Return the number of vectors of a decoded or loaded input."""

    @abstractmethod
    def samples(self) -> list[Item]:
        """Return the smallest inputs, to warm up a model."""


class InputBatch(NamedTuple):
    """Loaded inputs that fit into one batch."""

    indices: list[int]
    """Their indices in the list of all inputs."""
    loaded: list[NDArray[Any]]


class MediaInput(InputAdapter[Item], Generic[Item, Media]):
    """Inputs without a tokenizer: images and audio clips.

    Args:
        config: The model's input settings.
        max_positions: Number of learned positions; None if unlimited.
    """

    config_class: ClassVar[type]
    """The settings of this kind of input."""

    def __init__(self, config: Any, max_positions: int | None = None) -> None:
        self.config = config
        self.max_positions = max_positions

    @abstractmethod
    def load(self, item: Item | str) -> NDArray[Any]:
        """Load a file, array or example as an array in the model's format.

        Raises:
            RegardError: The input is unreadable, not in the format of the training inputs, or too long.
        """

    @abstractmethod
    def batches(self, items: Sequence[Item], rows_per_item: int = 1) -> Iterator[InputBatch]:
        """Load inputs and group them into batches with `rows_per_item` copies of each input."""

    @abstractmethod
    def stack(self, loaded: Sequence[NDArray[Any]], device: "torch.device") -> "tuple[Tensor, Tensor | None]":
        """Return a batch of loaded inputs and its padding mask; None if there is no padding."""

    @abstractmethod
    def measure(self, media: Media | NDArray[Any]) -> int:
        """Return the length of a decoded or loaded input, which limits the generated text."""

    @abstractmethod
    def name_vectors(self, loaded: NDArray[Any]) -> list[str]:
        """Return the position of each vector in the input."""

    @abstractmethod
    def draw(self, loaded: NDArray[Any], item: Item | str) -> "DrawnInput":
        """Convert an input, which was loaded from `item`, to a picture."""
