from hypothesis import given
from hypothesis import strategies as st

from regard.documents.segment import Segment, SegmentBuilder, iter_pieces
from regard.documents.split import join_parts, split_segment


@st.composite
def paragraphs(draw: st.DrawFn) -> Segment:
    builder = SegmentBuilder()
    for kind in draw(st.lists(st.sampled_from(["text", "text", "open", "close", "point", "protected"]), max_size=20)):
        if kind == "text":
            builder.text(draw(st.sampled_from(["One two.", " ", "Three! ", "\n", "。", "four"])))
        elif kind == "protected":
            builder.protect(draw(st.sampled_from(["A. B", "x"])))
        elif kind == "open":
            builder.open()
        elif kind == "point":
            builder.point()
        elif builder.depth:
            builder.close()
    return builder.build()


@given(paragraphs())
def test_parts_hold_every_word_and_span_of_the_segment(segment: Segment) -> None:
    parts = split_segment(segment)
    joined = join_parts(parts, [part.segment for part in parts], "")
    assert joined.text == segment.text
    kinds = [(piece.kind, piece.id) for piece in iter_pieces(segment) if piece.kind != "text"]
    assert [(piece.kind, piece.id) for piece in iter_pieces(joined) if piece.kind != "text"] == kinds
    assert [piece.text for piece in iter_pieces(joined) if piece.kind == "protected"] == [
        piece.text for piece in iter_pieces(segment) if piece.kind == "protected"
    ]


def test_pair_over_three_sentences_has_a_part_in_each() -> None:
    builder = SegmentBuilder()
    builder.text("One two ")
    builder.open()
    builder.text("three. Four. Five.")
    builder.close()
    parts = split_segment(builder.build())
    assert [part.segment.text for part in parts] == ["One two three.", "Four.", "Five."]
    assert [(bool(part.from_start), bool(part.to_end)) for part in parts] == [(0, 1), (1, 1), (1, 0)]
    translations = [Segment(part.segment.text.upper(), part.segment.spans) for part in parts]
    assert join_parts(parts, translations, "").spans[0][:2] == (8, 26)
