import struct
from pathlib import Path

import polib
import pytest

from regard.config.sources import GettextConfig
from tests.data.readers.formats import encode_mo, encode_po, read_all, read_until_error, to_rows

ENTRIES = r"""
# of a translator
#: main.c:12
msgid "one"
msgstr "eins"

#, fuzzy
msgid "two"
msgstr "drei?"

msgid "four"
msgstr ""

msgctxt "a number"
msgid ""
"five\n"
"\tand \"six\""
msgstr "fünf\nund \\sechs"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

#~ msgid "seven"
#~ msgstr "sieben"
"""


def write_po(tmp_path: Path, entries: str) -> str:
    path = tmp_path / "a.po"
    path.write_bytes(encode_po([]) + entries.encode())
    return str(path)


def test_entries_of_a_catalogue(tmp_path: Path) -> None:
    path = write_po(tmp_path, ENTRIES)
    examples, defects = read_all(GettextConfig(path=path, languages=("en", "de")))
    assert to_rows(examples) == [
        ("one", "eins"),
        ('five\n\tand "six"', "fünf\nund \\sechs"),
        ("%d file", "%d Datei"),
        ("%d files", "%d Dateien"),
    ]
    assert examples[0].languages == ("en", "de")
    lines = Path(path).read_text().split("\n")
    assert {kind: lines[location.line - 1] for kind, location in defects.first_location.items()} == {
        "fuzzy entry left out": "#, fuzzy",
        "untranslated entry left out": 'msgid "four"',
        "line break inside a text": 'msgctxt "a number"',
        "obsolete entry left out": '#~ msgid "seven"',
    }


@pytest.mark.parametrize(
    ("forms", "pairs"),
    [
        (["%d ファイル"], [("%d files", "%d ファイル")]),
        (
            ["%d plik", "%d pliki", "%d plików"],
            [("%d file", "%d plik"), ("%d files", "%d pliki"), ("%d files", "%d plików")],
        ),
    ],
)
def test_plurals_of_languages_with_one_and_three_forms(
    forms: list[str], pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    entry = 'msgid "%d file"\nmsgid_plural "%d files"\n'
    entry += "".join(f'msgstr[{index}] "{form}"\n' for index, form in enumerate(forms))
    path = write_po(tmp_path, entry)
    assert to_rows(read_all(GettextConfig(path=path))[0]) == pairs
    binary = tmp_path / "a.mo"
    polib.pofile(path).save_as_mofile(str(binary))
    assert to_rows(read_all(GettextConfig(path=str(binary)))[0]) == pairs


def test_mo_files_written_by_polib(tmp_path: Path) -> None:
    path = write_po(tmp_path, ENTRIES)
    binary = tmp_path / "a.mo"
    polib.pofile(path).save_as_mofile(str(binary))
    assert sorted(to_rows(read_all(GettextConfig(path=str(binary)))[0])) == sorted(
        to_rows(read_all(GettextConfig(path=path))[0])
    )


def test_big_endian_and_other_charsets(tmp_path: Path) -> None:
    content = encode_mo([("tea", "thé")]).replace(b"UTF-8", b"latin").replace("é".encode(), b"\xe9\0")
    path = tmp_path / "a.mo"
    words = 7 + 4 * 2
    swapped = struct.pack(f">{words}I", *struct.unpack_from(f"<{words}I", content)) + content[4 * words :]
    length_of_last = 4 * (7 + 4 + 2)
    swapped = swapped[:length_of_last] + struct.pack(">I", 3) + swapped[length_of_last + 4 :]
    path.write_bytes(swapped)
    assert to_rows(read_all(GettextConfig(path=str(path)))[0]) == [("tea", "thé")]


@pytest.mark.parametrize(
    ("entries", "line"),
    [
        ('msgid "one\nmsgstr "eins"\n', 4),
        ('msgid "one"\nmsgstr "ei"ns"\n', 5),
        ('msgid "one"\nmsgstr "eins\\"\n', 5),
        ('msgid "one"\nmsgid "two"\nmsgstr "zwei"\n', 5),
        ('msgstr "eins"\nmsgstr "zwei"\n', 4),
        ("<html>\n", 4),
    ],
)
def test_broken_catalogues_are_refused(entries: str, line: int, tmp_path: Path) -> None:
    path = write_po(tmp_path, entries)
    _, error = read_until_error(GettextConfig(path=path))
    assert error.location == f"{path}:{line}"


def test_only_the_last_suffix_decides_the_format(tmp_path: Path) -> None:
    path = tmp_path / "a.mo.po"  # mo was the code of Moldavian
    path.write_bytes(encode_po([("one", "unu")]))
    assert to_rows(read_all(GettextConfig(path=str(path)))[0]) == [("one", "unu")]


def test_messages_that_polib_drops_are_an_error(tmp_path: Path) -> None:
    path = write_po(tmp_path, 'msgid "one"\n# comment\nmsgid "two"\nmsgstr "zwei"\n')
    assert "Only 2 of 3 messages have their own entry" in read_until_error(GettextConfig(path=path))[1].message


@pytest.mark.parametrize("keep", [0, 3, 20, 40, -10, -1])
def test_a_cut_mo_file_is_refused(keep: int, tmp_path: Path) -> None:
    path = tmp_path / "a.mo"
    path.write_bytes(encode_mo([("one", "eins"), ("two", "zwei")])[:keep])
    assert str(path) in str(read_until_error(GettextConfig(path=str(path)))[1].location)
