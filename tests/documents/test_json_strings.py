import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base import limits
from regard.base.errors import RegardError
from regard.documents.json_strings import JsonFormat
from regard.documents.segment import Segment

VALUES = st.recursive(
    st.text() | st.integers() | st.none() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5).map(lambda key: f"k{key}"), inner, max_size=3)
    ),
)  # fmt: skip


def collect(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in collect(item)]


@settings(max_examples=40, deadline=None)
@given(VALUES, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_json_values_are_segments_and_written_back(value: object, indent: int | None, is_ascii: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    try:
        data.decode()
    except UnicodeDecodeError:
        return
    document = JsonFormat().read(data)
    texts = [text for text in collect(value) if any(character.isalpha() for character in text)]
    assert [segment.text for segment in document.segments] == [text.strip() for text in texts]
    assert document.write(document.segments) == data
    written = json.loads(document.write([Segment(segment.text + "!") for segment in document.segments]))
    rewritten = [text for text in collect(written) if any(character.isalpha() for character in text)]
    assert [text.strip() for text in rewritten] == [f"{text.strip()}!" for text in texts]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('{"a": {"b": ["x", "y", {"c": "z"}]}, "d": "w"}', ["a.b.0", "a.b.1", "a.b.2.c", "d"]),
        ('"x"', [""]),
        ('{"@x": {"description": "d"}, "x": "t"}', ["x"]),
        ('{"x": {"message": "m", "description": "d", "placeholders": {"p": {"content": "c"}}}}', ["x.message"]),
        ('{"x": {"description": "d", "title": "t"}}', ["x.description", "x.title"]),
    ],
)
def test_json_segments_have_paths_and_notes_are_skipped(text: str, paths: list[str]) -> None:
    assert [segment.location for segment in JsonFormat().read(text.encode()).segments] == paths


def test_json_file_that_is_malformed_or_large_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ('{"a": "b"', "[" * 100_000, '{"a": "b"} // note'):
        with pytest.raises(RegardError, match="Not a JSON file"):
            JsonFormat().read(text.encode())
    monkeypatch.setattr(limits, "DOCUMENT", 3)
    with pytest.raises(RegardError, match="4 bytes, more than 3"):
        JsonFormat().read(b'"ab"')
