"""The database of suggestions: what is written can be read, also while it is written."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.data.suggestions import Suggestion, SuggestionStore, is_database, read_suggestions

DOGS = Suggestion("Two dogs.", "Zwei Hunde.", "en", "de")
HOSTILE = Suggestion("'); DROP TABLE suggestions; --\0\n\u202e", "<script>\t😀", "en", "de")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a ?#%.db"  # special characters of a URI


def test_suggestions_are_read_in_order_while_the_writer_is_open(path: Path) -> None:
    with closing(SuggestionStore(path, 10)) as store:
        for suggestion in (DOGS, HOSTILE, DOGS):
            assert store.add(suggestion, "alice")
        assert read_suggestions(path) == [DOGS, HOSTILE]
    assert is_database(path)
    assert read_suggestions(path) == [DOGS, HOSTILE]
    with closing(SuggestionStore(path, 10)) as store:
        store.add(Suggestion("Two dogs.", "Zwei Hunde!", "en", "de"))
    assert [suggestion.translation for suggestion in read_suggestions(path)] == [
        "Zwei Hunde.",
        "<script>\t😀",
        "Zwei Hunde!",
    ]


def test_every_commit_is_flushed_to_disk(path: Path) -> None:
    with closing(SuggestionStore(path, 10)) as store:
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
        store.add(DOGS)
        assert not store._connection.in_transaction


def test_full_database_refuses_new_suggestions(path: Path) -> None:
    with closing(SuggestionStore(path, 1)) as store:
        assert store.add(DOGS)
        assert not store.add(HOSTILE)
        assert read_suggestions(path) == [DOGS]


def test_database_of_libretranslate_is_read_but_not_written(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            'CREATE TABLE suggestions ("q" TEXT NOT NULL, "s" TEXT NOT NULL, "source" TEXT NOT NULL, '
            '"target" TEXT NOT NULL)'
        )
        connection.execute("INSERT INTO suggestions VALUES (?, ?, ?, ?)", ("Two dogs.", "Zwei Hunde.", "en", "de"))
    assert read_suggestions(path) == [DOGS]
    with pytest.raises(RegardError, match="another program"):
        SuggestionStore(path, 10)


def test_unusable_files_are_reported(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("Two dogs.\tZwei Hunde.\n" * 100)
    assert not is_database(text)
    SuggestionStore(tmp_path / "empty.db", 1).close()
    for path, message in (
        (text, "not a database"),
        (tmp_path / "none.db", "unable to open"),
        (tmp_path, "cannot be read"),
    ):
        with pytest.raises(RegardError, match=message):
            read_suggestions(path)
    with pytest.raises(RegardError, match="no suggestions"):
        read_suggestions(tmp_path / "empty.db")
    for path in (text, tmp_path, tmp_path / "no" / "folder.db"):
        with pytest.raises(RegardError):
            SuggestionStore(path, 1)
