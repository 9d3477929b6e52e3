r"""Open, decompress and split corpus files: a path or URL in, lines out.

A line ends only at the byte `\n`: U+2028, U+0085, vertical tabs, form feeds and lone carriage returns are
text, so that line n of one file stays aligned with line n of another. `Defects` counts every irregularity:

- one `\r` directly before a `\n` is part of the line end (Windows writes it) and is removed; any other is text. It
  never splits or joins lines, so alignment holds, and texts do not end in an invisible character;
- a byte order mark at the start of a file is removed; any other is text;
- a last line without `\n` is a line.

Invalid UTF-8 and truncated compressed files raise a CorpusError that names the line.
"""

import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple, Protocol

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.files import MANIFEST
from regard.base.remote import resolve_url
from regard.data.example import CorpusError, Defects, Location

READ_BYTES = 1 << 16  # bytes read at a time; larger chunks leave the processor's cache and split more slowly
DECOMPRESS_BYTES = 1 << 11  # compressed bytes passed to the decompressor at a time
# A file that decompresses to more than both limits is a decompression bomb, not text.
MAX_EXPANSION = 300  # decompressed bytes per compressed byte
MIN_EXPANDED_BYTES = 1 << 26
MAX_LINE_BYTES = 1 << 28  # bytes of one line or document; a longer one is not text, or the separator is wrong
COMPRESSED_SUFFIXES = (".gz", ".xz", ".zst")
BOM = "\ufeff"
CRLF = "CRLF line end, CR removed"

# Characters at which other tools split lines, or which they hide or reject. They stay in the text and are counted.
ODD_CHARACTERS = {
    "\n": "line break inside a text",
    "\r": "carriage return inside a text",
    "\0": "NUL character",
    "\x0b": "vertical tab",
    "\x0c": "form feed",
    "\x1c": "file separator U+001C",
    "\x1d": "group separator U+001D",
    "\x1e": "record separator U+001E",
    "\x85": "next line U+0085",
    "\u2028": "line separator U+2028",
    "\u2029": "paragraph separator U+2029",
    "\ufeff": "byte order mark inside a text",
    **dict.fromkeys("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", "bidirectional control"),
}
_ODD_PATTERN = re.compile(f"[{''.join(ODD_CHARACTERS)}]")
_ODD_BYTES = [character.encode() for character in ODD_CHARACTERS if character.isascii() and character != "\n"]
# The others in UTF-8, found by their first byte: searching for one byte is several times as fast as for a sequence.
_ODD_MULTIBYTE = [
    re.compile(rb"\xc2(?=\x85)"),
    re.compile(rb"\xe2(?=\x80[\xa8-\xae]|\x81[\xa6-\xa9])"),
    re.compile(rb"\xef(?=\xbb\xbf)"),
]

QUARANTINE_FILE = "quarantine.jsonl"  # the lines that `regard check --write` removed from a corpus


class TruncatedError(CorpusError):
    """A file that cannot be read further. The caller adds the line; everything before it is intact."""


class Block(NamedTuple):
    """Consecutive lines of a file, without line ends."""

    first_line: int  # its line number, from 1
    lines: list[str]
    has_odd_characters: bool  # whether any line holds one of ODD_CHARACTERS


def is_url(path: str) -> bool:
    """Whether fsspec opens the path: "s3://bucket/train.en.gz" is a URL, "train.en.gz" is not."""
    return "://" in path


def list_files(path: str, defects: Defects) -> list[str]:
    """List the file itself, or all files of a folder and its subfolders, sorted by name.

    Hidden files are left out, and so are the manifest and quarantine file that `regard check --write` writes next to a
    cleaned corpus; `defects` counts them.
    """
    folder_files = _list_folder(path, defects)
    if folder_files is None:
        return [path]
    paths = []
    for name, file in sorted(folder_files.items()):
        if any(part.startswith(".") for part in name):
            defects.add("hidden file left out", Location(file, 1))
        elif name[-1] in (MANIFEST, QUARANTINE_FILE) and (*name[:-1], MANIFEST) in folder_files:
            defects.add("manifest or quarantine left out", Location(file, 1))
        else:
            paths.append(file)
    if not paths:
        raise CorpusError("The folder has no files to read.", location=path, hint="Check the path.")
    return paths


def strip_compression(path: str) -> PurePosixPath:
    """Remove the compression suffix of a path, and the query of a URL.

    >>> strip_compression("corpus/train.en.gz").suffix, strip_compression("https://some.location/train.tmx.xz?version=2").stem
    ('.en', 'train')
    """
    name = PurePosixPath(path.partition("?")[0] if is_url(path) else Path(path).as_posix())
    return name.with_suffix("") if name.suffix.lower() in COMPRESSED_SUFFIXES else name


@contextmanager
def open_binary(path: str) -> Iterator[BinaryIO]:
    """Open a file as stored, without decompression; I/O errors become a CorpusError."""
    with _os_errors(path), _open(path) as file:
        yield file


def read_decompressed(path: str, defects: Defects | None = None) -> Iterator[bytes]:
    """Read the bytes of a file in chunks, decompressed if its name ends in .gz, .xz or .zst."""
    compression = _detect_compression(path)
    with open_binary(path) as file:
        state_before = _file_state(path, file)
        chunks = iter(partial(read_chunk, file, path), b"")
        if defects is not None:
            chunks = defects.hash_chunks(chunks, path)
        yield from _decompress(chunks, path, compression) if compression else chunks
        if _file_state(path, file) != state_before:
            raise CorpusError("The file changed while it was read.", location=path, hint="Read it when it is complete.")


def read_chunk(file: BinaryIO, path: str) -> bytes:
    """Read the next bytes of an open file; empty at its end."""
    with _remote_errors(path):
        return file.read(READ_BYTES)


def iter_lines(path: str, defects: Defects, *, keep_returns: bool = False) -> Iterator[Block]:
    r"""Read the lines of a file in blocks.

    Args:
        path: A file or URL.
        defects: Counts byte order marks, CRLF line ends, a missing last newline and an empty file.
        keep_returns: Keep a `\r` before a `\n`, which CSV may have quoted.

    Raises:
        CorpusError: The file is missing, truncated, damaged or not UTF-8.
    """
    number = 1
    try:
        for chunk in iter_chunks(path, defects):
            text, decode_error = _decode(chunk, path, number)
            if number == 1 and text.startswith(BOM):
                text = text.removeprefix(BOM)
                defects.add("byte order mark at the start, removed", Location(path, 1))
            if not keep_returns and b"\r" in chunk and "\r\n" in text:
                crlf = text.index("\r\n")
                location = Location(path, number + text.count("\n", 0, crlf))
                defects.add(CRLF, location, count=text.count("\r\n"))
                text = text.replace("\r\n", "\n")
            lines = text.split("\n")
            if not lines[-1]:
                lines.pop()  # there is no text after the last \n
            elif decode_error is None:
                defects.add("missing last newline", Location(path, number + len(lines) - 1))
            if lines:
                yield Block(number, lines, _has_odd_characters(chunk, text))
            if decode_error is not None:
                raise decode_error
            number += len(lines)
    except TruncatedError as error:
        message = f"{error.message} The last complete line is {number - 1}."
        raise CorpusError(message, location=str(Location(path, number)), hint=error.hint) from error
    if number == 1:
        defects.add("empty file", Location(path, 1))


def count_text_defects(texts: Iterable[str | None], location: Location, defects: Defects) -> None:
    """Count the empty texts of an example and the odd characters of the others; None means a missing text."""
    for text in texts:
        if text:
            count_odd_characters(text, location, defects)
        elif text is not None:
            defects.add("empty text", location)


def count_odd_characters(text: str, location: Location, defects: Defects) -> None:
    r"""Count the odd characters of a text, each kind once.

    >>> defects = Defects()
    >>> count_odd_characters("one\u2028two\u2028three", Location("a.en", 3), defects)
    >>> print(defects)
    line separator U+2028: 1, first at a.en:3
    """
    if not text.isprintable():  # a fast test that almost every sentence passes
        for kind in dict.fromkeys(ODD_CHARACTERS[character] for character in _ODD_PATTERN.findall(text)):
            defects.add(kind, location)


def _has_odd_characters(chunk: bytes, text: str) -> bool:
    if any(byte in chunk for byte in _ODD_BYTES):
        return True
    return not text.isascii() and any(pattern.search(chunk) for pattern in _ODD_MULTIBYTE)


def iter_chunks(path: str, defects: Defects | None = None) -> Iterator[bytes]:
    """Read complete lines, many per chunk; the last chunk may lack its newline."""
    pending: list[bytes] = []
    size = 0
    for chunk in read_decompressed(path, defects):
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join((*pending, chunk[:end]))
            pending, size = [], 0
        pending.append(chunk[end:])
        size += len(chunk) - end
        if size > MAX_LINE_BYTES:
            raise TruncatedError(
                f"A line is longer than {MAX_LINE_BYTES >> 20} MiB.",
                location=path,
                hint="Check that it is a text file.",
            )
    if size:
        yield b"".join(pending)


def _decode(chunk: bytes, path: str, number: int) -> tuple[str, CorpusError | None]:
    """Decode a chunk; on invalid UTF-8, return the lines before it and the error to raise."""
    try:
        return chunk.decode(), None
    except UnicodeDecodeError as error:
        start = chunk.rfind(b"\n", 0, error.start) + 1
        line = number + chunk.count(b"\n", 0, start)
        byte = f"0x{chunk[error.start]:02x}, byte {error.start - start + 1} of the line"
        if line == 1 and chunk[:2] in (b"\xff\xfe", b"\xfe\xff"):
            hint = "The file looks like UTF-16; convert it: `iconv -f UTF-16 -t UTF-8`."
        elif b"\0" in chunk:
            hint = "This is not a text file: it contains NUL bytes. Export a document or spreadsheet as text first."
        else:
            hint = "Convert the file from its encoding to UTF-8, e.g. `iconv -f ISO-8859-1 -t UTF-8`."
        decode_error = CorpusError(f"Not UTF-8: {byte}.", location=str(Location(path, line)), hint=hint)
        return chunk[:start].decode(), decode_error


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class _Compression(NamedTuple):
    make_decompressor: Callable[[], _Decompressor]
    error_type: type[Exception]


def _detect_compression(path: str) -> _Compression | None:
    """The compression of a file, by its suffix."""
    match PurePosixPath(path.partition("?")[0] if is_url(path) else path).suffix.lower():
        case ".gz":
            return _Compression(partial(zlib.decompressobj, wbits=31), zlib.error)
        case ".xz":
            return _Compression(lzma.LZMADecompressor, lzma.LZMAError)
        case ".zst":
            zstandard = import_optional("zstandard", "formats", "Decompressing .zst")
            return _Compression(zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError)
    return None


def _decompress(chunks: Iterator[bytes], path: str, compression: _Compression) -> Iterator[bytes]:
    """Decompress one or more concatenated streams; the last must be complete."""
    decompressor, bytes_in, bytes_out = compression.make_decompressor(), 0, 0
    for chunk in _split_chunks(chunks):
        bytes_in += len(chunk)
        while chunk:
            if decompressor.eof:
                chunk = chunk.lstrip(b"\0")  # padding between streams
                if not chunk:
                    break
                decompressor = compression.make_decompressor()
            try:
                data = decompressor.decompress(chunk)
            except compression.error_type as error:
                raise TruncatedError(
                    f"The compressed file is damaged: {error}.", location=path, hint="Replace it with an intact copy."
                ) from error
            bytes_out += len(data)
            if bytes_out > MIN_EXPANDED_BYTES and bytes_out > MAX_EXPANSION * bytes_in:
                message = f"The file grows more than {MAX_EXPANSION}-fold when decompressed: a decompression bomb?"
                raise TruncatedError(message, location=path, hint="Decompress it by hand and inspect its content.")
            yield data
            chunk = decompressor.unused_data
    if not decompressor.eof:
        raise TruncatedError(
            "The compressed file is truncated.", location=path, hint="Replace it with a complete copy."
        )


def _split_chunks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Split chunks for the decompressor: it expands each part at once, and 4 bytes can expand to 128 KiB."""
    for chunk in chunks:
        yield from (chunk[start : start + DECOMPRESS_BYTES] for start in range(0, len(chunk), DECOMPRESS_BYTES))


def _file_state(path: str, file: BinaryIO) -> tuple[int, int] | None:
    """The size and modification time of a local file; None for a URL."""
    if is_url(path):
        return None
    stat = os.fstat(file.fileno())
    return stat.st_size, stat.st_mtime_ns


def _list_folder(path: str, defects: Defects) -> dict[tuple[str, ...], str] | None:
    """The files of a folder by the parts of their relative paths; None if the path is not a folder."""
    if not is_url(path):
        folder = Path(path)
        if not folder.is_dir():
            return None
        folder_files: dict[tuple[str, ...], str] = {}
        for file in folder.rglob("*"):
            if file.is_file():
                folder_files[file.relative_to(folder).parts] = str(file)
            elif file.is_symlink():  # to a folder, which may form a cycle, or to nothing
                defects.add("link left out", Location(str(file), 1))
        return folder_files
    with _os_errors(path), _remote_errors(path):
        filesystem, root = _resolve_url(path)
        if not filesystem.isdir(root):
            return None
        names = [PurePosixPath(name) for name in filesystem.find(root)]
        return {name.relative_to(root).parts: filesystem.unstrip_protocol(str(name)) for name in names}


def _open(path: str) -> Any:
    if not is_url(path):
        return Path(path).open("rb")
    with _remote_errors(path):
        filesystem, name = _resolve_url(path)
        return filesystem.open(name, "rb")


def _resolve_url(path: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path inside it."""
    try:
        return resolve_url(path)
    except RegardError as error:
        raise CorpusError(error.message, location=error.location, hint=error.hint) from error


@contextmanager
def _os_errors(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        cause = error.__cause__  # for a URL, "not found" may also mean no permission or no connection
        if is_url(path) and cause is not None and not isinstance(cause, FileNotFoundError):
            raise CorpusError(
                f"The URL cannot be opened: {cause}.", location=path, hint="Check URL and access."
            ) from error
        raise CorpusError("There is no such file.", location=path, hint="Check the path.") from error
    except OSError as error:
        raise CorpusError(f"The file cannot be read: {error}.", location=path) from error


@contextmanager
def _remote_errors(path: str) -> Iterator[None]:
    """Turn the errors of remote file systems, which may be of any type, into a CorpusError."""
    try:
        yield
    except (OSError, MemoryError, RegardError):
        raise
    except Exception as error:
        if not is_url(path):
            raise
        message = f"The URL cannot be read: {error}."
        raise CorpusError(message, location=path, hint="Try again, or download the file first.") from error
