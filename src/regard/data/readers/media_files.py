"""Files of images and audio clips: their bytes, the label that their folder gives them, and tables that name files."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from regard.base.formatting import pluralize
from regard.config.sources import AudioConfig, ImagesConfig
from regard.data.example import CorpusError, Defects, Location
from regard.data.readers.table import read_rows
from regard.data.readers.text_files import is_url, read_decompressed


def read_whole(path: str, max_bytes: int, hint: str, defects: Defects | None = None) -> bytes:
    """Read the bytes of a file; one of more than `max_bytes` is refused with the advice `hint`."""
    check_size(path, max_bytes, hint)
    content = bytearray()
    for chunk in read_decompressed(path, defects):
        content += chunk
        if len(content) > max_bytes:
            raise _too_large(path, max_bytes, hint)
    return bytes(content)


def check_size(path: str, max_bytes: int, hint: str) -> None:
    """Raise CorpusError if a local file has more than `max_bytes`, before it is read."""
    if not is_url(path) and Path(path).is_file() and Path(path).stat().st_size > max_bytes:
        raise _too_large(path, max_bytes, hint)


def _too_large(path: str, max_bytes: int, hint: str) -> CorpusError:
    return CorpusError(f"The file has more than {max_bytes >> 20} MiB.", location=path, hint=hint)


def find_label(file: str, folder: str) -> str | None:
    """Return the name of the folder below `folder` that holds the file; None if `folder` itself does, or for URLs."""
    parts = Path(file).relative_to(folder).parts if not is_url(folder) and Path(folder).is_dir() else ()
    return parts[0] if len(parts) > 1 else None


def iter_table(source: ImagesConfig | AudioConfig, defects: Defects) -> Iterator[tuple[Location, str, str]]:
    """Yield where each row of a table is, the path of its file, and its label or text."""
    folder = source.path[: len(source.path) - len(PurePosixPath(source.path).name)]
    for number, (location, fields) in enumerate(read_rows(source.path, "tab", defects)):
        if (number == 0 and source.header) or fields in ([], [""]):
            continue
        if len(fields) != 2:
            message = f"The row has {pluralize(len(fields), 'column')}, not 2."
            medium = "an audio clip" if isinstance(source, AudioConfig) else "an image"
            hint = f"Write the path of {medium}, a tab, and its label or text."
            raise CorpusError(message, location=str(location), hint=hint)
        name, text = fields
        yield location, name if is_url(name) or Path(name).is_absolute() else folder + name, text.strip()
