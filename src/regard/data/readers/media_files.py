"""Files of images and audio clips: their bytes, the label that their folder gives them, and tables that name files."""

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from regard.base.formatting import pluralize
from regard.config.sources import AudioConfig, ImagesConfig
from regard.data.example import AudioClip, CorpusError, Defects, Example, Image, Location
from regard.data.readers.table import read_rows
from regard.data.readers.text_files import is_url, read_decompressed

Load = Callable[[str], Image | AudioClip]  # from the path of a file


def read_folder(
    files: list[str], folder: str, is_medium: Callable[[str], bool], noun: str, load: Load, defects: Defects
) -> Iterator[Example]:
    """Read the files of a folder that are images or audio clips; their subfolders are their labels."""
    for file in files:
        if is_medium(file):
            yield _make_example(Location(file, 1), load(file), label=find_label(file, folder))
        else:
            defects.add(f"file that is no {noun} left out", Location(file, 1))


def read_table(source: ImagesConfig | AudioConfig, load: Load, defects: Defects) -> Iterator[Example]:
    """Read the files that a table names, with their labels or texts."""
    for location, file, text in iter_table(source, defects):
        try:
            medium = load(file)
        except CorpusError as error:
            message = f"{error.message} ({location} names it.)"
            raise CorpusError(message, location=error.location, hint=error.hint) from error
        is_text = source.second == "text"
        yield _make_example(location, medium, label=None if is_text else text, target=text if is_text else None)


def _make_example(
    location: Location, medium: Image | AudioClip, *, label: str | None, target: str | None = None
) -> Example:
    if isinstance(medium, Image):
        return Example(location, "", target, label, image=medium)
    return Example(location, "", target, label, audio=medium)


def read_whole(path: str, max_bytes: int, hint: str, defects: Defects | None = None) -> bytes:
    """Read the bytes of a file; raise an error with `hint` if it has more than `max_bytes`."""
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
