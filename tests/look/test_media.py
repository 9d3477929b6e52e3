"""Looks into models of images and audio clips: what the page draws is what the model read and computed."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from regard.base.blobs import Blob, decode_blob
from regard.config.inputs import MelConfig
from regard.data.batches.images import normalize
from regard.data.mel import log_mel
from regard.look.build import look_into
from regard.look.document import Document
from regard.look.media import MAX_SAMPLES, make_picture
from regard.nn.record import Record
from regard.tasks.inputs.audio import AudioInput
from regard.tasks.load import (
    load_audio_classifier,
    load_image_captioner,
    load_image_classifier,
    load_transcriber,
)
from regard.tasks.search import Beam
from tests.look.schema import check
from tests.tasks.media_models import (
    make_png,
    make_wav,
    write_audio_model,
    write_captioning_model,
    write_image_model,
    write_transcription_model,
)


def test_an_image_and_the_attention_of_its_patches(tmp_path: Path) -> None:
    folder, path = write_image_model(tmp_path / "model"), tmp_path / "a.png"
    path.write_bytes(make_png())
    look = look_into(folder, str(path))
    document, classifier = look.document, load_image_classifier(folder)
    check(document, Document)
    check_picture(document)
    label = classifier.classify(path)
    assert document["output"] == label.label
    assert document["predictions"][0]["probabilities"][0] == pytest.approx(label.probability, abs=1e-5)
    picture = document["picture"]
    assert (picture["kind"], picture["grid"], picture["cell"], picture["first"]) == ("image", [2, 3], [4, 4], 1)
    pixels = np.asarray(Image.open(BytesIO(make_png())))
    assert (decode_blob(document["blobs"][picture["pixels"]])[:, :, 0] == pixels).all(), "pixels as they are"
    source = document["sequences"]["source"]
    patches = [f"patch {row},{column}" for row in range(2) for column in range(3)]
    assert [token["text"] for token in source] == ["class token", *patches]
    expected = classifier.record(path)
    (group,) = document["attention"]
    assert all(value is None for name in ("distance", "previous") for row in group["statistics"][name] for value in row)
    assert (group["layers"], group["heads"], group["row_count"], group["column_count"]) == (2, 2, 7, 7)
    for layer in range(2):
        for head in range(2):
            weights = decode_blob(document["blobs"][group["maps"][f"{layer}.{head}"]])
            assert weights == pytest.approx(expected[f"encoder.{layer}.self"][head].numpy(), abs=0.005)
    assert sum(look.row("encoder.self", 1, 0, 0)) == pytest.approx(1, abs=1e-5)
    assert document["ablation"] is not None
    assert look.without_heads([("encoder.self", 1, 0)])["delta"] == pytest.approx(
        document["ablation"]["delta"]["encoder.self"][1][0], abs=1e-5
    )


def test_the_spectrogram_of_an_audio_clip(tmp_path: Path) -> None:
    folder, path = write_audio_model(tmp_path / "model"), tmp_path / "a.wav"
    path.write_bytes(make_wav())
    document, classifier = look_into(folder, str(path)).document, load_audio_classifier(folder)
    check(document, Document)
    check_picture(document)
    assert document["output"] == classifier.classify(path).label
    picture = document["picture"]
    assert (picture["kind"], picture["grid"], picture["cell"], picture["first"]) == ("spectrogram", [1, 15], [8, 2], 0)
    assert (picture["seconds"], picture["rate"]) == (0.02, 8000)
    samples = np.frombuffer(make_wav()[44:], "<i2")
    spectrogram = log_mel(samples, classifier.input.config)  # (frames, bins)
    levels = (spectrogram - spectrogram.min()) / (spectrogram.max() - spectrogram.min()) * 255
    shown = decode_blob(document["blobs"][picture["pixels"]])
    assert shown[:, :, 0] == pytest.approx(levels.T[::-1], abs=0.51), "high frequencies above"
    assert [token["text"] for token in document["sequences"]["source"]][:3] == ["0.00 s", "0.02 s", "0.04 s"]
    played, exact = decode_mu_law(document), samples / 32767.0
    assert (abs(played - exact) <= 0.0222 * (abs(exact) + 1 / 255)).all(), "half a step of 8-bit mu-law"


def test_document_of_long_clip_has_no_audio() -> None:
    spectrogram, samples = np.zeros((9, 80), np.float32), np.zeros(MAX_SAMPLES + 1, np.int16)
    drawn = AudioInput(MelConfig(rate=8000, bins=80)).draw(spectrogram, samples)
    blobs: dict[str, Blob] = {}
    assert "audio" not in make_picture(drawn, blobs)
    assert "audio" in make_picture(replace(drawn, samples=np.zeros(MAX_SAMPLES, np.int16)), blobs)
    assert len(blobs["audio"]["data"]) < 60_000


def decode_mu_law(document: Document) -> NDArray[np.float64]:
    """Return the samples of a document as a page plays them, from -1 to 1."""
    levels = (decode_blob(document["blobs"][document["picture"]["audio"]]).astype(np.float64) - 127) / 127
    played: NDArray[np.float64] = np.sign(levels) * (256 ** abs(levels) - 1) / 255
    return played


def test_a_transcript_attends_to_frames(tmp_path: Path) -> None:
    folder, path = write_transcription_model(tmp_path / "model"), tmp_path / "a.wav"
    path.write_bytes(make_wav())
    look = look_into(folder, str(path), search=Beam(3), max_new_tokens=6)
    document = look.document
    check(document, Document)
    check_picture(document)
    transcript = load_transcriber(folder).transcribe(path, Beam(3), max_new_tokens=6)
    assert document["output"] == transcript.text
    assert [token["id"] for token in document["sequences"]["target"]][1:] == list(transcript.tokens)
    groups = {group["name"]: group for group in document["attention"]}
    assert (groups["decoder.cross"]["row_count"], groups["decoder.cross"]["column_count"]) == (
        len(transcript.tokens),
        15,
    )
    assert document["search"] is not None
    assert document["search"]["settings"]["beam_size"] == 3
    assert document["hypotheses"] == [], "frames are no words"
    assert document["model"]["vocabulary"].keys() == {"target"}
    (leak,) = [mask["leak"] for mask in document["masks"] if mask["leak"] is not None]
    assert leak["change"] == 0
    assert leak["later_change"] > 0
    assert "text" in look.without_heads([("decoder.cross", 0, 1)])


@pytest.mark.parametrize("class_token", [False, True])
def test_a_caption_attends_to_patches(tmp_path: Path, class_token: bool) -> None:
    changes: dict[str, Any] = {"source.class_token": class_token, "encoder.position.length": 6 + class_token}
    folder, path = write_captioning_model(tmp_path / "model", **changes), tmp_path / "a.png"
    path.write_bytes(make_png())
    look = look_into(folder, str(path), search=Beam(3), max_new_tokens=6)
    document, captioner = look.document, load_image_captioner(folder)
    check(document, Document)
    check_picture(document)
    caption = captioner.caption(path, Beam(3), max_new_tokens=6)
    assert (document["model"]["task"], document["output"]) == ("captioning", caption.text)
    assert [token["id"] for token in document["sequences"]["target"]][1:] == list(caption.tokens)
    picture = document["picture"]
    expected_picture = ("image", [2, 3], [4, 4], int(class_token))
    assert (picture["kind"], picture["grid"], picture["cell"], picture["first"]) == expected_picture
    groups = {group["name"]: group for group in document["attention"]}
    cross = groups["decoder.cross"]
    assert (cross["row_count"], cross["column_count"]) == (len(caption.tokens), 6 + class_token)
    pixels = np.asarray(Image.open(BytesIO(make_png())))[None, None]  # (1, channels, height, width)
    source, record = torch.from_numpy(normalize(pixels, captioner.input.config)), Record()
    target = torch.tensor([[captioner.tokenizers.target.specials.bos, *caption.tokens[:-1]]])
    with torch.inference_mode():
        captioner.model.eval()(source, target, record=record)
    for layer in range(2):
        for head in range(2):
            weights = decode_blob(document["blobs"][cross["maps"][f"{layer}.{head}"]])
            expected = record.weights(f"decoder.{layer}.cross")[0, head]
            assert weights == pytest.approx(expected.numpy(), abs=0.005)
            exact = look.row("decoder.cross", layer, head, 1)
            assert exact == pytest.approx(expected[1].tolist(), abs=1e-5)
    for group in document["attention"]:
        values = [value for row in group["statistics"]["distance"] for value in row]
        assert all((value is not None) == (group["name"] == "decoder.self") for value in values), "no order of patches"
    assert document["hypotheses"] == [], "patches are no words"
    assert document["model"]["vocabulary"].keys() == {"target"}
    assert document["search"] is not None
    assert document["attribution"] is None
    assert "text" in look.without_heads([("decoder.cross", 0, 1)])
    number = next(iter(document["search"]["continuations"]), None)
    assert number is not None
    assert look.continue_from(int(number))[0]["tokens"]


def check_picture(document: Document) -> None:
    """Check what the page relies on: a cell for every vector, pixels for every cell, and every map of the opening."""
    picture, source = document["picture"], document["sequences"]["source"]
    (rows, columns), (height, width) = picture["grid"], picture["cell"]
    shape = document["blobs"][picture["pixels"]]["shape"]
    assert len(source) == picture["first"] + rows * columns
    assert all(token["role"] == "special" for token in source[: picture["first"]])
    assert len(shape) == 3
    assert shape[0] == rows * height
    assert (columns - 1) * width < shape[1] <= columns * width
    for group in document["attention"]:
        if group["columns"] == "source":
            assert group["column_count"] == len(source)
            assert ".".join(map(str, group["default_head"])) in group["maps"]


def test_two_dimensional_positions_are_not_drawn_as_others(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"encoder.position": {"kind": "sinusoidal_2d", "columns": 3}}
    folder, path = write_image_model(tmp_path / "model", **changes), tmp_path / "a.png"
    path.write_bytes(make_png())
    document = look_into(folder, str(path)).document
    check(document, Document)
    check_picture(document)
    assert document["positions"] == []
    assert document["model"]["positions"] == {"encoder": "sinusoidal_2d"}
