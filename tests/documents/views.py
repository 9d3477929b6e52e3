"""How the library of a format reads a file: what must be equal after its segments were rewritten."""

import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import groupby
from typing import Any
from xml.etree import ElementTree

import docx
import polib
import pptx
import yaml
from docx.text.hyperlink import Hyperlink
from docx.text.paragraph import Paragraph
from markdown_it import MarkdownIt
from odf import opendocument


def view_docx(data: bytes) -> Any:
    """Return the paragraphs of all parts as python-docx reads them, with the look of each text."""
    document = docx.Document(io.BytesIO(data))
    parts = [
        document.part,
        *(relation.target_part for relation in document.part.rels.values() if not relation.is_external),
    ]
    return [
        (part.partname, _join(list(_iter_runs(Paragraph(element, None)))))
        for part in parts
        if hasattr(part, "element")
        for element in part.element.iter("{http://schemas.openxmlformats.org/wordprocessingml/2006/main}p")
    ]


def _iter_runs(paragraph: Paragraph) -> Any:
    for item in paragraph.iter_inner_content():
        runs = item.runs if isinstance(item, Hyperlink) else [item]
        for run in runs:
            link = item.fragment if isinstance(item, Hyperlink) else None
            yield run.text, (run.bold, run.italic, run._r.style, link)


def view_pptx(data: bytes) -> Any:
    """Return the paragraphs of slides, tables and notes as python-pptx reads them."""
    output = []
    for slide in pptx.Presentation(io.BytesIO(data)).slides:
        frames = [shape.text_frame for shape in slide.shapes if shape.has_text_frame]
        frames += [cell.text_frame for shape in slide.shapes if shape.has_table for cell in shape.table.iter_cells()]
        frames += [slide.notes_slide.notes_text_frame] if slide.has_notes_slide else []
        for frame in frames:
            for paragraph in frame.paragraphs:
                runs = [(run.text, (run.font.bold, run.hyperlink.address)) for run in paragraph.runs]
                output.append((paragraph.text, _join(runs)))
    return output


def _join(runs: list[tuple[str, Any]]) -> list[tuple[Any, str]]:
    """Join texts that look the same; spaces alone have no look."""
    joined = list[tuple[Any, str]]()
    for text, look in runs:
        if joined and (not text.strip() or joined[-1][0] == look):
            joined[-1] = (joined[-1][0], joined[-1][1] + text)
        elif text:
            joined.append((look, text))
    return joined


def view_odt(data: bytes) -> Any:
    """Return the elements and texts of the document as odfpy reads them; neighboring texts are joined."""
    document = opendocument.load(io.BytesIO(data))
    return [_view_odf(document.text), _view_odf(document.masterstyles)]


def _view_odf(node: Any) -> Any:
    if node.nodeType == node.TEXT_NODE:
        return re.sub(r"\s+", " ", node.data)
    items = [
        " " if child.nodeType != child.TEXT_NODE and child.qname[1] == "s" else _view_odf(child)
        for child in node.childNodes
    ]
    items = [item for item in items if not (isinstance(item, tuple) and item[0] == "soft-page-break")]
    texts = [
        ["".join(group)] if is_text else list(group)
        for is_text, group in groupby(items, lambda item: isinstance(item, str))
    ]
    attributes = sorted((str(key), str(value)) for key, value in node.attributes.items())
    return node.qname[1], attributes, [item for group in texts for item in group]


def view_xml(data: bytes) -> Any:
    """Return the canonical form."""
    return ElementTree.canonicalize(data, rewrite_prefixes=True)


def view_po(data: bytes) -> Any:
    """Return the entries as polib reads them."""
    catalog = polib.pofile(data.decode().replace("\r\n", "\n"))
    fields = (
        "msgctxt",
        "msgid",
        "msgid_plural",
        "msgstr",
        "msgstr_plural",
        "flags",
        "comment",
        "occurrences",
        "obsolete",
    )
    return [{name: getattr(entry, name) for name in fields} for entry in [catalog.metadata_as_entry(), *catalog]]


def view_html(data: bytes) -> Any:
    """Return the elements, attributes and texts as html.parser reads them; white space is joined."""
    parser = _HtmlView()
    parser.feed(data.decode())
    parser.close()
    return [" ".join(item.split()) if isinstance(item, str) else item for item in parser.items if item != " "]


class _HtmlView(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.items = list[Any]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.items.append((tag, tuple(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.items.append((f"/{tag}",))

    def handle_data(self, data: str) -> None:
        if self.items and isinstance(self.items[-1], str):
            data = self.items.pop() + data
        self.items.append(re.sub(r"\s+", " ", data))

    def handle_comment(self, data: str) -> None:
        self.items.append((f"!{data}",))


def view_markdown(data: bytes) -> Any:
    """Return the HTML that markdown-it-py makes of a page."""
    text = re.sub(r"\A---\s.*?\n---\s", "", data.decode(), flags=re.DOTALL)
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    return view_html(html.encode())


VIEWS: dict[str, Callable[[bytes], Any]] = {
    ".txt": bytes.decode,
    ".md": view_markdown,
    ".html": view_html,
    ".srt": lambda data: data.decode().split(),
    ".vtt": lambda data: data.decode().split(),
    ".docx": view_docx,
    ".pptx": view_pptx,
    ".odt": view_odt,
    ".xlf": view_xml,
    ".tmx": view_xml,
    ".po": view_po,
    ".json": json.loads,
    ".yaml": yaml.safe_load,
}
