"""The reader of audio clips: folders and tables; damaged, lying and unsuitable files are refused with advice."""

import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config.sources import AudioConfig
from regard.data.corpus import Corpus
from regard.data.example import CorpusError, Defects, Example
from regard.data.readers import read
from regard.data.readers.audio import load_audio
from regard.data.readers.detect import detect_source, make_audio_source
from tests.training.runs import write_wav

SAMPLES = np.array([0, 1, -1, 32767, -32768], "<i2").tobytes()


def read_all(source: AudioConfig) -> tuple[list[Example], Defects]:
    defects = Defects(hash_files=True)
    return list(read(source, defects)), defects


def make_header(size: int, *, kind: int = 1, channels: int = 1, rate: int = 8000, bits: int = 16) -> bytes:
    """The 44 bytes of a .wav file whose data chunk claims a size."""
    frame = channels * bits // 8
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * frame & 0xFFFFFFFF, frame, bits)
    parts = b"WAVE" + b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", size)
    return b"RIFF" + struct.pack("<I", min(36 + size, 0xFFFFFFFF)) + parts


def test_folders_are_labels(tmp_path: Path) -> None:
    for name in ("no/b.wav", "no/deep/a.WAV", "yes/c.wav", "free.wav"):
        write_wav(tmp_path / name, SAMPLES)
    (tmp_path / "yes" / "notes.txt").write_text("text")
    examples, defects = read_all(AudioConfig(path=str(tmp_path)))
    labels = {Path(example.location.file).name: example.label for example in examples}
    assert labels == {"b.wav": "no", "a.WAV": "no", "c.wav": "yes", "free.wav": None}
    assert defects.counts == {"file that is no audio clip left out": 1}
    assert len(defects.file_infos) == 4
    clip = examples[0].audio
    assert clip is not None
    assert (clip.rate, clip.samples, len(clip)) == (8000, SAMPLES, 5)
    assert detect_source([str(tmp_path)]) == AudioConfig(path=str(tmp_path))
    assert detect_source([str(tmp_path / "free.wav")]) == AudioConfig(path=str(tmp_path / "free.wav"))
    assert detect_source([str(tmp_path / "yes" / "notes.txt")]).kind == "lines"


def test_tables_have_labels_or_texts(tmp_path: Path) -> None:
    for number in range(20):
        write_wav(tmp_path / "clips" / f"{number}.wav", SAMPLES)
    table = tmp_path / "table.tsv"
    table.write_text("".join(f"clips/{number}.wav\t{'yes' if number % 2 else 'no'}\n" for number in range(20)))
    source = make_audio_source(str(table))
    assert source == AudioConfig(path=str(table), second="label")
    examples, _ = read_all(source)
    assert [example.label for example in examples[:2]] == ["no", "yes"]
    assert str(examples[1].location) == f"{table}:2"
    assert make_audio_source(str(table), "transcription").second == "text"
    assert make_audio_source(str(tmp_path / "clips")) == AudioConfig(path=str(tmp_path / "clips"))
    table.write_text("path\tsentence\nclips/0.wav\tgood morning\n\nclips/1.wav\tgood night\n")
    source = make_audio_source(str(table))
    assert source == AudioConfig(path=str(table), second="text", header=True)
    assert [example.target for example in read_all(source)[0]] == ["good morning", "good night"]
    corpus = Corpus([source])
    files = [str(table), str(tmp_path / "clips" / "0.wav"), str(tmp_path / "clips" / "1.wav")]
    assert corpus.list_files() == files, "a changed audio clip is a changed corpus"
    before = corpus.hash_files()
    write_wav(tmp_path / "clips" / "1.wav", SAMPLES[::-1])
    assert corpus.hash_files() != before
    assert detect_source([str(table)]).kind == "table", "--data reads it as text"


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (make_header(0xFFFFFFF0), "declares 2,147,483,640 samples, but the file ends after 0", "intact copy"),
        (make_header(1000) + bytes(500), "declares 500 samples, but the file ends after 250", "intact copy"),
        (make_header(0), "has no samples", "Remove"),
        (make_header(4, bits=8) + bytes(4), "8 bits per sample, not 16", "ffmpeg -i IN -ac 1 -sample_fmt s16 OUT.wav"),
        (make_header(6, bits=24) + bytes(6), "24 bits per sample, not 16", "ffmpeg"),
        (make_header(8, channels=2) + bytes(8), "2 channels, not 1", "ffmpeg"),
        (make_header(4, rate=0) + bytes(4), "0 samples per second", "intact copy"),
        (make_header(4, rate=0xFFFFFFFF) + bytes(4), "4,294,967,295 samples per second", "intact copy"),
        (make_header(4, channels=0) + bytes(4), "cannot be read", "ffmpeg"),
        (make_header(4, kind=3, bits=32) + bytes(4), "unknown format: 3", "ffmpeg"),
        (make_header(4)[:20], "cannot be read", "ffmpeg"),
        (b"", "cannot be read: it ends within its header", "ffmpeg"),
        (b"no audio clip at all", "cannot be read", "ffmpeg"),
        (b"RIFF\xff\xff\xff\xffWAVE" + b"junk\xff\xff\xff\xff" * 3, "cannot be read", "ffmpeg"),
    ],
)
def test_unsuitable_files_are_refused(tmp_path: Path, content: bytes, message: str, hint: str) -> None:
    path = tmp_path / "a" / "bad.wav"
    path.parent.mkdir()
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(CorpusError, match=message) as caught:
        read_all(AudioConfig(path=str(tmp_path)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.location == str(path)
    assert hint in str(caught.value.hint)
    assert peak < 1 << 20, "nothing is allocated for what a header claims"


def test_rows_and_folders_without_audio_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("a.wav\n")
    with pytest.raises(CorpusError, match="1 column, not 2") as caught:
        read_all(AudioConfig(path=str(table)))
    assert caught.value.location == f"{table}:1"
    table.write_text("gone.wav\tyes\n")
    with pytest.raises(CorpusError, match=r"table\.tsv:1 names it"):
        read_all(AudioConfig(path=str(table)))
    table.write_text("table.tsv\tyes\n")
    with pytest.raises(CorpusError, match="not an audio file"):
        read_all(AudioConfig(path=str(table)))
    with pytest.raises(CorpusError, match="There are no audio clips"):
        read_all(AudioConfig(path=str(tmp_path)))
    with pytest.raises(CorpusError):
        read_all(AudioConfig(path=str(tmp_path / "nowhere")))


def test_flac_is_read_like_wav(tmp_path: Path) -> None:
    soundfile: Any = pytest.importorskip("soundfile")
    samples = np.frombuffer(SAMPLES, "<i2")
    soundfile.write(tmp_path / "a.flac", samples, 8000, subtype="PCM_16")
    write_wav(tmp_path / "a.wav", SAMPLES)
    assert load_audio(str(tmp_path / "a.flac")) == load_audio(str(tmp_path / "a.wav"))
    soundfile.write(tmp_path / "b.flac", samples, 8000, subtype="PCM_24")
    with pytest.raises(CorpusError, match="24 bits"):
        load_audio(str(tmp_path / "b.flac"))
    soundfile.write(tmp_path / "c.flac", np.stack((samples, samples), axis=1), 8000, subtype="PCM_16")
    with pytest.raises(CorpusError, match="2 channels"):
        load_audio(str(tmp_path / "c.flac"))
    (tmp_path / "d.flac").write_bytes(b"fLaC no sound")
    with pytest.raises(CorpusError, match="cannot be read"):
        load_audio(str(tmp_path / "d.flac"))
