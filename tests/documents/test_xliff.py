# ruff: noqa: E501 - files as they are
import pytest

from regard.base.errors import RegardError
from regard.documents.segment import Segment
from regard.documents.xliff import XliffFormat

MARK = ' state="needs-review-translation" state-qualifier="mt-suggestion"'


def make_1(unit: str, attributes: str = "") -> str:
    return (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file><body>'
        f'<trans-unit id="7"{attributes}>{unit}</trans-unit></body></file></xliff>'
    )


def make_2(segment: str, attributes: str = "") -> str:
    return (
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de"><file id="f">'
        f'<unit id="7"{attributes}>{segment}</unit></file></xliff>'
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\n  <source>One</source>\n", f"\n  <source>One</source>\n  <target{MARK}>EINS</target>\n"),
        ('<source>One</source><target xml:lang="de" state="new"/>', f'<source>One</source><target xml:lang="de" state="needs-review-translation"{MARK[33:]}>EINS</target>'),
        ("<source>One</source><target>One</target><note/>", f"<source>One</source><target{MARK}>EINS</target><note/>"),
        ('<source>One</source><target state="needs-translation">x</target>', f"<source>One</source><target{MARK}>EINS</target>"),
        (
            '<source>One</source><seg-source> <mrk mtype="seg" mid="0">One</mrk> </seg-source>',
            '<source>One</source><seg-source> <mrk mtype="seg" mid="0">One</mrk> </seg-source>'
            f'<target{MARK}> <mrk mtype="seg" mid="0">EINS</mrk> </target>',
        ),
    ],
)  # fmt: skip
def test_xliff_1_target_is_written(before: str, after: str) -> None:
    document = XliffFormat().read(make_1(before).encode())
    assert [(segment.text, segment.location) for segment in document.segments] == [("One", "unit 7")]
    assert document.write([Segment("EINS")]).decode() == make_1(after)


@pytest.mark.parametrize(
    ("unit", "attributes"),
    [
        ("<source>One</source><target>Eins</target>", ""),
        ('<source>One</source><target state="final">One</target>', ""),
        ("<source>One</source>", ' translate="no"'),
        ("<source>One</source>", ' approved="yes"'),
        ("<source>12 %</source>", ""),
    ],
)
def test_xliff_1_unit_with_a_target_is_left_alone(unit: str, attributes: str) -> None:
    data = make_1(unit, attributes).encode()
    document = XliffFormat().read(data)
    assert (document.segments, document.write([])) == ([], data)


@pytest.mark.parametrize(
    ("source", "text", "spans"),
    [
        ('a <g id="1">b <x id="2"/></g> c', "a b  c", [(2, 4, "pair"), (4, 4, "point")]),
        ('a <bpt id="1">&lt;b></bpt>b<ept id="1">&lt;/b></ept> c', "a b c", [(2, 3, "pair")]),
        ('a <bx id="1" rid="9"/>b<ex id="2" rid="9"/> c', "a b c", [(2, 3, "pair")]),
        ('a <bx id="1"/>b<ph id="2">x</ph> c', "a b c", [(2, 2, "point"), (3, 3, "point")]),  # no end
        (
            'a <bpt id="1"/>b<g id="3">c<ept id="1"/>d</g>e',
            "a bcde",
            [(2, 2, "point"), (3, 5, "pair"), (4, 4, "point")],
        ),
        ('a <mrk mtype="protected" translate="no">B &amp; C</mrk> c', "a B & C c", [(2, 7, "protected")]),
        ("a\n      b", "a b", []),
        ("a\nb", "a\nb", []),
    ],
)
def test_xliff_1_inline_elements_are_spans(source: str, text: str, spans: list[tuple[int, int, str]]) -> None:
    document = XliffFormat().read(make_1(f"<source>{source}</source>").encode())
    (segment,) = document.segments
    assert (segment.text, [(span.start, span.end, span.kind) for span in segment.spans]) == (text, spans)
    if "\n      " not in source:
        assert f"<target{MARK}>{source}</target>" in document.write([segment]).decode()


def test_xliff_2_target_and_state_are_written() -> None:
    before = (
        '<segment id="s"><source>A <pc id="1">b</pc></source></segment>'
        '<segment state="initial"><source>C<sc id="2"/>d<ec startRef="2"/> e</source><target/></segment>'
        '<segment state="final"><source>E</source><target>F</target></segment><ignorable><source> g</source></ignorable>'
    )
    document = XliffFormat().read(make_2(before).encode())
    assert [segment.text for segment in document.segments] == ["A b", "Cd e"]
    after = before.replace('<segment id="s">', '<segment id="s" state="translated">').replace("initial", "translated")
    after = after.replace("</pc></source>", '</pc></source><target>A <pc id="1">b</pc></target>')
    after = after.replace("<target/>", '<target>C<sc id="2"/>d<ec startRef="2"/> e</target>')
    assert document.write(document.segments).decode() == make_2(after)
    assert XliffFormat().read(make_2(before, ' translate="no"').encode()).segments == []


def test_xliff_with_a_prefix_gets_targets_with_it() -> None:
    data = make_1("<source>One</source>").replace("<", "<x:").replace("<x:/", "</x:").replace("xmlns=", "xmlns:x=")
    written = XliffFormat().read(data.encode()).write([Segment("Eins")]).decode()
    assert f"<x:source>One</x:source><x:target{MARK}>Eins</x:target>" in written


def test_xliff_with_another_root_is_rejected() -> None:
    with pytest.raises(RegardError, match="the root element is <a>"):
        XliffFormat().read(b"<a/>")


def test_xliff_written_file_is_read_by_translate_toolkit() -> None:
    xliff = pytest.importorskip(
        "translate.storage.xliff", reason="translate-toolkit is not installed", exc_type=ImportError
    )
    data = make_1('<source>A <g id="1">b</g></source>').encode()
    document = XliffFormat().read(data)
    (unit,) = xliff.xlifffile.parsestring(document.write(document.segments)).units
    assert (unit.source, unit.target, unit.isreview()) == ("A b", "A b", True)
