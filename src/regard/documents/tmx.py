"""Translation memories (TMX): units without a target get one.

The source language is `srclang` of the header. The target language is the one other language of the file; units that
have no variant in it, or an empty one, get one. Regional variants (pt-BR, pt-PT) count as one language.
"""

from collections import Counter
from collections.abc import Iterator

from regard.base.errors import RegardError
from regard.documents.bilingual import BilingualDocument, BilingualUnit, indent_of, make_paragraph, prefix_of
from regard.documents.xml import Element, Xml, write_attribute

_MARKS = {"bpt": ("open", "i"), "ept": ("close", "i")}


class TmxFormat:
    """Translation memories."""

    suffixes = (".tmx",)
    media_type = "application/x-tmx+xml"

    def read(self, data: bytes) -> BilingualDocument:
        """Read the sources that need a target."""
        xml = Xml(data, "TMX", {"http://www.lisa.org/tmx14": ""}, doctype=True)
        header, body = xml.root.find("header"), xml.root.find("body")
        if xml.root.name != "tmx" or header is None or body is None:
            raise RegardError("Not a TMX file.", location="TMX", hint="A TMX file has <tmx>, <header> and <body>.")
        units = [child for child in body.children if child.name == "tu"]
        source = header.attributes.get("srclang", "*all*")
        counts = Counter(_language(tuv) for unit in units for tuv in _variants(unit))
        if source == "*all*":
            source = next(iter(counts), "")
        targets = [language for language, _ in counts.most_common() if _code(language) != _code(source)]
        if units and len({_code(language) for language in targets}) != 1:
            raise RegardError(
                f"The target language of the TMX is unclear: it has {len(set(map(_code, counts)))} languages.",
                location="TMX",
                hint="Translate a file with two languages: srclang of the header, and that of at least one variant.",
            )
        return BilingualDocument(xml, (u for unit in units for u in _read_unit(xml, unit, source, targets[0])))


def _read_unit(xml: Xml, unit: Element, source: str, target: str) -> Iterator[BilingualUnit]:
    variants = {_code(_language(tuv)): tuv for tuv in _variants(unit)}
    variant, other = variants.get(_code(source)), variants.get(_code(target))
    segment = variant.find("seg") if variant else None
    if variant is None or segment is None:
        return
    line = xml.data.count(b"\n", 0, unit.start) + 1
    paragraphs = (make_paragraph(xml, segment, f"line {line}", pairs={"hi"}, marks=_MARKS),)
    prefix = prefix_of(xml, segment)
    opening, closing = b"<%sseg>" % prefix, b"</%sseg>" % prefix
    if other is None:
        indent = indent_of(xml, unit)
        opening = b'%s<%stuv xml:lang="%s">%s' % (indent, prefix, write_attribute(target), opening)
        yield BilingualUnit(segment, paragraphs, variant.end, variant.end, opening, b"%s</%stuv>" % (closing, prefix))
    elif (empty := other.find("seg")) is not None and not xml.data[empty.open_end : empty.close_start].strip():
        yield BilingualUnit(segment, paragraphs, empty.start, empty.end, opening, closing)


def _variants(unit: Element) -> list[Element]:
    return [child for child in unit.children if child.name == "tuv"]


def _language(variant: Element) -> str:
    return variant.attributes.get("xml:lang") or variant.attributes.get("lang") or ""


def _code(language: str) -> str:
    return language.lower().replace("_", "-").partition("-")[0]
