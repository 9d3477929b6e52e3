"""What a model did with an image or an audio clip: the reading of one file, and the picture that a page draws."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.config.inputs import MelConfig, PatchesConfig
from regard.data.batches.images import normalize
from regard.look.document import Group, Picture, Token
from regard.look.generation import Generation
from regard.look.model_input import load_audio, read_image
from regard.look.model_run import ModelRun, RunOptions, Sequences, generate_text, rank_labels
from regard.look.replay import ReplayInput
from regard.pipeline.audio_classifier import AudioClassifier
from regard.pipeline.audio_input import Spectrogram, load_spectrogram, pad_spectrograms
from regard.pipeline.classifier import Label
from regard.pipeline.image_captioner import ImageCaptioner
from regard.pipeline.image_classifier import ImageClassifier
from regard.pipeline.images import load_patches
from regard.pipeline.search import Beam
from regard.pipeline.transcriber import Transcriber

MediaPipeline = ImageClassifier | ImageCaptioner | AudioClassifier | Transcriber
PIXELS = "picture"  # the blob of the pixels


def read_media(pipeline: MediaPipeline, path: str, options: RunOptions) -> ModelRun:
    """Run a pipeline on the file of one image or audio clip."""
    if isinstance(pipeline, ImageClassifier | ImageCaptioner):
        return _read_image(pipeline, path, options)
    spectrogram = load_spectrogram(path, pipeline.mel)
    vectors = pipeline.mel.count_vectors(len(spectrogram))
    names = [f"{number * pipeline.mel.vector_seconds:.2f} s" for number in range(vectors)]
    if isinstance(pipeline, AudioClassifier):
        source, _ = pad_spectrograms([spectrogram], pipeline.device)
        label = pipeline.classify_spectrograms([spectrogram])[0]
        reading = _read_label(pipeline, source, names, label)
    else:
        reading = _transcribe(pipeline, spectrogram, names, options)
    return replace(
        reading, picture=_describe_spectrogram(pipeline.mel, names), pixels=draw_spectrogram(spectrogram, pipeline.mel)
    )


def _read_image(pipeline: ImageClassifier | ImageCaptioner, path: str, options: RunOptions) -> ModelRun:
    patches = pipeline.patches
    pixels = load_patches(path, patches)
    rows, columns = (side // patches.patch for side in pixels.shape[1:])
    names = [f"patch {row},{column}" for row in range(rows) for column in range(columns)]
    if isinstance(pipeline, ImageCaptioner):
        reading = _caption(pipeline, pixels, names, options)
    else:
        source = torch.from_numpy(normalize(pixels[None], patches)).to(pipeline.device)
        (label,) = pipeline.classify_pixels(pixels[None])
        reading = _read_label(pipeline, source, names, label, class_token=patches.class_token)
    picture = _describe_image(patches, rows, columns)
    return replace(reading, picture=picture, pixels=pixels.transpose(1, 2, 0))


def _describe_image(patches: PatchesConfig, rows: int, columns: int) -> Picture:
    return Picture(
        kind="image",
        pixels=PIXELS,
        grid=[rows, columns],
        cell=[patches.patch, patches.patch],
        first=int(patches.class_token),
    )


def _caption(captioner: ImageCaptioner, pixels: NDArray[np.uint8], names: list[str], options: RunOptions) -> ModelRun:
    max_new_tokens = captioner.resolve_max_length(pixels, options.max_new_tokens)
    search = options.search or Beam()
    generation = Generation(read_image(captioner, pixels), search, max_new_tokens, options.seed, options.n_best)
    source = _describe_vectors(names, captioner.patches.class_token)
    return generate_text(generation, {"source": source}, "the caption")


def _read_label(
    classifier: ImageClassifier | AudioClassifier,
    source: Tensor,
    names: list[str],
    label: Label,
    *,
    class_token: bool = False,
) -> ModelRun:
    sequences: Sequences = {"source": _describe_vectors(names, class_token)}
    passage = ReplayInput(
        classifier.model,
        media=source,
        vectors=len(sequences["source"]),
        rows=[0],
        labels=[classifier.labels.index(label.label)],
    )
    predictions = [rank_labels(None, label.probabilities)]
    return ModelRun(passage, sequences, label.label, f"the label '{label.label}'", predictions=predictions)


def _transcribe(transcriber: Transcriber, spectrogram: Spectrogram, names: list[str], options: RunOptions) -> ModelRun:
    frames = transcriber.check_length(spectrogram)
    max_new_tokens = transcriber.resolve_max_length(frames, options.max_new_tokens)
    search = options.search or transcriber.make_search()
    generation = Generation(load_audio(transcriber, spectrogram), search, max_new_tokens, options.seed, options.n_best)
    return generate_text(generation, {"source": _describe_vectors(names)}, "the transcript")


def drop_order(groups: list[Group]) -> None:
    """Remove the statistics that need an order: the patches of an image follow each other row by row."""
    for group in groups:
        if group["columns"] != "source":
            continue  # among the tokens of a caption
        for name in ("distance", "previous"):
            group["statistics"][name] = [[None] * group["heads"] for _ in range(group["layers"])]


def _describe_vectors(names: list[str], class_token: bool = False) -> list[Token]:
    """Return the vectors that the encoder reads as tokens of a document: each is a word of its own."""
    first = [Token(id=-1, word=None, text="class token", role="special")] if class_token else []
    return first + [Token(id=number, word=number, text=name, role="text") for number, name in enumerate(names)]


def _describe_spectrogram(mel: MelConfig, names: list[str]) -> Picture:
    return Picture(
        kind="spectrogram",
        pixels=PIXELS,
        grid=[1, len(names)],
        cell=[mel.bins, mel.frames],
        first=0,
        seconds=mel.vector_seconds,
        rate=mel.rate or 0,
    )


def draw_spectrogram(spectrogram: Spectrogram, mel: MelConfig) -> NDArray[np.uint8]:
    """Return a normalized spectrogram (frames, bins) as gray pixels (bins, frames, 1), high frequencies above."""
    values = spectrogram.astype(np.float64)
    if mel.std:
        values = values * np.array(mel.std)
    if mel.mean:
        values = values + np.array(mel.mean)
    low, high = values.min(), values.max()
    levels = np.rint((values - low) / max(high - low, 1e-9) * 255).astype(np.uint8)  # (frames, bins)
    return levels.T[::-1, :, None]
