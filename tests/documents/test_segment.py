from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.documents.segment import Segment, SegmentBuilder, Span, iter_pieces


@st.composite
def segments(draw: st.DrawFn) -> tuple[Segment, list[tuple[str, str]]]:
    """A segment and the calls of the builder that made it."""
    builder, calls = SegmentBuilder(), list[tuple[str, str]]()
    for kind in draw(st.lists(st.sampled_from(["text", "open", "close", "point", "protected"]), max_size=20)):
        if kind == "close" and not builder.depth:
            continue
        text = draw(st.text(st.sampled_from("ab ."), min_size=1, max_size=3)) if kind in ("text", "protected") else ""
        calls.append((kind, text))
        methods: dict[str, Callable[[], object]] = {
            "open": builder.open,
            "close": builder.close,
            "point": builder.point,
            "text": lambda text=text: builder.text(text),  # type: ignore[misc]
            "protected": lambda text=text: builder.protect(text),  # type: ignore[misc]
        }
        methods[kind]()
    calls += [("close", "")] * builder.depth
    return builder.build(), calls


def merge_texts(calls: list[tuple[str, str]]) -> list[tuple[str, str]]:
    merged = list[tuple[str, str]]()
    for kind, text in calls:
        if kind == "text" and merged and merged[-1][0] == "text":
            merged[-1] = (kind, merged[-1][1] + text)
        else:
            merged.append((kind, text))
    return merged


@given(segments())
def test_pieces_of_a_built_segment_are_the_calls_in_order(built: tuple[Segment, list[tuple[str, str]]]) -> None:
    segment, calls = built
    assert [(piece.kind, piece.text) for piece in iter_pieces(segment)] == merge_texts(calls)


@pytest.mark.parametrize(
    "spans",
    [
        (Span(0, 3, 0, "pair"), Span(2, 4, 1, "pair", 1)),  # reaches beyond its parent
        (Span(0, 3, 0, "pair"), Span(2, 4, 1, "pair")),  # crosses
        (Span(2, 4, 0, "pair"), Span(0, 1, 1, "pair")),  # out of order
        (Span(0, 9, 0, "pair"),),
        (Span(0, 1, 0, "pair", 1),),  # no parent
        (Span(0, 2, 0, "protected"), Span(0, 1, 1, "pair", 1)),  # inside a protected text
        (Span(0, 1, 0, "point"),),
        (Span(0, 1, 0, "pair"), Span(1, 1, 0, "point")),  # same id
    ],
)
def test_segment_spans_that_do_not_nest_are_rejected(spans: tuple[Span, ...]) -> None:
    with pytest.raises(ValueError, match=r"Spans are not nested|same id"):
        Segment("text", spans)


def test_builder_without_open_pair_cannot_close() -> None:
    with pytest.raises(IndexError):
        SegmentBuilder().close()
