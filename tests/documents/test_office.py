# ruff: noqa: E501 - files as they are
import io
import zipfile
from dataclasses import replace

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from regard.base.errors import RegardError
from regard.documents.office import DocxFormat, PptxFormat
from regard.documents.segment import Segment, Span


def make_docx(*paragraphs: str) -> bytes:
    """A document with the given contents of paragraphs."""
    document = docx.Document()
    for content in paragraphs:
        document.element.body.insert(0, parse_xml(f"<w:p {nsdecls('w')}>{content}</w:p>"))
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def run(text: str, properties: str = "") -> str:
    return f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


def describe(segment: Segment) -> tuple[str, list[tuple[int, int, str]]]:
    return segment.text, [(span.start, span.end, span.kind) for span in segment.spans]


BEGIN, SEPARATE, END = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))
PAGE = f"{BEGIN}<w:r><w:instrText> PAGEREF x </w:instrText></w:r>{SEPARATE}{run('12')}{END}"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            run("He") + '<w:proofErr w:type="spellStart"/>' + run("llo", '<w:rPr><w:lang w:val="de-DE"/></w:rPr>'),
            ("Hello", []),
        ),
        (run("a ") + run("bold", "<w:rPr><w:b/></w:rPr>") + run(" long one"), ("a bold long one", [(2, 6, "pair")])),
        (run("See page ") + PAGE + run(" there"), ("See page  there", [(9, 9, "point")])),
        (run("Contents ") + PAGE, ("Contents", [])),
        (
            run("Go ")
            + BEGIN
            + "<w:r><w:instrText>HYPERLINK x</w:instrText></w:r>"
            + SEPARATE
            + run("there")
            + END
            + run(" now"),
            ("Go there now", [(3, 8, "pair")]),
        ),
        (
            BEGIN + "<w:r><w:instrText>TOC</w:instrText></w:r>" + SEPARATE + run("First line"),  # it ends elsewhere
            ("First line", []),
        ),
        (f"{run('a')}<w:r><w:softHyphen/></w:r>{run('b')}<w:r><w:noBreakHyphen/></w:r>{run('c')}", ("ab\u2011c", [])),
        (f"{run('a')}<w:r><w:br/></w:r>{run('b')}<w:r><w:tab/></w:r>{run('c')}", ("a\nb\tc", [])),
        (f"{run('a')}<w:r><w:br w:type='page'/></w:r>{run('b')}", ("ab", [(1, 1, "point")])),
        (f"{run('a')}<w:del w:id='1'><w:r><w:delText>x</w:delText></w:r></w:del>{run('b')}", ("ab", [(1, 1, "point")])),
        (f"{run('a ')}{run('hidden', '<w:rPr><w:vanish/></w:rPr>')}{run('b')}", ("a b", [(2, 2, "point")])),
        (
            f"{run('a ')}<w:sdt><w:sdtPr/><w:sdtContent>{run('b')}</w:sdtContent></w:sdt>{run(' c')}",
            ("a b c", [(2, 3, "pair")]),
        ),
        ("<w:r><w:t> no space kept </w:t></w:r>", ("no space kept", [])),
    ],
)
def test_docx_paragraph_is_one_segment(content: str, expected: tuple[str, list[tuple[int, int, str]]]) -> None:
    data = make_docx(content)
    document = DocxFormat().read(data)
    assert [describe(segment) for segment in document.segments] == [expected]
    assert document.write(document.segments) == data


def test_docx_translation_keeps_links_fields_and_formats() -> None:
    link = f'<w:hyperlink w:anchor="x">{run("the link", "<w:rPr><w:i/></w:rPr>")}</w:hyperlink>'
    document = DocxFormat().read(make_docx(run("See ") + link + run(" on page ") + PAGE + run(".\u2011")))
    (segment,) = document.segments
    pair, point = segment.spans
    translation = Segment(
        "Auf Seite  der Verweis.\nUnd\t\u2011", (point._replace(start=10, end=10), pair._replace(start=11, end=22))
    )
    read = docx.Document(io.BytesIO(document.write([translation])))
    (paragraph,) = [paragraph for paragraph in read.paragraphs if paragraph.text]
    assert paragraph.text == "Auf Seite 12 der Verweis.\nUnd\t-"
    (written,) = paragraph.hyperlinks
    assert (written.text, written.fragment, written.runs[0].italic) == ("der Verweis", "x", True)
    assert paragraph._p.xpath(".//w:instrText")[0].text == " PAGEREF x "


def test_docx_text_box_and_the_paragraph_around_it_are_both_translated() -> None:
    box = f"<w:r><w:pict><w:txbxContent><w:p>{run('inner')}</w:p></w:txbxContent></w:pict></w:r>"
    document = DocxFormat().read(make_docx(run("before ") + box + run("after")))
    outer, inner = document.segments
    assert (describe(outer), inner.text) == (("before after", [(7, 7, "point")]), "inner")
    written = document.write([replace(outer, text="BEFORE AFTER"), replace(inner, text="INNER")])
    assert [segment.text for segment in DocxFormat().read(written).segments] == ["BEFORE AFTER", "INNER"]


def test_docx_headers_notes_and_tables_are_read_but_not_comments() -> None:
    document = docx.Document()
    document.add_table(1, 1).cell(0, 0).text = "cell"
    document.sections[0].header.paragraphs[0].text = "header"
    added = document.add_paragraph("body")
    document.add_comment(added.runs, "comment", "A")
    buffer = io.BytesIO()
    document.save(buffer)
    segments = DocxFormat().read(buffer.getvalue()).segments
    assert [(segment.text, segment.location.split(",")[0]) for segment in segments] == [
        ("cell", "word/document.xml"),
        ("body", "word/document.xml"),
        ("header", "word/header1.xml"),
    ]


def test_pptx_line_break_ends_a_run_and_keeps_its_properties() -> None:
    content = (
        '<p:sld xmlns:p="p" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><a:p><a:r><a:rPr lang="en-US" b="1" '
        'dirty="0"/><a:t>One</a:t></a:r><a:br/><a:r><a:rPr b="1" lang="de"/><a:t>two</a:t></a:r><a:endParaRPr/></a:p></p:sld>'
    )
    types = "".join(
        f'<Override PartName="/{name}" ContentType="application/vnd.openxmlformats-officedocument.presentationml.{kind}+xml"/>'
        for name, kind in (("p.xml", "presentation.main"), ("s1.xml", "slide"))
    )
    namespace = "http://schemas.openxmlformats.org/package/2006/content-types"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("[Content_Types].xml", f'<Types xmlns="{namespace}">{types}</Types>')
        file.writestr("p.xml", "<p/>")
        file.writestr("s1.xml", content)
    document = PptxFormat().read(buffer.getvalue())
    assert [describe(segment) for segment in document.segments] == [("One\ntwo", [])]
    with zipfile.ZipFile(io.BytesIO(document.write([Segment("Eins\nzwei")]))) as file:
        written = file.read("s1.xml").decode()
    properties = '<a:rPr lang="en-US" b="1" dirty="0"/>'
    assert written == content.replace(
        content[content.index("<a:r>") : content.index("<a:endParaRPr/>")],
        f"<a:r>{properties}<a:t>Eins</a:t></a:r><a:br>{properties}</a:br><a:r>{properties}<a:t>zwei</a:t></a:r>",
    )


def test_docx_of_another_kind_is_rejected() -> None:
    with pytest.raises(RegardError, match="no document of this format"):
        PptxFormat().read(make_docx(run("a")))


def test_docx_with_wrong_number_of_translations_is_an_error() -> None:
    document = DocxFormat().read(make_docx(run("a")))
    with pytest.raises(ValueError, match="zip"):
        document.write([Segment("a"), Segment("b", (Span(0, 1, 0, "pair"),))])
