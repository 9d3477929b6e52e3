"""How good generated digits are: recognized by a classifier of recordings, in the voice of the prompt, not copied.

The bounds are the recordings themselves, and the recordings as codes and back. The baseline counts which code follows
which in the recordings of a digit, and samples from the counts.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import regard
from regard.data.mel import FULL_SCALE, log_mel
from regard.data.readers.audio import load_audio
from regard.measure.likelihood import mean_interval
from regard.tasks.inputs.image import save_image

sys.path.insert(0, str(Path(__file__).parents[2].resolve()))  # started as a script, Python looks in this folder only

from examples.codec.corpus import CODEBOOK, Recording, load_recordings, parse_codes, read_lines
from examples.codec.frames import LEVELS, MEL, RATE, Codes, FrameCodebook, Samples, synthesize, to_levels
from examples.fsdd.baseline import find_nearest

MAX_FRAMES = 150
SHOWN_FRAMES, SCALE, COLUMNS = 64, 3, 5


def evaluate(recordings: Path, data: Path, audio: Path, digits: Path, part: str, picture: Path | None) -> None:
    """Print the figures of the audio clips that were generated for a part, and draw ten of them."""
    codebook, training = FrameCodebook.load(data / CODEBOOK), load_recordings(recordings, "train")
    expected = load_recordings(recordings, part)
    training_codes = [codebook.encode(recording.samples) for recording in training]
    generated = [load(audio / f"{one.digit}_{one.speaker}_{one.index}.wav") for one in expected]
    systems = {
        "recordings": [recording.samples for recording in expected],
        "recordings as codes and back": [
            synthesize(codebook.decode(codebook.encode(recording.samples))) for recording in expected
        ],
        "counts of pairs of codes": [
            synthesize(codebook.decode(codes)) for codes in sample_counts(training, training_codes, expected)
        ],
        "generated": generated,
    }
    classifier = regard.load_audio_classifier(digits)
    voices = np.array([recording.speaker for recording in training])
    features = [extract_features([one.samples for one in training])]
    for name, samples in systems.items():
        labels = [prediction.label for prediction in classifier.classify(samples)]
        is_right = [label == str(one.digit) for label, one in zip(labels, expected, strict=True)]
        mean, low, high = mean_interval([float(value) for value in is_right])
        nearest = find_nearest(features[0], voices, extract_features(samples))
        is_voice = nearest == np.array([one.speaker for one in expected])
        seconds = np.array([len(one) / RATE for one in samples])
        print(
            f"{name}: {mean:.1%} recognized ({low:.1%} to {high:.1%}), {is_voice.mean():.1%} in the voice of the "
            f"speaker; {seconds.mean():.2f} s on average, {seconds.min():.2f} to {seconds.max():.2f} s"
        )
    known = {tuple(codes.tolist()) for codes in training_codes}
    copies = [tuple(parse_codes(line).tolist()) in known for line in read_lines(audio / "codes.txt")]
    print(f"copies of a training recording: {sum(copies)} of {len(copies)}")
    chosen = choose(expected)
    for number in chosen:
        print(f"{expected[number].digit}_{expected[number].speaker}: {describe(generated[number])}")
    if picture is not None:
        save_image(draw([generated[number] for number in chosen]), picture)


def load(path: Path) -> Samples:
    """Return the samples of a file."""
    return np.frombuffer(load_audio(str(path)).samples, "<i2")


def sample_counts(
    training: Sequence[Recording], encoded: Sequence[Codes], expected: Sequence[Recording]
) -> list[Codes]:
    """Sample codes of each expected digit: the next code given the last, as often as in the training recordings."""
    rng, followers = np.random.default_rng(1), dict[tuple[int, int], list[int]]()
    start = end = -1
    for recording, codes in zip(training, encoded, strict=True):
        for last, code in zip([start, *codes.tolist()], [*codes.tolist(), end], strict=True):
            followers.setdefault((recording.digit, last), []).append(code)
    sampled = []
    for recording in expected:
        row, last = list[int](), start
        while len(row) < MAX_FRAMES and (last := int(rng.choice(followers[recording.digit, last]))) != end:
            row.append(last)
        sampled.append(np.array(row, np.int64))
    return sampled


def extract_features(audio: Sequence[Samples]) -> NDArray[np.float64]:
    """Return mean and deviation of every mel bin of each audio clip, (N, 2 bins)."""
    spectrograms = [log_mel(clip, MEL) for clip in audio]
    return np.array([[*frames.mean(axis=0), *frames.std(axis=0)] for frames in spectrograms], np.float64)


def choose(expected: Sequence[Recording]) -> list[int]:
    """Return the number of one audio clip of each digit, the speakers in turn; nothing is chosen by its quality."""
    speakers = sorted({recording.speaker for recording in expected})
    wanted = [(digit, speakers[digit % len(speakers)]) for digit in sorted({one.digit for one in expected})]
    names = [(recording.digit, recording.speaker) for recording in expected]
    return [names.index(pair) for pair in wanted]


def describe(clip: Samples) -> str:
    """Return the duration and the energy of an audio clip.

    >>> describe(np.full(800, 3277, np.int16))
    '0.10 s, -20.0 dB'
    """
    energy = float(np.mean((clip / FULL_SCALE) ** 2))
    return f"{len(clip) / RATE:.2f} s, {10 * np.log10(max(energy, 1e-12)):.1f} dB"


def draw(audio: Sequence[Samples]) -> NDArray[np.uint8]:
    """Return a picture of spectrograms, low frequencies below; loud is dark."""
    panels = []
    for clip in audio:
        levels = to_levels(clip)[:SHOWN_FRAMES].T[::-1]  # (bins, frames)
        panel = np.full((len(levels) + 2, SHOWN_FRAMES + 2), LEVELS, np.uint8)
        panel[1:-1, 1 : 1 + levels.shape[1]] = LEVELS - levels
        panels.append(panel)
    panels += [np.full_like(panels[0], LEVELS)] * (-len(panels) % COLUMNS)
    rows = [np.concatenate(panels[start : start + COLUMNS], axis=1) for start in range(0, len(panels), COLUMNS)]
    return np.concatenate(rows).repeat(SCALE, axis=0).repeat(SCALE, axis=1)
