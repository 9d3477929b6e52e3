import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.documents.project import project
from regard.documents.segment import Segment, SegmentBuilder, Span, iter_pieces


def parse(markup: str) -> Segment:
    """Read a toy syntax: <b>pair</b>, <br/> point, [protected]; ids follow the order of the openings."""
    builder, rest = SegmentBuilder(), markup
    while rest:
        if rest.startswith("</"):
            builder.close()
            rest = rest[4:]
        elif rest.startswith("<br/>"):
            builder.point()
            rest = rest[5:]
        elif rest.startswith("<"):
            builder.open()
            rest = rest[3:]
        elif rest.startswith("["):
            text, _, rest = rest[1:].partition("]")
            builder.protect(text)
        else:
            builder.text(rest[0])
            rest = rest[1:]
    return builder.build()


def show(segment: Segment) -> str:
    forms = {"open": "<{}>", "close": "</{}>", "point": "<br{}/>", "protected": "[{}]"}
    return "".join(
        piece.text if piece.kind == "text" else forms[piece.kind].format(piece.text or piece.id)
        for piece in iter_pieces(segment)
    )


def links(*pairs: str) -> frozenset[tuple[int, int]]:
    return frozenset((int(source), int(target)) for source, _, target in (pair.partition("-") for pair in pairs))


@pytest.mark.parametrize(
    ("source", "target", "word_links", "expected"),
    [
        ("the <b>red</b> house.", "la casa roja.", links("0-0", "1-2", "2-1"), "la casa <0>roja</0>."),
        ("<b>Stop it</b>!", "Hör auf!", links("0-0", "1-1"), "<0>Hör auf</0>!"),
        ("<b>Stop it!</b>", "Hör auf!", links("0-0", "1-1"), "<0>Hör auf!</0>"),
        # One wrong link does not stretch the pair.
        ("a <b>b</b> c d e", "A B C D E", links("0-0", "1-1", "2-2", "3-3", "1-4"), "A <0>B</0> C D E"),
        # Siblings change places, children stay inside.
        ("<b>a <i>b</i></b> <i>c</i>", "C B A", links("0-2", "1-1", "2-0"), "<2>C</2> <0><1>B</1> A</0>"),
        ("a<br/> b", "A B", links("0-0", "1-1"), "A<br0/> B"),
        ("a <br/>b c", "C B A", links("0-2", "1-1", "2-0"), "C <br0/>B A"),
        ("a <br/> b", "A B", links("0-0", "1-1"), "A <br0/> B"),
        ("<br/>a b<br/>", "B A", links("0-1", "1-0"), "<br0/>B A<br1/>"),
        ("word<br/>. End", "Wort. Ende", links("0-0", "1-1"), "Wort<br0/>. Ende"),
        ("use [x.y] here", "hier x.y nutzen", links("0-2", "2-0"), "hier [x.y] nutzen"),
        ("use <b>[x.y] now</b>", "x.y jetzt nutzen", links("0-2", "2-1"), "<0>[x.y] jetzt</0> nutzen"),
        ("use [x.y] here", "hier nutzen", links("0-1", "2-0"), "hier nutzen [x.y]"),
        ("[a b] and [b]", "b und a b", frozenset(), "[b] und [a b]"),
        # Without links: the order of the source.
        ("a <b>b</b> c", "A B C", frozenset(), "A <0>B</0> C"),
        ("<b><i></i></b>a", "A", frozenset(), "<0><1></1></0>A"),
        ("<b>a</b> b", "", frozenset(), "<0></0>"),
        ("<b>do</b> not go", "geh nicht", links("2-0", "1-1"), "<0>geh</0> nicht"),
    ],
)
def test_project_places_markup(source: str, target: str, word_links: frozenset[tuple[int, int]], expected: str) -> None:
    assert show(project(parse(source), target, word_links).segment) == expected


def test_project_inserted_text_is_reported() -> None:
    assert project(parse("use [x.y] here"), "hier", frozenset()).missing == (0,)
    assert project(parse("use [5] here"), "hier 25", frozenset()).missing == (0,)


def test_project_pairs_over_several_sentences_reach_the_edges() -> None:
    source = parse("a <b>b c d</b>")
    result = project(source, "B A C D.", links("0-1", "1-0", "2-2", "3-3"), to_end=frozenset([0]))
    assert show(result.segment) == "B A <0>C D.</0>"
    source = parse("<b>a</b> b c")
    result = project(source, "C A B", links("0-1", "1-2", "2-0"), from_start=frozenset([0]))
    assert show(result.segment) == "<0>C</0> A B"


@st.composite
def tagged(draw: st.DrawFn) -> Segment:
    builder = SegmentBuilder()
    for kind in draw(st.lists(st.sampled_from(["text", "text", "open", "close", "point", "protected"]), max_size=16)):
        text = draw(st.sampled_from(["a ", "b", " c.", "dd ", '"e" ']))
        if kind == "text":
            builder.text(text)
        elif kind == "protected":
            builder.protect(draw(st.sampled_from(["%s", "x y", "5"])))
        elif kind == "open":
            builder.open()
        elif kind == "point":
            builder.point()
        elif builder.depth:
            builder.close()
    return builder.build()


@given(
    tagged(),
    st.text(st.sampled_from('ab %s5xy." '), max_size=24),
    st.frozensets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12),
)
def test_project_keeps_every_span_once_and_the_words(
    source: Segment, target: str, word_links: frozenset[tuple[int, int]]
) -> None:
    projection = project(source, target, word_links)  # a segment with crossing spans cannot be made
    result = projection.segment
    assert sorted(span.id for span in result.spans) == sorted(span.id for span in source.spans)
    texts = {span.id: source.text[span.start : span.end] for span in source.spans if span.kind == "protected"}
    found = {span.id: result.text[span.start : span.end] for span in result.spans if span.kind == "protected"}
    assert found == texts
    if target.split() != source.text.split():
        missing = projection.missing
        inserted = Segment(result.text, tuple(span._replace(depth=0) for span in result.spans if span.id in missing))
        rest = "".join(piece.text for piece in iter_pieces(inserted) if piece.kind == "text")
        assert "".join(rest.split()) == "".join(target.split())


def test_project_of_an_unchanged_text_returns_its_spans() -> None:
    source = parse("a <b> b</b>  [c]<br/>")
    assert project(source, "a b c", frozenset()).segment == source


def test_project_ignores_links_out_of_range() -> None:
    source = Segment("a b", (Span(2, 3, 0, "pair"),))
    assert show(project(source, "A B", links("9-0", "0-9", "1-1")).segment) == "A <0>B</0>"
