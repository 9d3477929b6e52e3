import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.documents.segment import Segment
from regard.documents.txt import TextFormat


@given(st.text(st.sampled_from("a. \t\n\r\x85\u2028é")), st.booleans())
def test_text_written_with_its_own_segments_is_unchanged(text: str, has_mark: bool) -> None:
    data = b"\xef\xbb\xbf" * has_mark + text.encode()
    document = TextFormat().read(data)
    assert document.write(document.segments) == data
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert [segment.text for segment in document.segments] == [line.strip() for line in lines if line.strip()]
    assert [segment.location for segment in document.segments] == [
        f"line {number}" for number, line in enumerate(lines, 1) if line.strip()
    ]


def test_text_translation_stays_on_one_line() -> None:
    assert TextFormat().read(b" One.\r\n").write([Segment("Eins.\nZwei.")]) == b" Eins. Zwei.\r\n"


def test_text_that_is_not_utf8_is_rejected_with_its_position() -> None:
    with pytest.raises(RegardError, match=r"not UTF-8: invalid"):
        TextFormat().read(b"\xef\xbb\xbfab\xe4b")
