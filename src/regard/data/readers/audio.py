"""Reader for audio clips: a folder of .wav or .flac files per label, or a table of files with their labels or texts.

Audio clips have one channel of 16-bit samples. .wav files are read by the standard library, .flac files by the package
soundfile (extra `audio`). Headers are compared with the file's content before it is used.
"""

import struct
import wave
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import PurePosixPath

from regard.base.extras import import_optional
from regard.base.formatting import pluralize
from regard.base.limits import SAMPLE_RATE, SAMPLES
from regard.config.sources import AudioConfig
from regard.data.example import BYTES_PER_SAMPLE, AudioClip, CorpusError, Defects, Example
from regard.data.readers.media_files import check_size, iter_table, read_folder, read_table, read_whole
from regard.data.readers.text_files import list_files

SUFFIXES = (".wav", ".flac")
FLAC = b"fLaC"  # the first bytes of a .flac file
UNKNOWN = 2**63 - 1  # the number of samples that soundfile states where the header leaves it out
MAX_FILE_BYTES = BYTES_PER_SAMPLE * SAMPLES + (1 << 20)
_CONVERT = "Convert it to one channel of 16 bits: `ffmpeg -i IN -ac 1 -sample_fmt s16 OUT.wav`."
_SHORTEN = "Cut it into shorter audio clips."
_INTACT = "Replace the file with an intact copy, or remove it."


def read_audio(source: AudioConfig, defects: Defects) -> Iterator[Example]:
    """Read the audio clips of a folder or of a table."""
    load = partial(load_audio, defects=defects)
    if is_audio_table(source.path):
        return read_table(source, load, defects)
    files = list_files(source.path, defects)
    if not any(map(is_audio_file, files)):
        hint = f"Give a folder with one folder per label, of files that end in {' or '.join(SUFFIXES)}."
        raise CorpusError("There are no audio clips.", location=source.path, hint=hint)
    return read_folder(files, source.path, is_audio_file, "audio clip", load, defects)


def is_audio_file(path: str) -> bool:
    """Whether the suffix of a path is that of an audio clip."""
    return PurePosixPath(path).suffix.lower() in SUFFIXES


def is_audio_table(path: str) -> bool:
    """Whether a path is a table of audio clips, not an audio clip or a folder."""
    return not is_audio_file(path) and list_files(path, Defects()) == [path]


def list_audio_files(source: AudioConfig, defects: Defects) -> list[str]:
    """List every file of a source: the audio clips, and the table that names them.

    Raises:
        CorpusError: An audio clip is too large; raised before its checksum is computed.
    """
    files = list_files(source.path, defects)
    if is_audio_table(source.path):
        files = [source.path, *dict.fromkeys(file for _, file, _ in iter_table(source, defects))]
    for file in filter(is_audio_file, files):
        check_size(file, MAX_FILE_BYTES, _SHORTEN)
    return files


def load_audio(path: str, defects: Defects | None = None) -> AudioClip:
    """Read an audio file.

    Raises:
        CorpusError: The file is missing, damaged, too large, or is not one channel of 16-bit samples.
    """
    if not is_audio_file(path):
        message = f"This is not an audio file: its name does not end in {' or '.join(SUFFIXES)}."
        raise CorpusError(message, location=path, hint="Convert it: `ffmpeg -i IN -ac 1 -sample_fmt s16 OUT.wav`.")
    return decode_audio(read_whole(path, MAX_FILE_BYTES, _SHORTEN, defects), path)


def decode_audio(content: bytes, location: str, *, max_samples: int = SAMPLES) -> AudioClip:
    """Decode a .wav or .flac file; its name or its first bytes decide which it is.

    Args:
        content: Bytes of the file.
        location: Name of the file in errors.
        max_samples: An audio clip with more samples is an error before decoding.

    Raises:
        CorpusError: The file is damaged, too long, or is not one channel of 16-bit samples.
    """
    is_flac = content.startswith(FLAC) or location.lower().endswith(".flac")
    decode = _decode_flac if is_flac else _decode_wav
    clip = decode(content, location, max_samples)
    if not clip.samples:
        raise CorpusError("The audio clip has no samples.", location=location, hint="Remove the file.")
    return clip


def _decode_wav(content: bytes, location: str, max_samples: int) -> AudioClip:
    try:
        with wave.open(BytesIO(content)) as file:
            parameters = file.getparams()
            _check_format(parameters.nchannels, 8 * parameters.sampwidth, parameters.framerate, location)
            samples = file.readframes(min(parameters.nframes, max_samples + 1))
    except (wave.Error, EOFError, RuntimeError, struct.error, ValueError, OverflowError) as error:
        message = f"This .wav file cannot be read: {str(error) or 'it ends within its header'}."
        raise CorpusError(message, location=location, hint=f"{_CONVERT} If it is damaged, replace it.") from error
    n_samples = len(samples) // BYTES_PER_SAMPLE
    if n_samples > max_samples:
        raise _too_long(parameters.nframes, location, max_samples)
    if n_samples < parameters.nframes:
        message = f"The header declares {parameters.nframes:,} samples, but the file ends after {n_samples:,}."
        raise CorpusError(message, location=location, hint=_INTACT)
    return AudioClip(parameters.framerate, samples)


def _decode_flac(content: bytes, location: str, max_samples: int) -> AudioClip:
    soundfile = import_optional("soundfile", "audio", "Reading .flac")
    try:
        with soundfile.SoundFile(BytesIO(content)) as file:
            if file.frames == UNKNOWN:  # soundfile cannot read it
                message = "The header has no number of samples, as in files written to a pipe."
                raise CorpusError(message, location=location, hint=_CONVERT)
            if file.frames > max_samples:
                raise _too_long(file.frames, location, max_samples)
            bits = {"PCM_S8": 8, "PCM_16": 16, "PCM_24": 24}.get(file.subtype, 0)
            _check_format(file.channels, bits, file.samplerate, location)
            samples = file.read(dtype="int16")
            announced, rate = file.frames, file.samplerate
    except soundfile.SoundFileError as error:
        # The whole message begins with the address of an object in memory.
        message = f"This .flac file cannot be read: {getattr(error, 'error_string', error)}"
        raise CorpusError(message, location=location, hint=_INTACT) from error
    if len(samples) < announced:
        message = f"The header declares {announced:,} samples, but the file ends after {len(samples):,}."
        raise CorpusError(message, location=location, hint=_INTACT)
    return AudioClip(rate, samples.astype("<i2").tobytes())


def _check_format(channels: int, bits: int, rate: int, location: str) -> None:
    if channels != 1:
        raise CorpusError(
            f"The audio clip has {pluralize(channels, 'channel')}, not 1.", location=location, hint=_CONVERT
        )
    if bits != 8 * BYTES_PER_SAMPLE:
        raise CorpusError(f"The audio clip has {bits} bits per sample, not 16.", location=location, hint=_CONVERT)
    if not 0 < rate <= SAMPLE_RATE:
        message = f"The audio clip has {rate:,} samples per second; 1 to {SAMPLE_RATE:,} are supported."
        raise CorpusError(message, location=location, hint=_INTACT)


def _too_long(samples: int, location: str, max_samples: int) -> CorpusError:
    message = f"The audio clip has {samples:,} samples; the limit is {max_samples:,}."
    return CorpusError(message, location=location, hint=_SHORTEN)
