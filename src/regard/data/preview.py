"""Preview a corpus source before it is read: its source and target columns, and its first examples."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from regard.base.formatting import escape_control_characters
from regard.config.sources import (
    AnySourceConfig,
    AudioConfig,
    DocumentsConfig,
    ImagesConfig,
    JsonlConfig,
    LinesConfig,
    ParquetConfig,
    TableConfig,
)
from regard.data.example import CorpusError, Defects, Example
from regard.data.readers import read

_EXAMPLES = 3
_CHARACTERS = 60  # of a text that are shown
_ONE_SIDE = (
    "text without translations, for a language model; for a translator add the other side: a second file, whose line n "
    "translates line n of the first, or a second column"
)


def preview_source(source: AnySourceConfig) -> Iterator[str]:
    r"""Yield a line about the files, columns and languages of a source of text, and a line for each example.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.tsv")
    ...     characters = path.write_text("7\tOne.\tEins.\n8\tTwo.\tZwei.\n")
    ...     [line.removeprefix(f"{path}: ") for line in preview_source(TableConfig(path=str(path), source=2, target=3))]
    ['column 2 is the source, column 3 is the target', '  "One." -> "Eins."', '  "Two." -> "Zwei."']
    """
    if isinstance(source, ImagesConfig | AudioConfig):
        return
    examples: list[Example] = []
    if not isinstance(source, DocumentsConfig):  # an example may be a whole book
        with suppress(CorpusError):  # the pass over the corpus reports it
            examples.extend(islice(read(source, Defects()), _EXAMPLES))
    languages = f" ({' to '.join(source.languages)})" if source.languages else ""
    yield f"{' and '.join(source.paths)}: {_describe(source, examples)}{languages}"
    if isinstance(source, DocumentsConfig):
        if source.separator is None:
            yield "  each file is one document; if lines separate documents, set `separator` in a run file"
        else:
            kind = _quote(source.separator) if source.separator.strip() else "blank"
            yield f"{source.path}: {kind} lines separate documents"
    for example in examples:
        outputs = [example.target, example.label, " ".join(example.tags) if example.tags else None]
        yield " -> ".join([f"  {_quote(example.source)}", *(_quote(text) for text in outputs if text is not None)])


def _describe(source: AnySourceConfig, examples: list[Example]) -> str:
    if isinstance(source, TableConfig | JsonlConfig | ParquetConfig):
        unit = "column" if isinstance(source, TableConfig) else "field"
        roles = {"source": source.source, "target": source.target, "label": source.label}
        columns = [f"{unit} {name} is the {role}" for role, name in roles.items() if name is not None]
        if len(columns) > 1:
            return ", ".join(columns)
    if isinstance(source, LinesConfig) and source.target is not None:
        return "source and target"
    is_plain = all(item is None for example in examples for item in (example.target, example.label, example.tags))
    return _ONE_SIDE if is_plain and (examples or isinstance(source, DocumentsConfig)) else f"read as {source.kind}"


def _quote(text: str) -> str:
    return f'"{escape_control_characters(text[:_CHARACTERS])}{"…" if len(text) > _CHARACTERS else ""}"'
