"""Compare the imported model with openai-whisper, clip by clip: spectrograms, encoder states, greedy tokens, texts.

    python examples/whisper/compare.py tiny.en.pt tiny.en clips transcripts.tsv

openai-whisper decodes as its README shows: `pad_or_trim`, `log_mel_spectrogram`, `decode`, with temperature 0, without
timestamps, in float32. Regard decodes as `regard predict --beam 1`. Each program computes its own spectrogram.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch
import whisper

import regard
from regard.data.readers.audio import load_audio
from regard.tasks.search import Beam

HEADER = ("clip", "equal", "tokens", "spectrogram", "encoder", "Regard", "openai-whisper")


def main(checkpoint: str, folder: str, clips: str, out: str) -> None:
    """Write the table, and print a summary."""
    torch.set_num_threads(1)
    theirs = whisper.load_model(checkpoint, device="cpu")
    ours = regard.load_transcriber(folder)
    options = whisper.DecodingOptions(language="en", temperature=0.0, without_timestamps=True, fp16=False)
    rows: list[tuple[str, str, int, float, float, str, str]] = []
    seconds = {"Regard": 0.0, "openai-whisper": 0.0}
    with ours.prepared():
        for file in sorted(Path(clips).glob("*.wav")):
            samples = np.frombuffer(load_audio(str(file)).samples, "<i2")
            started = time.process_time()
            mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(samples.astype(np.float32) / 32768))
            expected = whisper.decode(theirs, mel, options)
            seconds["openai-whisper"] += time.process_time() - started
            started = time.process_time()
            result = ours.transcribe(samples, Beam(1))
            seconds["Regard"] += time.process_time() - started
            tokens = [token for token in result.tokens if token != ours.tokenizers.target.specials.eos]
            is_equal = tokens == expected.tokens and result.text == expected.text
            spectrogram = float(np.abs(ours.input.load(samples).T - mel.numpy()).max())
            with torch.inference_mode():  # of the same spectrogram
                states, _ = ours.model.encode(mel.T[None])
                difference = float((states - theirs.embed_audio(mel[None])).abs().max())
            equal = "yes" if is_equal else "no"
            rows.append((file.stem, equal, len(tokens), spectrogram, difference, result.text, expected.text))
    lines = [
        "\t".join(f"{cell:.1e}" if isinstance(cell, float) else str(cell) for cell in row) for row in (HEADER, *rows)
    ]
    Path(out).write_text("\n".join(lines) + "\n", encoding="utf-8")
    equal_count = sum(row[1] == "yes" for row in rows)
    print(f"{equal_count} of {len(rows)} clips have the same tokens and the same text.")
    print(f"Spectrograms differ by at most {max(row[3] for row in rows):.1e}, encoder states of the same spectrogram")
    print(f"by at most {max(row[4] for row in rows):.1e}.")
    print(f"CPU seconds, one thread: {', '.join(f'{name} {value:.1f}' for name, value in seconds.items())}.")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
