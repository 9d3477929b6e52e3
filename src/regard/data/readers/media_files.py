"""Files of images and sounds: their bytes, and the label that their folder gives them."""

from pathlib import Path

from regard.data.example import CorpusError, Defects
from regard.data.readers.text_files import is_url, read_decompressed


def read_whole(path: str, max_bytes: int, fix: str, defects: Defects | None = None) -> bytes:
    """Read the bytes of a file; one of more than `max_bytes` is refused with the advice `fix`."""
    check_size(path, max_bytes, fix)
    content = bytearray()
    for chunk in read_decompressed(path, defects):
        content += chunk
        if len(content) > max_bytes:
            raise _too_large(path, max_bytes, fix)
    return bytes(content)


def check_size(path: str, max_bytes: int, fix: str) -> None:
    """Raise CorpusError if a local file has more than `max_bytes`, before it is read."""
    if not is_url(path) and Path(path).is_file() and Path(path).stat().st_size > max_bytes:
        raise _too_large(path, max_bytes, fix)


def _too_large(path: str, max_bytes: int, fix: str) -> CorpusError:
    return CorpusError(f"The file has more than {max_bytes >> 20} MiB.", where=path, fix=fix)


def find_label(file: str, folder: str) -> str | None:
    """Return the name of the folder below `folder` that holds the file; None if `folder` itself does, or for URLs."""
    parts = Path(file).relative_to(folder).parts if not is_url(folder) and Path(folder).is_dir() else ()
    return parts[0] if len(parts) > 1 else None
