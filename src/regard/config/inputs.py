"""Input settings: tokens, images, audio clips. `regard.config.model` exports them too."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from regard.base import limits
from regard.base.errors import Fault
from regard.config.parts import (
    PixelSize,
    Positive,
    SettingsModel,
    Size,
)

ChannelValues = Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(strict=False)]
BinValues = Annotated[tuple[Annotated[float, Field(allow_inf_nan=False)], ...], Field(strict=False)]
MEL_WINDOW, MEL_HOP = 0.025, 0.01  # window and hop of a frame in seconds (Whisper)


class TokensConfig(SettingsModel):
    """Token embeddings: one vector per token of the vocabulary."""

    kind: Literal["tokens"] = "tokens"
    vocabulary: Size
    scale: bool = False
    """Multiply embeddings by sqrt(d_model), as the 2017 paper does."""
    types: Annotated[int, Field(ge=0)] = 0
    """Token types; 0 means none. With 2 or more, the second text of a pair has type 1 (BERT), everything else type
    0."""
    vectors: str | None = None
    """Model folder (for example a word2vec model) whose embeddings initialize these when training starts; tokens are
    matched by their text. The trained model does not keep the setting."""


class SharedConfig(SettingsModel):
    """The target shares the embeddings of the source."""

    kind: Literal["shared"] = "shared"


class PatchesConfig(SettingsModel):
    """An image, split into square patches; each patch becomes one vector (ViT)."""

    kind: Literal["patches"] = "patches"
    patch: Size
    """Side of a patch in pixels."""
    channels: Size = 1
    """1 for gray images, 3 for colored ones."""
    stem: Literal["linear", "convolution"] = "linear"
    """How a patch becomes a vector: `linear` projects its pixels (ViT). `convolution` halves the image by convolutions
    of 3 x 3 pixels until each patch is one pixel (Xiao et al. 2021), which needs fewer training images. The side of a
    patch must then be a power of 2."""
    class_token: bool = False
    """Prepend a learned class token for a classifier."""
    size: PixelSize | None = None
    """Height and width of the images in pixels; training fills it in."""
    mean: ChannelValues = ()
    """Mean of each channel, for pixels from 0 to 1; training computes it from the training data."""
    std: ChannelValues = ()
    """Standard deviation of each channel; pixels minus the mean are divided by it."""

    def count_vectors(self, height: int, width: int) -> int:
        """Return the number of vectors per image, class token included."""
        return (height // self.patch) * (width // self.patch) + self.class_token

    def find_faults(self, path: str) -> Iterator[Fault]:
        """Yield inconsistencies between fields."""
        if self.stem == "convolution" and (self.patch < 2 or self.patch & (self.patch - 1)):
            yield Fault(f"{path}.patch", f"is {self.patch}, but convolutions halve the image.", "Use 2, 4, 8 or 16.")
        for name in ("mean", "std"):
            if (count := len(getattr(self, name))) not in (0, self.channels):
                yield Fault(f"{path}.{name}", f"has {count} values for {self.channels} channels.", "Give one for each.")
        if self.size is not None and self.size[0] * self.size[1] > limits.PIXELS:
            yield Fault(f"{path}.size", f"is more than {limits.PIXELS:,} pixels.", "Use smaller images.")
        if self.size is not None and any(side % self.patch for side in self.size):
            height, width = self.size
            message = f"is {height} x {width}, which does not divide into patches of {self.patch} x {self.patch}."
            yield Fault(f"{path}.size", message, "Change the size of the images, or of the patches.")


class MelConfig(SettingsModel):
    """A clip as its log-mel spectrogram, a frame of 25 ms every 10 ms; each group of frames becomes one vector."""

    kind: Literal["mel"] = "mel"
    bins: Annotated[int, Field(gt=0, le=limits.MEL_BINS)]
    """Mel bins per frame."""
    frames: Size = 2
    """Frames per vector."""
    stem: Literal["linear", "convolution"] = "linear"
    """How frames become a vector: `linear` projects the frames of a group. `convolution` has two convolutions of 3
    frames with GELU, the second of stride `frames` (Whisper, Radford et al. 2022)."""
    pad_to: Annotated[int, Field(gt=0, le=limits.SAMPLES)] | None = None
    """Pad shorter audio clips with silence to this many frames; the model also reads the padding (Whisper: 3,000)."""
    rate: Annotated[int, Field(gt=0, le=limits.SAMPLE_RATE)] | None = None
    """Samples per second of the audio clips; training fills it in."""
    mean: BinValues = ()
    """Mean of each bin, in Whisper's logarithmic scale; training computes it from the training data."""
    std: Annotated[tuple[Positive, ...], Field(strict=False)] = ()
    """Standard deviation of each bin; values minus the mean are divided by it."""

    @property
    def vector_seconds(self) -> float:
        """Seconds between vectors."""
        return self.frames * MEL_HOP

    @property
    def window_samples(self) -> int:
        """Window length of a frame in samples."""
        return round(MEL_WINDOW * (self.rate or 0))

    @property
    def hop_samples(self) -> int:
        """Hop length between frames in samples."""
        return round(MEL_HOP * (self.rate or 0))

    def count_vectors(self, frames: int) -> int:
        """Return the number of vectors for this number of frames."""
        return -(-frames // self.frames)

    def find_faults(self, path: str) -> Iterator[Fault]:
        """Yield inconsistencies between fields."""
        for name in ("mean", "std"):
            if (count := len(getattr(self, name))) not in (0, self.bins):
                yield Fault(f"{path}.{name}", f"has {count} values for {self.bins} bins.", "Give one for each.")
        if self.rate is not None and (self.window_samples < 2 or self.hop_samples < 1):
            message = f"gives a window of {self.window_samples} and a hop of {self.hop_samples} samples."
            yield Fault(f"{path}.rate", message, "Use more samples per second.")
        if self.stem == "convolution" and self.frames > 3:
            message = f"is {self.frames}, but a convolution reads 3 frames, so it would skip some."
            yield Fault(f"{path}.frames", message, "Use 1, 2 or 3.")
        if self.pad_to is not None and self.pad_to * self.hop_samples > limits.SAMPLES:
            message = f"is {self.pad_to:,} frames of {self.hop_samples} samples, more than {limits.SAMPLES:,} samples."
            yield Fault(f"{path}.pad_to", message, "Use shorter audio clips.")


class RasterConfig(SettingsModel):
    """The tokens are the pixels of an image, row after row (ImageGPT, Chen et al. 2020).

    Each pixel is replaced by the nearest color of a small codebook, and each color is a token. The first token of an
    image is its label, so the model can generate images of a class.
    """

    size: PixelSize
    """Height and width of the images in pixels."""
    channels: Literal[1, 3] = 1
    """1 for gray images, 3 for colored ones."""

    @property
    def pixels(self) -> int:
        """The number of pixels of an image."""
        return self.size[0] * self.size[1]

    @property
    def row_length(self) -> int:
        """The length of a training row that holds one image: bos, the label and the pixels."""
        return self.pixels + 2


InputConfig = Annotated[TokensConfig | PatchesConfig | MelConfig, Field(discriminator="kind")]
