"""Suggested translations: one SQLite database that the server appends to and `regard tune --suggestions` reads.

The table has LibreTranslate's columns (q, s, source, target), so its databases can be read, too. In WAL mode readers
do not block the writer, and with `synchronous=FULL` a suggestion is on disk when `add` returns.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from regard.base.errors import RegardError

HEADER = b"SQLite format 3\0"
BUSY_SECONDS = 10.0
CREATE = """CREATE TABLE IF NOT EXISTS suggestions (
    q TEXT NOT NULL, s TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL,
    time INTEGER NOT NULL, client TEXT NOT NULL, UNIQUE (q, s, source, target))"""
INSERT = "INSERT OR IGNORE INTO suggestions (q, s, source, target, time, client) VALUES (?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True)
class Suggestion:
    """A text, a better translation of it, and their languages ("und" if unknown)."""

    text: str
    translation: str
    source: str
    target: str


class SuggestionStore:
    """The only writer of a database.

    Args:
        path: The database; created if it does not exist.
        max_rows: Number of suggestions that it may hold.

    Raises:
        RegardError: The file is not such a database, or cannot be written.
    """

    def __init__(self, path: Path, max_rows: int) -> None:
        self._path, self._max_rows = path, max_rows
        with _explain(path):
            self._connection = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            with self._connection:
                self._connection.execute(CREATE)
                self._connection.execute("DELETE FROM suggestions WHERE 0")  # fails now if the file is read-only
            columns = {row[1] for row in self._connection.execute("PRAGMA table_info(suggestions)")}
        if not {"time", "client"} <= columns:
            hint = "Give the server a new file; `regard tune --suggestions` reads both."
            raise RegardError("This database was written by another program.", location=str(path), hint=hint)

    def add(self, suggestion: Suggestion, client: str = "") -> bool:
        """Store a suggestion, unless it is already stored; return False if the database is full.

        Raises:
            RegardError: It cannot be stored, for example because the disk is full.
        """
        values = (suggestion.text, suggestion.translation, suggestion.source, suggestion.target)
        with _explain(self._path), self._connection:  # commits, or rolls back after an exception
            (rows,) = self._connection.execute("SELECT count(*) FROM suggestions").fetchone()
            if rows >= self._max_rows:
                return False
            self._connection.execute(INSERT, (*values, int(time.time()), client))
        return True

    def close(self) -> None:
        """Close the database; its log (FILE-wal) is merged into it."""
        self._connection.close()


def is_database(path: Path) -> bool:
    """Return whether a file is an SQLite database."""
    with path.open("rb") as file:
        return file.read(len(HEADER)) == HEADER


def read_suggestions(path: Path) -> list[Suggestion]:
    """Read a database in the order of its suggestions, also while a server writes to it.

    Raises:
        RegardError: The file cannot be read, or has no suggestions.
    """
    with (
        _explain(path),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as connection,
    ):
        rows = connection.execute("SELECT q, s, source, target FROM suggestions ORDER BY rowid").fetchall()
    if not rows:
        raise RegardError("There are no suggestions in this file.", location=str(path))
    return [Suggestion(*map(str, row)) for row in rows]


@contextmanager
def _explain(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        hint = "Give a database that `regard serve --suggestions FILE` wrote, and check permissions and free space."
        raise RegardError(
            f"The suggestions cannot be read or stored: {error}.", location=str(path), hint=hint
        ) from error
