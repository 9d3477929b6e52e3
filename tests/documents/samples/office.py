"""Word, PowerPoint and OpenDocument files, made with the libraries of these formats."""

import io
import random

import docx
import pptx
from docx.enum.text import WD_BREAK
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from docx.text.paragraph import Paragraph
from odf import dc, draw, office, opendocument, style, table, text
from pptx.util import Inches

from tests.documents.samples.words import cut, paragraph, sentence

# Inline content that python-docx cannot make: links, fields, notes, changes, drawings, marks of the spelling checker.
_INLINE = (
    '<w:hyperlink w:anchor="x"><w:r><w:rPr><w:rStyle w:val="Hyperlink"/></w:rPr><w:t xml:space="preserve">{0}</w:t>'
    '</w:r><w:r><w:t xml:space="preserve"> {1}</w:t></w:r></w:hyperlink>',
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> PAGEREF x </w:instrText></w:r><w:r>'
    '<w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>12</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>',
    '<w:r><w:fldChar w:fldCharType="begin"/><w:instrText>HYPERLINK "http://a.b"</w:instrText><w:fldChar '
    'w:fldCharType="separate"/><w:t>{0}</w:t><w:fldChar w:fldCharType="end"/></w:r>',
    '<w:proofErr w:type="spellStart"/><w:r><w:rPr><w:lang w:val="en-US"/></w:rPr><w:t>{0}</w:t></w:r>'
    '<w:proofErr w:type="spellEnd"/>',
    '<w:bookmarkStart w:id="{2}" w:name="b{2}"/><w:r><w:t>{0}</w:t></w:r><w:bookmarkEnd w:id="{2}"/>',
    '<w:ins w:id="{2}" w:author="A"><w:r><w:t xml:space="preserve"> {0} </w:t></w:r></w:ins>'
    '<w:del w:id="1{2}" w:author="A"><w:r><w:delText>{1}</w:delText></w:r></w:del>',
    '<w:sdt><w:sdtPr><w:id w:val="7{2}"/></w:sdtPr><w:sdtContent><w:r><w:t>{0}</w:t></w:r></w:sdtContent></w:sdt>',
    "<w:r><w:t>{0}</w:t><w:softHyphen/><w:t>{1}</w:t><w:noBreakHyphen/></w:r>",
    '<w:r><w:lastRenderedPageBreak/><w:sym w:font="Wingdings" w:char="F0E0"/><w:tab/></w:r>',
    "<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>{0} {1}</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>",
    '<w:fldSimple w:instr="PAGE"><w:r><w:t>3</w:t></w:r></w:fldSimple>',
    "<w:r><w:rPr><w:vanish/></w:rPr><w:t>{0}</w:t></w:r>",
)


def make_docx(rng: random.Random) -> bytes:
    """Return a Word document with formatted runs, tables, a header and inline content of every kind."""
    document = docx.Document()
    document.add_heading(sentence(rng), 0)
    for _ in range(rng.randint(2, 12)):
        kind = rng.random()
        if kind < 0.1:
            document.add_heading(sentence(rng), rng.randint(1, 3))
        elif kind < 0.2:
            cells = document.add_table(2, 2)
            for row in cells.rows:
                for cell in row.cells:
                    cell.text = sentence(rng) if rng.random() < 0.8 else ""
        else:
            added = document.add_paragraph(style=rng.choice(["Normal", "List Bullet", "Quote"]))
            _fill(rng, added)
    if rng.random() < 0.5:
        document.sections[0].header.paragraphs[0].text = sentence(rng)
        _fill(rng, document.sections[0].footer.paragraphs[0])
    if rng.random() < 0.3:
        document.add_comment(document.paragraphs[-1].runs or document.paragraphs[0].runs, sentence(rng), "A")
    return _save(document)


def _fill(rng: random.Random, target: Paragraph) -> None:
    for part in cut(rng, paragraph(rng)):
        run = target.add_run(part)
        if rng.random() < 0.3:
            run.bold = True
        if rng.random() < 0.2:
            run.italic = True
        if rng.random() < 0.1:
            run.add_break(WD_BREAK.PAGE if rng.random() < 0.2 else WD_BREAK.LINE)
        if rng.random() < 0.1:
            run.add_tab()
        if rng.random() < 0.2:
            content = rng.choice(_INLINE).format(*rng.sample(["one", "two", "three", "four"], 2), rng.randint(10, 9999))
            for element in parse_xml(f"<w:p {nsdecls('w')}>{content}</w:p>"):
                target._p.append(element)


def make_pptx(rng: random.Random) -> bytes:
    """Return a presentation with formatted runs, tables and notes."""
    presentation = pptx.Presentation()
    for _ in range(rng.randint(1, 3)):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = sentence(rng)
        frame = slide.placeholders[1].text_frame
        for _ in range(rng.randint(1, 4)):
            added = frame.add_paragraph()
            for part in cut(rng, paragraph(rng)):
                run = added.add_run()
                run.text = part
                if rng.random() < 0.4:
                    run.font.bold = True
                if rng.random() < 0.2:
                    added.add_line_break()
                if rng.random() < 0.2:
                    run.hyperlink.address = "https://example.com"
        if rng.random() < 0.4:
            shape = slide.shapes.add_table(2, 2, Inches(1), Inches(5), Inches(4), Inches(1))
            shape.table.cell(0, 0).text = sentence(rng)
        if rng.random() < 0.4:
            slide.notes_slide.notes_text_frame.text = paragraph(rng)
    return _save(presentation)


def make_odt(rng: random.Random) -> bytes:
    """Return an OpenDocument text with spans, links, notes, fields, comments, tables and a footer."""
    document = opendocument.OpenDocumentText()
    for name in ("Bold", "Italic"):
        bold = style.Style(name=name, family="text")
        bold.addElement(style.TextProperties(**({"fontweight": "bold"} if name == "Bold" else {"fontstyle": "italic"})))
        document.automaticstyles.addElement(bold)
    document.text.addElement(text.H(outlinelevel=1, text=sentence(rng)))
    for _ in range(rng.randint(2, 12)):
        if rng.random() < 0.1:
            sheet = table.Table()
            sheet.addElement(table.TableColumn())
            row, cell = table.TableRow(), table.TableCell()
            cell.addElement(text.P(text=sentence(rng)))
            row.addElement(cell)
            sheet.addElement(row)
            document.text.addElement(sheet)
        else:
            document.text.addElement(_make_paragraph(rng))
    if rng.random() < 0.5:
        footer = style.Footer()
        footer.addElement(text.P(text=sentence(rng)))
        page = style.PageLayout(name="pl")
        document.automaticstyles.addElement(page)
        master = style.MasterPage(name="Standard", pagelayoutname=page)
        master.addElement(footer)
        document.masterstyles.addElement(master)
    return _save(document)


def _make_paragraph(rng: random.Random) -> text.P:
    added = text.P()
    for part in cut(rng, paragraph(rng)):
        kind = rng.random()
        if kind < 0.2:
            outer, inner = text.Span(stylename="Bold"), text.Span(stylename="Italic", text=part)
            outer.addElement(inner)
            outer.addText(" ")
            added.addElement(outer)
        elif kind < 0.3:
            added.addElement(text.A(href="https://example.com", text=part))
        elif kind < 0.35:
            note, body = text.Note(noteclass="footnote"), text.NoteBody()
            note.addElement(text.NoteCitation(text="1"))
            body.addElement(text.P(text=sentence(rng)))
            note.addElement(body)
            added.addElement(note)
        elif kind < 0.4:
            comment = office.Annotation()
            comment.addElement(dc.Creator(text="A"))
            comment.addElement(text.P(text=sentence(rng)))
            added.addElement(comment)
        elif kind < 0.5:
            element = rng.choice([text.LineBreak, text.Tab, text.S, text.SoftPageBreak, text.PageNumber])()
            added.addElement(element)
        elif kind < 0.55:
            added.addElement(text.BookmarkStart(name=part[:5]))
            added.addText(part)
            added.addElement(text.BookmarkEnd(name=part[:5]))
        elif kind < 0.58:
            frame, box = draw.Frame(), draw.TextBox()
            box.addElement(text.P(text=sentence(rng)))
            frame.addElement(box)
            added.addElement(frame)
        else:
            added.addText(part)
    return added


def _save(document: object) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)  # type: ignore[attr-defined]
    return buffer.getvalue()
