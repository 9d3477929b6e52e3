"""Images and audio clips as the models of a server read them: decoded within limits, and counted in vectors."""

from typing import Any

import numpy as np

from regard.base.errors import RegardError
from regard.base.limits import SAMPLES
from regard.config.sources import ImagesConfig
from regard.data.example import AudioClip, Image
from regard.data.mel import count_frames
from regard.data.readers.audio import decode_audio
from regard.data.readers.images import decode_image
from regard.pipeline.audio_classifier import AudioClassifier
from regard.pipeline.audio_input import check_rate
from regard.pipeline.image_captioner import ImageCaptioner
from regard.pipeline.image_classifier import ImageClassifier
from regard.pipeline.load import AnyPipeline
from regard.pipeline.transcriber import Transcriber
from regard.serve.settings import LimitsConfig

ImagePipeline = ImageCaptioner | ImageClassifier
MediaPipeline = ImagePipeline | AudioClassifier | Transcriber
Media = Image | AudioClip


def decode_media(pipeline: MediaPipeline, content: bytes, location: str, limits: LimitsConfig) -> Media:
    """Decode the image or audio clip that a model reads.

    What a header claims is compared with the limits first: neither an image of 100,000 x 100,000 pixels nor a .flac
    file of hours of silence is decoded.

    Raises:
        RegardError: The content is no such file, damaged, too large, or has another sample rate than the model reads.
    """
    if isinstance(pipeline, ImagePipeline):
        patches = pipeline.patches
        target = ImagesConfig(path=location, size=patches.size, channels=1 if patches.channels == 1 else 3)
        media: Media = decode_image(content, target, location, max_pixels=limits.pixels)
    else:
        media = decode_audio(content, location, max_samples=_count_samples(pipeline, limits.tokens))
        check_rate(media, pipeline.mel, location)
    vectors = count_vectors(pipeline, media)
    if vectors > limits.tokens:
        if isinstance(pipeline, ImagePipeline):
            message = f"An image may have {limits.tokens:,} patches, this one has {vectors:,}."
            raise RegardError(message, hint="Scale it down.")
        message = f"The model pads every audio clip to {vectors:,} vectors; the server allows {limits.tokens:,}."
        raise RegardError(message, hint="Raise the limit `tokens` of the server.")
    return media


def count_vectors(pipeline: MediaPipeline, media: Media) -> int:
    """Return how many vectors an image or an audio clip becomes."""
    if isinstance(pipeline, ImagePipeline):
        assert isinstance(media, Image)  # noqa: S101 - `decode_media` made it
        return pipeline.patches.count_vectors(media.height, media.width)
    assert isinstance(media, AudioClip)  # noqa: S101 - `decode_media` made it
    return pipeline.mel.count_vectors(int(count_frames(np.array(len(media)), pipeline.mel)))


def describe_input(pipeline: AnyPipeline) -> dict[str, Any]:
    """Return what a model reads, for `/v1/models`: text, or the images or audio clips that it was trained with."""
    if isinstance(pipeline, ImagePipeline):
        return {"kind": "image", "size": pipeline.patches.size, "channels": pipeline.patches.channels}
    if isinstance(pipeline, AudioClassifier | Transcriber):
        return {"kind": "audio", "rate": pipeline.mel.rate}
    return {"kind": "text"}


def _count_samples(pipeline: AudioClassifier | Transcriber, max_vectors: int) -> int:
    """Return how many samples an audio clip may have, so that it becomes at most `max_vectors`."""
    positions = pipeline.settings.encoder.max_positions
    vectors = max_vectors if positions is None else min(max_vectors, positions)
    return min(SAMPLES, vectors * pipeline.mel.frames * pipeline.mel.hop_samples)
