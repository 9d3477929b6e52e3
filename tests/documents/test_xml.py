# ruff: noqa: E501 - files as they are
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.documents import xml
from regard.documents.xml import Element, Xml, write_attribute, write_text


def parse(text: str | bytes, **options: bool) -> Xml:
    return Xml(text.encode() if isinstance(text, str) else text, "test", {"urn:a": "a"}, **options)


def test_xml_elements_have_names_positions_and_texts() -> None:
    text = "<?xml version='1.0'?><x:r xmlns:x='urn:a' a='>'>é&amp;<!--c--><b/ ><![CDATA[<&]]>&#x41;<x:c y='1'>t</x:c></x:r>"
    read = parse(text.replace("/ >", " />"))
    root = read.root
    assert [element.name for element in root.walk()] == ["a:r", "b", "a:c"]
    assert read.text(root) == "é&<&A"
    kinds = [item.name if isinstance(item, Element) else item[2] for item in read.parts(root)]
    assert kinds == ["é&", "b", "<&", "A", "a:c"]
    child = root.children[1]
    assert read.data[child.start : child.end] == b"<x:c y='1'>t</x:c>"
    assert (read.data[child.open_end : child.close_start], child.attributes) == (b"t", {"y": "1"})
    assert root.find("a:c") is child
    assert list(child.ancestors()) == [root]
    assert root.find("a:c", "b") is None


def test_xml_edits_replace_ranges_and_keep_the_rest() -> None:
    read = parse("<r><a>1</a> <b>2<c>3</c></b></r>")
    b, c = read.root.children[1], read.root.children[1].children[0]
    read.edit(c.open_end, c.close_start, b"three")
    assert read.slice(b.open_end, b.close_start) == b"2<c>three</c>"
    read.edit(b.open_end, b.close_start, read.slice(c.start, c.end) + b"two")
    a = read.root.children[0]
    read.edit(a.end, a.end, b"+")
    assert read.write() == b"<r><a>1</a>+ <b><c>three</c>two</b></r>"
    read.discard_edits()
    assert read.write() == read.data


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_xml_is_written_in_its_own_encoding(encoding: str) -> None:
    name = encoding.removesuffix("-sig")
    data = f'<?xml version="1.0" encoding="{name}"?><r>é</r>'.encode(encoding)
    read = parse(data)
    assert read.text(read.root) == "é"
    read.edit(read.root.open_end, read.root.close_start, write_text("ü€日"))
    written = parse(read.write())
    assert written.text(written.root) == "ü€日"
    read.discard_edits()
    assert read.write() == data


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<a><b></a>", "Not well-formed XML: mismatched tag, line 1"),
        ("", "Not well-formed"),
        ("<!DOCTYPE a><a/>", "has a document type"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "has a document type"),
        ("<?xml version='1.0' encoding='rot13'?><a/>", "'rot13' is not supported"),
        ("<?xml version='1.0' encoding='utf-16'?><a/>", "'utf-16' is not supported"),
        ("<a>" * 300 + "</a>" * 300, "nested more than 256 deep"),
    ],
)
def test_xml_that_is_unsafe_or_malformed_is_rejected(text: str, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        parse(text)


def test_xml_with_doctype_is_read_without_its_file() -> None:
    read = parse('<!DOCTYPE a SYSTEM "http://a.invalid/x.dtd"><a>&x;</a>', doctype=True)
    with pytest.raises(RegardError, match="'&x;' is not defined"):
        read.text(read.root)
    with pytest.raises(RegardError, match="document type with definitions"):
        parse("<!DOCTYPE a [<!ELEMENT a ANY>]><a/>", doctype=True)


def test_xml_with_too_many_tags_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MAX_TAGS", 2)
    with pytest.raises(RegardError, match="3 tags, more than 2"):
        parse("<a><b/></a>")


@given(st.text(st.sampled_from("a<>&\"' \n\x00\x0b\ud800\ufffe\U0001f600é")))
def test_xml_written_text_reads_as_the_text(text: str) -> None:
    legal = "".join(character for character in text if character not in "\x00\x0b\ud800\ufffe")
    read = parse(b'<a b="' + write_attribute(text.replace("\n", " ")) + b'">' + write_text(text) + b"</a>")
    assert read.text(read.root) == legal
    assert read.root.attributes == {"b": legal.replace("\n", " ")}
