"""Reader for running text: each file is a document, or separator lines divide it into documents.

The reader holds one document in memory.
"""

from collections.abc import Iterator

from regard.config.sources import DocumentsConfig
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import MAX_LINE_BYTES, count_odd_characters, iter_lines, list_files


def read_documents(source: DocumentsConfig, defects: Defects) -> Iterator[Example]:
    """Read the documents of a file or folder; line breaks join the lines, without one at the end."""
    for path in list_files(source.path, defects):
        for location, text in _read_file(path, source.separator, defects):
            yield Example(location, text, languages=source.languages)


def _read_file(path: str, separator: str | None, defects: Defects) -> Iterator[tuple[Location, str]]:
    start = number = 1
    size = 0
    lines: list[str] = []
    for block in iter_lines(path, defects):
        for number, line in enumerate(block.lines, block.first_line):
            if block.has_odd_characters:
                count_odd_characters(line, Location(path, number), defects)
            if line == separator:
                if lines:
                    yield Location(path, start), "\n".join(lines)
                elif number > 1:  # a separator in the first line ends no document
                    defects.add("empty document left out", Location(path, number))
                start, size, lines = number + 1, 0, []
                continue
            lines.append(line)
            size += len(line)
            if size > MAX_LINE_BYTES:
                message = f"The document is longer than {MAX_LINE_BYTES >> 20} MiB."
                hint = "Set `separator` to the line that separates documents."
                raise CorpusError(message, location=str(Location(path, start)), hint=hint)
    if lines:
        yield Location(path, start), "\n".join(lines)
