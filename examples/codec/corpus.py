"""The corpus: prompts of a digit word and 0.2 s of a speaker, and the codes of a recording.

Recordings are those of the Free Spoken Digit Dataset: index 0 to 4 of each speaker and digit are the test, 5 to 9
validation, the others train. A prompt never comes from the recording whose codes follow it, nor from another part.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.data.readers.audio import load_audio

sys.path.insert(0, str(Path(__file__).parents[2].resolve()))  # started as a script, Python looks in this folder only

from examples.codec.frames import Codes, FrameCodebook, Samples
from examples.fsdd.prepare import WORDS

PROMPT_FRAMES = 20  # of 10 ms
PROMPTS = {"train": 8, "validation": 1, "test": 1}  # prompts for each recording
CODEBOOK = "codebook.npy"


@dataclass(frozen=True)
class Recording:
    """A recording of the dataset."""

    digit: int
    speaker: str
    index: int
    samples: Samples

    @property
    def part(self) -> str:
        """The part that this recording belongs to."""
        return "test" if self.index < 5 else "validation" if self.index < 10 else "train"


def load_recordings(folder: Path, part: str | None = None) -> list[Recording]:
    """Load the recordings digit_speaker_index.wav of a folder, or those of one part."""
    recordings = []
    for path in sorted(folder.glob("*_*_*.wav")):
        digit, speaker, index = path.stem.split("_")
        samples = np.frombuffer(load_audio(str(path)).samples, "<i2")
        recordings.append(Recording(int(digit), speaker, int(index), samples))
    return [recording for recording in recordings if part in (None, recording.part)]


def prepare(folder: Path, out: Path, codes: int) -> None:
    """Learn the codebook from the training part, and write the prompts and the codes of each part."""
    out.mkdir(parents=True, exist_ok=True)
    codebook = FrameCodebook.learn([recording.samples for recording in load_recordings(folder, "train")], codes)
    codebook.save(out / CODEBOOK)
    for part, count in PROMPTS.items():
        recordings = load_recordings(folder, part)
        encoded = [codebook.encode(recording.samples) for recording in recordings]
        rows = make_rows(recordings, encoded, count)
        for name, column in zip(("prompts", "codes"), zip(*rows, strict=True), strict=True):
            (out / f"{part}.{name}.txt").write_text("\n".join(column) + "\n", encoding="utf-8")
        print(f"{part}: {len(recordings):,} recordings, {sum(map(len, encoded)):,} codes, {len(rows):,} rows")


def make_rows(recordings: Sequence[Recording], encoded: Sequence[Codes], count: int) -> list[tuple[str, str]]:
    """Return `count` prompts for each recording, each with the codes of the recording."""
    rng = np.random.default_rng(1)
    rows = []
    for recording, codes in zip(recordings, encoded, strict=True):
        others = [
            other_codes
            for other, other_codes in zip(recordings, encoded, strict=True)
            if other.speaker == recording.speaker
            and other.digit != recording.digit
            and len(other_codes) >= PROMPT_FRAMES
        ]
        for number in rng.choice(len(others), count, replace=False):
            start = int(rng.integers(len(others[number]) - PROMPT_FRAMES + 1))
            voice = others[number][start : start + PROMPT_FRAMES]
            rows.append((f"{WORDS[recording.digit]} {format_codes(voice)}", format_codes(codes)))
    return rows


def format_codes(codes: Codes) -> str:
    """Return codes as words.

    >>> format_codes(np.array([3, 12]))
    'c3 c12'
    """
    return " ".join(f"c{code}" for code in codes)


def parse_codes(text: str) -> Codes:
    """Return the codes among the words of a text.

    >>> parse_codes("seven c3 c12")
    array([ 3, 12])
    """
    return np.array([int(word[1:]) for word in text.split() if word[1:].isdigit()], np.int64)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file."""
    return path.read_text(encoding="utf-8").splitlines()
