"""Durations, counts and texts, formatted for display."""


def format_duration(seconds: float) -> str:
    """Format a duration in at most two units.

    >>> format_duration(42), format_duration(130), format_duration(3725), format_duration(200_000)
    ('42 s', '2 min 10 s', '1 h 02 min', '2 d 07 h')
    """
    total_seconds = round(seconds)
    if total_seconds < 60:
        return f"{total_seconds} s"
    if total_seconds < 3600:
        return f"{total_seconds // 60} min {total_seconds % 60:02} s"
    if total_seconds < 86400:
        return f"{total_seconds // 3600} h {total_seconds % 3600 // 60:02} min"
    return f"{total_seconds // 86400} d {total_seconds % 86400 // 3600:02} h"


def pluralize(count: int, singular: str, plural: str | None = None) -> str:
    """Format a count and its noun in the right number.

    >>> pluralize(1, "line"), pluralize(1200, "line"), pluralize(2, "batch", "batches")
    ('1 line', '1,200 lines', '2 batches')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def escape_control_characters(text: str) -> str:
    r"""Make line breaks and control characters visible, so that a text cannot move the cursor.

    >>> escape_control_characters("one\n\x1b[31mtwo")
    'one⏎\\x1b[31mtwo'
    """
    visible = (("⏎" if c == "\n" else c if c.isprintable() else c.encode("unicode_escape").decode()) for c in text)
    return "".join(visible)
