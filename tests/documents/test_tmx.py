from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.data.example import Defects
from regard.data.readers.tmx import read_units
from regard.documents.segment import Segment
from regard.documents.tmx import TmxFormat

YES = '<tu><tuv xml:lang="en"><seg>Yes</seg></tuv><tuv xml:lang="de"><seg>Ja</seg></tuv></tu>'


def make(units: str, source: str = "en") -> bytes:
    return (
        f'<!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header srclang="{source}"/><body>{units}</body></tmx>'
    ).encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '<tu>\n <tuv xml:lang="en-US"><seg>No</seg></tuv>\n</tu>',
            '<tu>\n <tuv xml:lang="en-US"><seg>No</seg></tuv>\n <tuv xml:lang="de"><seg>NEIN</seg></tuv>\n</tu>',
        ),
        (
            '<tu><tuv lang="EN"><seg>No</seg></tuv><tuv xml:lang="de-AT"><seg/></tuv></tu>',
            '<tu><tuv lang="EN"><seg>No</seg></tuv><tuv xml:lang="de-AT"><seg>NEIN</seg></tuv></tu>',
        ),
    ],
)
def test_tmx_unit_without_target_gets_one(before: str, after: str) -> None:
    for source in ("en", "*all*"):
        document = TmxFormat().read(make(YES + before, source))
        assert [segment.text for segment in document.segments] == ["No"]
        assert document.write([Segment("NEIN")]) == make(YES + after, source)


def test_tmx_inline_elements_are_spans_and_the_file_is_read_back(tmp_path: Path) -> None:
    source = 'A <bpt i="1">&lt;b></bpt>b<ept i="1"/> <hi>c</hi><ph x="1"/> d'
    document = TmxFormat().read(make(f'{YES}<tu><tuv xml:lang="en"><seg>{source}</seg></tuv></tu>'))
    (segment,) = document.segments
    assert [(span.start, span.end, span.kind) for span in segment.spans] == [
        (2, 3, "pair"),
        (4, 5, "pair"),
        (5, 5, "point"),
    ]
    path = tmp_path / "a.tmx"
    path.write_bytes(document.write([segment]))
    units = list(read_units(str(path), Defects()))
    assert [part.text for part in units[1].segments] == ["A b c d", "A b c d"]


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ('<tu><tuv xml:lang="en"><seg>No</seg></tuv></tu>', "has 1 languages"),
        (YES + YES.replace("de", "fr"), "has 3 languages"),
    ],
)
def test_tmx_without_one_target_language_is_rejected(units: str, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        TmxFormat().read(make(units))


def test_tmx_of_another_kind_is_rejected() -> None:
    with pytest.raises(RegardError, match="Not a TMX file"):
        TmxFormat().read(b"<tmx/>")
    assert TmxFormat().read(make("")).segments == []
