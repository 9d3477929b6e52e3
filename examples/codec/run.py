"""Speech as tokens (VALL-E in small): a digit word and 0.2 s of a speaker -> codes of mel frames -> sound.

    python examples/codec/run.py prepare RECORDINGS DATA
    python examples/codec/run.py train DATA RUN
    python examples/codec/run.py generate RECORDINGS DATA RUN SOUNDS --part test
    python examples/codec/run.py evaluate RECORDINGS DATA SOUNDS DIGITS    # DIGITS: the classifier of examples/fsdd

`prepare` learns the codebook and writes pairs of lines, prompts and codes. `train` is `regard train` with run.toml.
`generate` writes a clip for each recording of a part: the same digit, and a voice from 0.2 s of another recording of
the same speaker. `evaluate` counts the digits that the classifier recognizes, beside bounds and a baseline.
"""

import argparse
import subprocess
import sys
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import regard
from regard.decode.filters import Filters
from regard.tasks.search import Sampling

sys.path.insert(0, str(Path(__file__).parents[2].resolve()))  # started as a script, Python looks in this folder only

from examples.codec.corpus import CODEBOOK, format_codes, load_recordings, parse_codes, prepare, read_lines
from examples.codec.evaluate import evaluate
from examples.codec.frames import RATE, FrameCodebook, Samples, synthesize

CODES = 256
MAX_FRAMES = 150
TEMPERATURE = 0.8
RUN_FILE = Path(__file__).with_name("run.toml")


def train(data: Path, out: Path, options: Sequence[str] = ()) -> None:
    """Run `regard train` in the folder of the data."""
    command = [sys.executable, "-m", "regard", "train", str(RUN_FILE.resolve()), "--out", str(out.resolve()), *options]
    if code := subprocess.run(command, cwd=data, check=False).returncode:  # noqa: S603 - ours
        sys.exit(code)


def generate(recordings: Path, data: Path, run: Path, out: Path, part: str, temperature: float) -> None:
    """Write a clip for each recording of a part, their codes, and a table of the audio clips and their digits."""
    codebook = FrameCodebook.load(data / CODEBOOK)
    search = Sampling(filters=Filters(temperature=temperature))
    prompts = read_lines(data / f"{part}.prompts.txt")
    texts = regard.load_generator(run).generate(prompts, MAX_FRAMES, search, seed=1)
    out.mkdir(parents=True, exist_ok=True)
    lines, all_codes = ["file\tlabel"], []
    for text, recording in zip(texts, load_recordings(recordings, part), strict=True):
        codes = parse_codes(text.text)
        all_codes.append(codes)
        name = f"{recording.digit}_{recording.speaker}_{recording.index}.wav"
        write_wav(out / name, synthesize(codebook.decode(codes if codes.size else np.zeros(1, np.int64))))
        lines.append(f"{name}\t{recording.digit}")
    (out / "audio clips.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (out / "codes.txt").write_text("".join(f"{format_codes(codes)}\n" for codes in all_codes), encoding="utf-8")
    print(
        f"{len(lines) - 1:,} audio clips in {out}; {sum(not text.ended for text in texts)} reached {MAX_FRAMES} frames"
    )


def write_wav(path: Path, samples: Samples) -> None:
    """Write samples of 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())


def main() -> None:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    folders = {
        "prepare": ("recordings", "data"),
        "train": ("data", "run"),
        "generate": ("recordings", "data", "run", "audio"),
        "evaluate": ("recordings", "data", "audio", "digits"),
    }
    for name, arguments in folders.items():
        step = steps.add_parser(name)
        for argument in arguments:
            step.add_argument(argument, type=Path)
        if name == "prepare":
            step.add_argument("--codes", type=int, default=CODES, help=f"codes of the codebook (default {CODES})")
        if name == "generate":
            step.add_argument("--temperature", type=float, default=TEMPERATURE)
        if name in ("generate", "evaluate"):
            step.add_argument("--part", choices=["validation", "test"], default="test")
        if name == "evaluate":
            step.add_argument(
                "--picture", type=Path, help="draw the spectrograms of one audio clip of each digit (.png)"
            )
    given, options = parser.parse_known_args()
    if options and given.step != "train":
        parser.error(f"unknown arguments: {' '.join(options)}")
    match given.step:
        case "prepare":
            prepare(given.recordings, given.data, given.codes)
        case "train":
            train(given.data, given.run, options)
        case "generate":
            generate(given.recordings, given.data, given.run, given.audio, given.part, given.temperature)
        case "evaluate":
            evaluate(given.recordings, given.data, given.audio, given.digits, given.part, given.picture)


if __name__ == "__main__":
    main()
