"""Segments as text, for tests of formats."""

from regard.documents.segment import Segment, SegmentBuilder, iter_pieces


def show(segment: Segment) -> str:
    """Write a segment with its spans: {a pair}, a point as ^, [protected]."""
    marks = {"open": "{", "close": "}", "point": "^"}
    return "".join(
        f"[{piece.text}]" if piece.kind == "protected" else marks.get(piece.kind, piece.text)
        for piece in iter_pieces(segment)
    )


def upper(segment: Segment) -> Segment:
    """Write the texts of a segment in capitals, without the protected ones."""
    builder = SegmentBuilder()
    for piece in iter_pieces(segment):
        builder.add(piece._replace(text=piece.text.upper()) if piece.kind == "text" else piece)
    return builder.build()
