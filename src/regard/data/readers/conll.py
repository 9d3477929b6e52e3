"""Reader for CoNLL and CoNLL-U: one word per line with tags in columns, blank lines between sentences.

The first row sets the column separator: tabs if it has one, otherwise spaces. Every row must have as many columns as
the first. CoNLL-U's multiword tokens (`1-2`) and empty nodes (`1.1`) have no tag, so the reader skips and counts them.
"""

import re
from collections.abc import Iterator

from regard.base.formatting import pluralize
from regard.config.sources import ConllConfig
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import count_odd_characters, iter_lines, list_files

_RANGE_ID = re.compile(r"[0-9]+-[0-9]+")
_EMPTY_NODE_ID = re.compile(r"[0-9]+\.[0-9]+")
_SPACES = re.compile("[ \t]+")


def read_conll(source: ConllConfig, defects: Defects) -> Iterator[Example]:
    """Read the sentences of a file or of every file in a folder; single spaces join the words."""
    for path in list_files(source.path, defects):
        yield from _SentenceReader(path, source, defects).read()


class _SentenceReader:
    """Groups the rows of one file into sentences."""

    def __init__(self, path: str, source: ConllConfig, defects: Defects) -> None:
        self.path = path
        self.source = source
        self.defects = defects
        self.start_line = 1
        self.words: list[str] = []
        self.tags: list[str] = []
        self.has_tabs: bool | None = None  # set by the first row, as is the column count
        self.column_count = 0

    def read(self) -> Iterator[Example]:
        for block in iter_lines(self.path, self.defects):
            for number, line in enumerate(block.lines, block.first_line):
                location = Location(self.path, number)
                if not line.strip(" \t"):
                    if line:
                        self.defects.add("blank line that is not empty", location)
                    yield from self._finish_sentence()
                elif not self._is_comment(line, location):
                    self._add_row(line, location)
        yield from self._finish_sentence()

    def _finish_sentence(self) -> Iterator[Example]:
        if self.words:
            location = Location(self.path, self.start_line)
            tags, languages = tuple(self.tags), self.source.languages
            yield Example(location, " ".join(self.words), None, None, tags, languages)
            self.words, self.tags = [], []

    def _is_comment(self, line: str, location: Location) -> bool:
        """Whether the line is a comment.

        Where rows start with a word number, every line with a leading # is one. Otherwise only a line that cannot be a
        row is one: "#1 O" is a row.
        """
        if not line.startswith("#"):
            return False
        if self.source.word > 1 or ("\t" not in line and self.has_tabs is not False):
            return True
        if not self.has_tabs and "\t" not in line:
            self.defects.add("line with a leading #, read as a word", location)
        return False

    def _add_row(self, line: str, location: Location) -> None:
        if self.has_tabs is None:
            self.has_tabs = "\t" in line
        columns = line.split("\t") if self.has_tabs else _SPACES.split(line.strip(" \t"))
        self.column_count = self.column_count or len(columns)
        if len(columns) != self.column_count or self.column_count < max(self.source.word, self.source.tag):
            raise CorpusError(
                f"The row has {pluralize(len(columns), 'column')}, the first row has {self.column_count}; "
                f"words are in column {self.source.word}, tags in column {self.source.tag}.",
                location=str(location),
                hint="Look for a missing tab, or set `word` and `tag` to existing columns.",
            )
        if self.source.word > 1 and _RANGE_ID.fullmatch(columns[0]):
            self.defects.add("multiword token (1-2) left out, its words kept", location)
        elif self.source.word > 1 and _EMPTY_NODE_ID.fullmatch(columns[0]):
            self.defects.add("empty node (1.1) left out", location)
        else:
            self._append_row(columns[self.source.word - 1], columns[self.source.tag - 1], location)

    def _append_row(self, word: str, tag: str, location: Location) -> None:
        if not word or not tag:
            missing_column = "word" if not word else "tag"
            raise CorpusError(
                f"The {missing_column} is empty.",
                location=str(location),
                hint="Add it, or remove the row.",
            )
        if " " in word:  # a space would split it into two words with one tag
            self.defects.add("space inside a word, replaced by a no-break space", location)
            word = word.replace(" ", "\u00a0")
        count_odd_characters(word, location, self.defects)
        if not self.words:
            self.start_line = location.line
        self.words.append(word)
        self.tags.append(tag)
