"""Words in lines with their tags in columns, sentences separated by blank lines: CoNLL and CoNLL-U.

The first row says how columns are separated: by tabs if it has one, else by spaces. Every row must have as many
columns as the first. In CoNLL-U the words that stand for several (`1-2`) and the empty ones (`1.1`) are not part of the
row of words that tags belong to: they are left out and counted.
"""

import re
from collections.abc import Iterator

from regard.config.run import Conll
from regard.data.example import CorpusError, Defects, Example, Location
from regard.data.readers.text_files import count_odd_characters, iter_lines, list_files

_MULTIWORD_ID = re.compile(r"[0-9]+-[0-9]+")
_EMPTY_NODE_ID = re.compile(r"[0-9]+\.[0-9]+")
_SPACES = re.compile("[ \t]+")


def read_conll(source: Conll, defects: Defects) -> Iterator[Example]:
    """The sentences of a file, words joined by single spaces; folders are read file by file."""
    for path in list_files(source.path, defects):
        yield from _SentenceReader(path, source, defects).read()


class _SentenceReader:
    """Gathers rows to sentences."""

    def __init__(self, path: str, source: Conll, defects: Defects) -> None:
        self.path = path
        self.source = source
        self.defects = defects
        self.start_line = 1
        self.words: list[str] = []
        self.tags: list[str] = []
        self.has_tabs: bool | None = None  # known from the first row on, as is the width
        self.column_count = 0

    def read(self) -> Iterator[Example]:
        for block in iter_lines(self.path, self.defects):
            for number, line in enumerate(block.lines, block.first_line):
                where = Location(self.path, number)
                if not line.strip(" \t"):
                    if line:
                        self.defects.add("blank line that is not empty", where)
                    yield from self._finish_sentence()
                elif not self._is_comment(line, where):
                    self._add_row(line, where)
        yield from self._finish_sentence()

    def _finish_sentence(self) -> Iterator[Example]:
        if self.words:
            where = Location(self.path, self.start_line)
            tags, languages = tuple(self.tags), self.source.languages
            yield Example(where, " ".join(self.words), None, None, tags, languages)
            self.words, self.tags = [], []

    def _is_comment(self, line: str, where: Location) -> bool:
        """A line with # in front: surely where words have numbers, else only if it cannot be a row ("#1 O" is one)."""
        if not line.startswith("#"):
            return False
        if self.source.word > 1 or ("\t" not in line and self.has_tabs is not False):
            return True
        if not self.has_tabs and "\t" not in line:
            self.defects.add("line with # in front, read as a word", where)
        return False

    def _add_row(self, line: str, where: Location) -> None:
        if self.has_tabs is None:
            self.has_tabs = "\t" in line
        columns = line.split("\t") if self.has_tabs else _SPACES.split(line.strip(" \t"))
        self.column_count = self.column_count or len(columns)
        if len(columns) != self.column_count or self.column_count < max(self.source.word, self.source.tag):
            raise CorpusError(
                f"The row has {len(columns)} columns, the first one has {self.column_count}; "
                f"words are read from column {self.source.word}, tags from {self.source.tag}.",
                where=str(where),
                fix="Look for a missing tab, or set `word` and `tag` to columns that exist.",
            )
        if self.source.word > 1 and _MULTIWORD_ID.fullmatch(columns[0]):
            self.defects.add("multiword token (1-2) left out, its words are read", where)
        elif self.source.word > 1 and _EMPTY_NODE_ID.fullmatch(columns[0]):
            self.defects.add("empty node (1.1) left out", where)
        else:
            self._add_word(columns[self.source.word - 1], columns[self.source.tag - 1], where)

    def _add_word(self, word: str, tag: str, where: Location) -> None:
        if not word or not tag:
            missing_column = "word" if not word else "tag"
            raise CorpusError(
                f"The {missing_column} is empty.", where=str(where), fix="Give every row both, or remove it."
            )
        if " " in word:  # a space would make two words of it, with one tag
            self.defects.add("space inside a word, made a no-break space", where)
            word = word.replace(" ", "\u00a0")
        count_odd_characters(word, where, self.defects)
        if not self.words:
            self.start_line = where.line
        self.words.append(word)
        self.tags.append(tag)
