import io
import zipfile

import pytest

from regard.base.errors import RegardError
from regard.documents.odt import OdtFormat
from regard.documents.segment import Segment, Span

NAMESPACES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in (("o", "office"), ("t", "text"), ("draw", "drawing"))
)


def make_odt(content: str, mimetype: str = "application/vnd.oasis.opendocument.text") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("mimetype", mimetype)
        file.writestr("content.xml", f"<o:document-content {NAMESPACES}>{content}</o:document-content>")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "text", "spans"),
    [
        ("a <t:span>b</t:span> c", "a b c", [(2, 3, "pair")]),
        ("a\n   b<t:s/>c", "a b c", []),
        ("a<t:line-break/>b<t:tab/>c", "a\nb\tc", []),
        ("a<t:soft-page-break/>b\u00adc", "abc", []),
        ("<t:a>whole <t:span>link</t:span></t:a>", "whole link", [(6, 10, "pair")]),
        ("a <o:annotation><t:p>comment</t:p></o:annotation>b", "a b", [(2, 2, "point")]),
        ("<t:bookmark-start t:name='x'/>a<t:bookmark-end t:name='x'/>", "a", []),
        ("page <t:page-number>3</t:page-number> of", "page  of", [(5, 5, "point")]),
    ],
)
def test_odt_paragraph_is_one_segment(content: str, text: str, spans: list[tuple[int, int, str]]) -> None:
    data = make_odt(f"<t:p>{content}</t:p><t:h/><t:tracked-changes><t:p>deleted</t:p></t:tracked-changes>")
    document = OdtFormat().read(data)
    (segment,) = document.segments
    assert (segment.text, [(span.start, span.end, span.kind) for span in segment.spans]) == (text, spans)
    assert document.write(document.segments) == data


def test_odt_translation_is_written_with_its_notes() -> None:
    note = "<t:note><t:note-citation>1</t:note-citation><t:note-body><t:p>The note</t:p></t:note-body></t:note>"
    document = OdtFormat().read(make_odt(f"<t:p>See <t:span>this</t:span>{note} here.</t:p>"))
    assert [segment.text for segment in document.segments] == ["See this here.", "The note"]
    written = document.write(
        [Segment("Hier:\n<das>  ja", (Span(7, 10, 0, "pair"), Span(11, 11, 1, "point"))), Segment("Die\tNotiz")]
    )
    with zipfile.ZipFile(io.BytesIO(written)) as file:
        content = file.read("content.xml").decode()
    note = note.replace("The note", "Die<t:tab/>Notiz")
    assert f"<t:p>Hier:<t:line-break/>&lt;<t:span>das</t:span>&gt;{note} <t:s/>ja</t:p>" in content


def test_odt_of_another_kind_is_rejected() -> None:
    with pytest.raises(RegardError, match="not an OpenDocument text"):
        OdtFormat().read(make_odt("", "application/vnd.oasis.opendocument.spreadsheet"))
