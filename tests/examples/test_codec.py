"""`examples/codec` in small: two digits of two speakers become codes, a model learns them, and codes become audio."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from examples.codec import corpus, evaluate, frames, run

import regard
from regard.config.codec import RUN_FILES
from regard.training.run import fit
from tests.training.runs import SMALL_LANGUAGE_MODEL, write_wav

SMALL = SMALL_LANGUAGE_MODEL | {"model.tokens.vocabulary": 24}


def make_tone(frequency: float, seed: int, seconds: float = 0.25) -> frames.Samples:
    times = np.arange(int(seconds * frames.RATE)) / frames.RATE
    noise = np.random.default_rng(seed).normal(0, 100, times.size)
    return (6000 * np.sin(2 * np.pi * frequency * times) + noise).astype("<i2")


def find_peak(samples: frames.Samples) -> float:
    """Return the loudest frequency in hertz."""
    return float(np.abs(np.fft.rfft(samples / 1.0)).argmax() * frames.RATE / samples.size)


def test_an_audio_clip_becomes_codes_and_an_audio_clip_again() -> None:
    audio = [make_tone(frequency, seed) for frequency in (400, 1600) for seed in range(4)]
    codebook = frames.FrameCodebook.learn(audio, 8)
    for frequency in (400, 1600):
        again = frames.synthesize(codebook.decode(codebook.encode(make_tone(frequency, 9))))
        assert again.size == 2000
        assert find_peak(again) == pytest.approx(frequency, rel=0.1)
        assert np.std(again) == pytest.approx(6000 / np.sqrt(2), rel=0.3)
        assert np.abs(frames.to_levels(again).astype(int) - codebook.centers[codebook.encode(again)]).mean() < 12


def test_a_prompt_has_the_voice_of_another_recording() -> None:
    recordings = [
        corpus.Recording(digit, speaker, 10, np.zeros(0, np.int16)) for digit in range(2) for speaker in ("ann", "bob")
    ]
    encoded = [np.full(30, number) for number in range(4)]
    rows = corpus.make_rows(recordings, encoded, 1)
    voices = [{*prompt.split()[1:]} for prompt, _ in rows]
    assert voices == [{"c2"}, {"c3"}, {"c0"}, {"c1"}], "the same speaker, another digit"
    assert [prompt.split()[0] for prompt, _ in rows] == ["zero", "zero", "one", "one"]
    assert all(len(prompt.split()) == 1 + corpus.PROMPT_FRAMES for prompt, _ in rows)
    assert [corpus.parse_codes(codes).tolist() for _, codes in rows] == [codes.tolist() for codes in encoded]


def test_words_and_voices_become_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A digit is a frequency and a speaker is loud or soft: both are in the prompt."""
    folder, data, audio = tmp_path / "recordings", tmp_path / "data", tmp_path / "audio"
    for digit in range(2):
        for speaker, volume in (("loud", 1.0), ("soft", 0.1)):
            for index in range(20):
                tone = volume * make_tone(400 + 1200 * digit, 100 * digit + index)
                write_wav(folder / f"{digit}_{speaker}_{index}.wav", tone.astype("<i2").tobytes())
    run_step(monkeypatch, "prepare", folder, data, "--codes", "8")
    assert frames.FrameCodebook.load(data / corpus.CODEBOOK).centers.shape == (8, frames.BINS)
    monkeypatch.chdir(data)
    fit(RUN_FILES.change(RUN_FILES.load(run.RUN_FILE), SMALL), tmp_path / "run")
    run_step(monkeypatch, "generate", folder, data, tmp_path / "run", audio, "--temperature", "0.5")
    expected = corpus.load_recordings(folder, "test")
    for recording in expected:
        samples = evaluate.load(audio / f"{recording.digit}_{recording.speaker}_{recording.index}.wav")
        assert find_peak(samples) == pytest.approx(400 + 1200 * recording.digit, rel=0.1)
        assert (np.std(samples) > 1500) == (recording.speaker == "loud")
    lines = [
        f"{folder}/{one.digit}_{one.speaker}_{one.index}.wav\t{one.digit}" for one in corpus.load_recordings(folder)
    ]
    (tmp_path / "digits.tsv").write_text("\n".join(["file\tlabel", *lines]) + "\n")
    small = {"d_model": 16, "encoder.layers": 1, "encoder.attention.heads": 2, "encoder.feedforward.d_ff": 32}
    settings = {"model": small, "train.schedule.lr": 0.01}
    regard.train(audio=tmp_path / "digits.tsv", out=tmp_path / "digits", steps=30, settings=settings)
    capsys.readouterr()
    picture = tmp_path / "picture.png"
    run_step(monkeypatch, "evaluate", folder, data, audio, tmp_path / "digits", "--picture", picture)
    printed = capsys.readouterr().out
    recognized = re.search(r"^generated: ([\d.]+)% recognized .*, ([\d.]+)% in the voice", printed, re.MULTILINE)
    assert recognized is not None
    assert float(recognized[1]) >= 90
    assert float(recognized[2]) >= 90
    assert re.search(r"^0_loud: \d\.\d\d s, -1\d\.\d dB$", printed, re.MULTILINE)
    assert picture.read_bytes()[:4] == b"\x89PNG"


def run_step(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", *map(str, arguments)])
    run.main()
