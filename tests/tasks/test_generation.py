"""Texts from images and audio clips."""

from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.tasks.captioning import ImageCaptioner
from regard.tasks.load import load_image_captioner, load_transcriber
from regard.tasks.search import Beam
from regard.tasks.transcription import Transcriber
from tests.tasks.media_models import RATE, write_captioning_model, write_transcription_model


def test_transcripts_of_sorted_batches_return_in_the_order_of_the_clips(tmp_path: Path) -> None:
    transcriber, rng = load_transcriber(write_transcription_model(tmp_path / "model")), np.random.default_rng(1)
    clips = [rng.normal(0, 3000, count).astype(np.int16) for count in (900, 4000, 200, 2000)]
    results = transcriber.transcribe(clips, Beam(2), max_new_tokens=6)
    alone = [transcriber.transcribe(clip, Beam(2), max_new_tokens=6) for clip in clips]
    assert [result.tokens for result in results] == [result.tokens for result in alone]
    assert [result.text for result in results] == [result.text.strip() for result in alone]


def test_maximum_length_follows_from_the_input(tmp_path: Path) -> None:
    captioner = load_image_captioner(write_captioning_model(tmp_path / "captions", max_length_ratio=2.0))
    vectors = captioner.input.measure(captioner.input.load(np.zeros((8, 12), np.uint8)))
    assert (vectors, captioner.resolve_max_length(vectors, None)) == (6, 32)
    transcriber = load_transcriber(write_transcription_model(tmp_path / "speech", max_length_ratio=0.5))
    frames = transcriber.input.measure(transcriber.input.load(np.zeros(RATE, np.int16)))
    assert (frames, transcriber.resolve_max_length(frames, None)) == (100, 70)


def test_model_of_another_task_is_refused(tmp_path: Path) -> None:
    captioner = load_image_captioner(write_captioning_model(tmp_path / "captions"))
    with pytest.raises(RegardError, match="task is 'captioning': it does not transcribe") as caught:
        Transcriber(captioner.model, captioner.tokenizers, captioner.settings)
    assert caught.value.hint == "Train a suitable model: `regard train --audio TABLE --out NEW`."
    transcriber = load_transcriber(write_transcription_model(tmp_path / "speech"))
    with pytest.raises(RegardError, match="task is 'transcription': it does not caption images"):
        ImageCaptioner(transcriber.model, transcriber.tokenizers, transcriber.settings)
