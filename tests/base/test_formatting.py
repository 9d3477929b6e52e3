"""Formatting of numbers and text."""

from regard.base.formatting import escape_control_characters


def test_text_cannot_move_the_cursor() -> None:
    assert escape_control_characters("a\rb\tc\x07\u202e") == "a\\rb\\tc\\x07\\u202e"
    assert escape_control_characters("Grüße, 世界 🙂") == "Grüße, 世界 🙂"
