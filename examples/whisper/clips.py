"""Make 30 clips of 16,000 samples per second: 20 sentences by espeak-ng, and 10 spoken digits of FSDD.

    python examples/whisper/clips.py recordings clips

`recordings` is the folder of the Free Spoken Digit Dataset (8,000 samples per second). espeak-ng writes 22,050. Both
are resampled by their Fourier transform: the spectrum of the whole clip is cut off, or continued with zeros, at 8 kHz.
"""

import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
Samples = NDArray[np.int16]
SENTENCES = (
    "The train to the coast leaves at half past nine in the morning.",
    "She put the letter on the kitchen table and closed the door.",
    "We counted twenty three boats in the harbour before the rain began.",
    "Please write down the names of all the people in the room.",
    "A small model can run on an old computer without a graphics card.",
    "The river was so cold that nobody wanted to swim.",
    "He has worked in the same bakery for more than thirty years.",
    "Could you tell me how to get to the railway station?",
    "The experiment failed twice, but the third attempt was a success.",
    "My grandmother planted these apple trees when she was young.",
    "There are seven days in a week and twelve months in a year.",
    "The museum is closed on Mondays and on public holidays.",
    "Attention is computed between every pair of positions.",
    "I would like a cup of tea with milk, and no sugar.",
    "The children ran across the field to see the balloon.",
    "Most of the houses in this street were built of red brick.",
    "The price of bread has doubled since last winter.",
    "Turn left at the church, then walk straight on for ten minutes.",
    "Nobody knows exactly how old the bridge over the canal is.",
    "Thank you for listening, and good night.",
)
VOICES = ("en-us", "en-gb", "en-us+f3", "en-gb+m4")
SPEEDS = (150, 170)  # words per minute
SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")


def main(recordings: str, out: str) -> None:
    """Write the clips."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for number, sentence in enumerate(SENTENCES):
        voice, speed = VOICES[number % len(VOICES)], SPEEDS[number // len(VOICES) % len(SPEEDS)]
        path = folder / f"espeak-{number:02}.wav"
        command = ["espeak-ng", "-v", voice, "-s", str(speed), "-w", str(path), sentence]
        subprocess.run(command, check=True)  # noqa: S603 - a fixed command
        write_wav(path, resample(*read_wav(path)))
    for digit in range(10):
        speaker = SPEAKERS[digit % len(SPEAKERS)]
        name = f"{digit}_{speaker}_0"
        write_wav(folder / f"fsdd-{name}.wav", resample(*read_wav(Path(recordings, f"{name}.wav"))))


def resample(samples: Samples, rate: int) -> Samples:
    """Return an audio clip at 16,000 samples per second, by its Fourier transform."""
    length = round(samples.size * RATE / rate)
    spectrum = np.fft.rfft(samples.astype(np.float64))
    resized = np.zeros(length // 2 + 1, np.complex128)
    kept = min(resized.size, spectrum.size)
    resized[:kept] = spectrum[:kept]
    values = np.fft.irfft(resized, length) * (length / samples.size)
    return np.clip(np.rint(values), -32768, 32767).astype(np.int16)


def read_wav(path: Path) -> tuple[Samples, int]:
    """Read an audio clip of one channel of 16 bits."""
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate()


def write_wav(path: Path, samples: Samples) -> None:
    """Write an audio clip of one channel of 16 bits and 16,000 samples per second."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
