import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.documents.registry import find_format
from regard.documents.segment import Segment
from tests.documents.marks import show, upper

TIMES = "00:00:01,000 --> 00:00:02,500"
VTT_TIMES = "01:00.000 --> 01:02.000 align:start"


def read(suffix: str, text: str) -> list[str]:
    document = find_format(f"a{suffix}").read(text.encode())
    assert document.write(document.segments) == text.encode()
    return [show(segment) for segment in document.segments]


@pytest.mark.parametrize(
    ("suffix", "text", "segments"),
    [
        (".srt", f"1\n{TIMES}\nOne\ntwo\n\n2\n{TIMES}\nThree", ["One two", "Three"]),
        (".srt", f"1\r\n{TIMES}\r\n<i>One <b>two</b></i>\r\n\r\n", ["One {two}"]),
        (".srt", f"1\n{TIMES}\n{{\\an8}}One <font color='#fff'>two</font>\nthree<i>\n", ["One {two} three"]),
        (".srt", f"1\n{TIMES}\n- One.\n- Two\nthree.\n-5 degrees\n", ["One.", "Two three. -5 degrees"]),
        (".srt", f"1\n{TIMES}\n12\n\n2\n{TIMES}\n\n3\n{TIMES}\nOne & <two\n", ["One & <two"]),
        (".srt", f"1\n{TIMES}\nOne\n2\n{TIMES}\nTwo\n\nmore\n", ["One", "Two", "more"]),
        (".srt", "no times", ["no times"]),
        (
            ".vtt",
            f"WEBVTT - Title\nKind: captions\n\nSTYLE\n::cue {{ }}\n\nNOTE a\nb\n\nintro\n{VTT_TIMES}\n"
            "<v Ann Lee>One <c.x>two</c> <00:01.500>three &amp; four\n\nREGION\nid:a\n",
            ["One {two} ^three & four"],
        ),
        (".vtt", f"WEBVTT\n\n{VTT_TIMES}\n<v Ann>One</v>\n<v Bob>Two</v>", ["{One} {Two}"]),
    ],
)
def test_subtitles_cues_are_segments(suffix: str, text: str, segments: list[str]) -> None:
    assert read(suffix, text) == segments


@pytest.mark.parametrize(
    ("source", "translation", "lines"),
    [
        ("One two", "Eins zwei drei vier", ["Eins zwei drei vier"]),
        ("One two\nthree four", "Eins zwei drei vier fünf", ["Eins zwei drei", "vier fünf"]),
        ("One\ntwo", "Eins", ["Eins"]),
        ("One", "w" * 50, ["w" * 50]),
        ("One", "word " * 20 + "end", ["word " * 6 + "word", "word " * 6 + "word", "word " * 6 + "end"]),
        ("One\r\ntwo", "Eins zwei", ["Eins", "zwei"]),
        ("One", "Eins\n\nzwei", ["Eins  zwei"]),
    ],
)
def test_subtitles_translation_has_lines_like_its_source(source: str, translation: str, lines: list[str]) -> None:
    newline = "\r\n" if "\r" in source else "\n"
    data = f"1{newline}{TIMES}{newline}{source}{newline}{newline}2{newline}".encode()
    written = find_format("a.srt").read(data).write([Segment(translation)]).decode()
    assert written == f"1{newline}{TIMES}{newline}{newline.join(lines)}{newline}{newline}2{newline}"


def test_subtitles_tags_are_never_broken_and_vtt_is_escaped() -> None:
    document = find_format("a.vtt").read(f"WEBVTT\n\n{VTT_TIMES}\n<v Ann Lee>One</v> &lt; two\nthree\n".encode())
    (segment,) = document.segments
    assert document.write([upper(segment)]).decode().splitlines()[3:] == ["<v Ann Lee>ONE</v> &lt; TWO", "THREE"]


UNITS = [
    *(f"{TIMES}\n", "\n", "1\n", "a", "b c", " ", "<i>", "</i>", "<v X>", "{\\an8}", "- ", "&amp;", "NOTE x\n"),
    *("WEBVTT\n", "\r\n", "<", ">", "<00:01>", "-->", "\n\n"),
]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(UNITS), max_size=40), st.sampled_from([".srt", ".vtt"]))
def test_subtitles_of_any_form_keep_their_bytes(units: list[str], suffix: str) -> None:
    text = "".join(units)
    document = find_format(f"a{suffix}").read(text.encode())
    assert document.write(document.segments) == text.encode()
    written = document.write([upper(segment) for segment in document.segments])
    again = find_format(f"a{suffix}").read(written)
    assert [segment.text.split() for segment in again.segments] == [
        segment.text.upper().split() for segment in document.segments
    ]
