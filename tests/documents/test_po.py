# ruff: noqa: E501 - files as they are
import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.documents.po import PoFormat
from regard.documents.segment import Segment

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'


@pytest.mark.parametrize(
    ("entry", "texts", "written"),
    [
        ('msgid "One"\nmsgstr ""\n', ["One"], 'msgid "One"\nmsgstr "X0"\n'),
        ('msgid "One"\nmsgstr "Eins"\n', [], 'msgid "One"\nmsgstr "Eins"\n'),
        ('#, fuzzy\nmsgid "One"\nmsgstr "alt"\n"er"\n', ["One"], '#, fuzzy\nmsgid "One"\nmsgstr "X0"\n'),
        ('#, c-format\nmsgid ""\n"One "\n"two\\n"\nmsgstr ""\n', ["One two"], '#, c-format\nmsgid ""\n"One "\n"two\\n"\nmsgstr "X0\\n"\n'),
        (
            'msgid "a file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] "x"\nmsgstr[2] ""\n',
            ["a file", "%d files"],
            'msgid "a file"\nmsgid_plural "%d files"\nmsgstr[0] "X0"\nmsgstr[1] "x"\nmsgstr[2] "X1"\n',
        ),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n', ["b"], 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "X0"\n'),
        ('#~ msgid "One"\n#~ msgstr ""\n', [], '#~ msgid "One"\n#~ msgstr ""\n'),
        ('msgid "12 %"\nmsgstr ""\n', [], 'msgid "12 %"\nmsgstr ""\n'),
        ('msgctxt "m"\nmsgid "\\tOne"\nmsgstr   ""  \r\n# end\n', ["One"], 'msgctxt "m"\nmsgid "\\tOne"\nmsgstr   "\\tX0"  \r\n# end\n'),
    ],
)  # fmt: skip
def test_po_empty_and_fuzzy_translations_are_written(entry: str, texts: list[str], written: str) -> None:
    document = PoFormat().read((HEADER + entry).encode())
    assert [segment.text for segment in document.segments] == texts
    output = document.write([Segment(f"X{number}") for number in range(len(texts))])
    assert output.decode() == HEADER + written


def test_po_translation_of_several_lines_has_one_string_per_line() -> None:
    document = PoFormat().read(b'msgid "a\\nb"\r\nmsgstr ""\r\n')
    assert document.write([Segment('x "y"\nz\\')]) == b'msgid "a\\nb"\r\nmsgstr ""\r\n"x \\"y\\"\\n"\r\n"z\\\\"\r\n'


@settings(max_examples=40, deadline=None)
@given(st.text(st.sampled_from('ab"\\\n\té %\x07'), min_size=1).filter(lambda text: "a" in text))
def test_po_strings_are_read_and_written_like_polib(text: str) -> None:
    entry = polib.POEntry(msgid=text, msgstr="")
    document = PoFormat().read(f"{entry}".encode())
    (segment,) = document.segments
    assert segment.text == text.strip()
    (written,) = polib.pofile(document.write([segment]).decode())
    assert written.msgstr == text


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ('msgid "a\nmsgstr ""\n', "Not a line of a PO file", 1),
        ('"a"\n', "A string without a keyword", 1),
        ('msgid "a"\nmsgid "b"\n', "A second msgid", 2),
        ('\nmsgid "a"\n', "no msgid or no msgstr", 2),
        (HEADER.replace("UTF-8", "ISO-8859-1"), "not UTF-8 but ISO-8859-1", 1),
    ],
)
def test_po_that_is_malformed_is_rejected_with_its_line(text: str, message: str, line: int) -> None:
    with pytest.raises(RegardError, match=message) as caught:
        PoFormat().read(text.encode())
    assert caught.value.location == f"line {line}"
