import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.documents import yaml_strings
from regard.documents.segment import Segment
from regard.documents.yaml_strings import YamlFormat


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: one # note\n", "a: X # note\n"),
        ("a: 'it''s'\n", "a: 'X'\n"),
        ('a: "on\\u0065"\n', 'a: "X"\n'),
        ("a: &x one\nb: *x\n", "a: &x X\nb: *x\n"),
        ("a: !!str one\n", "a: !!str X\n"),
        ("a: [one, 2, 'two', {b: three}]\n", "a: [X, 2, 'X', {b: X}]\n"),
        ("- one\n-   - two\n", "- X\n-   - X\n"),
        ("a: |\n  one\n    two\n\n  three\n", "a: |\n  X\n    X\n\n  X\n"),
        ("a: >-\n  one\n  two\n\n  three\nb: four", "a: >-\n  X\n\n  X\nb: X"),
        ("a: one\n  two\n", "a: X\n"),
        (
            "a: yes\nb: 2020-01-01\nc: ~\nd: 1.5\ne:\nf: !tag one\n",
            "a: yes\nb: 2020-01-01\nc: ~\nd: 1.5\ne:\nf: !tag one\n",
        ),
        ("--- one\n...\n---\na: two\r\n", "--- X\n...\n---\na: X\r\n"),
    ],
)
def test_yaml_values_are_written(before: str, after: str) -> None:
    document = YamlFormat().read(before.encode())
    assert document.write(document.segments).decode() == before
    assert document.write([Segment("X")] * len(document.segments)).decode() == after


@pytest.mark.parametrize("style", ["{}", "'a'", '"a"', "[{}]", "{{k: {}}}"])
@settings(max_examples=25, deadline=None)
@given(
    text=st.text(st.sampled_from("ab: #'\"\\,[]{}&*!|>%@`-?\n\u0085é\u2028 1yesno"), min_size=1) | st.text(min_size=1)
)
def test_yaml_any_translation_is_read_back(style: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    source = f"key: {style.format('a')}\nother: b\n"
    document = YamlFormat().read(source.encode())
    written = document.write([Segment(text), Segment("b")]).decode()
    value = yaml.safe_load(written)
    expected = {"[{}]": [text], "{{k: {}}}": {"k": text}}.get(style, text)
    assert value == {"key": expected, "other": "b"}


def test_yaml_block_translation_stays_on_its_line() -> None:
    document = YamlFormat().read(b"a: |\n  one\n")
    assert yaml.safe_load(document.write([Segment("x\ny: 'z' # \xe9")])) == {"a": "x y: 'z' # \xe9\n"}


def test_yaml_segments_have_paths() -> None:
    document = YamlFormat().read(b"en:\n  a: x\n  1: [y, {b: z}]\n")
    assert [segment.location for segment in document.segments] == ["en.a", "en.1.0", "en.1.1.b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "Not a YAML file"),
        ("a: \x00", "Not a YAML file"),
        ("[" * 30_000, "nested more than 100 deep"),
        ("? [a]\n: b", "A key is a list or a mapping"),
    ],
)
def test_yaml_that_is_malformed_is_rejected(text: str, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        YamlFormat().read(text.encode())


def test_yaml_that_is_large_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_strings, "MAX_SIZE", 3)
    with pytest.raises(RegardError, match="4 bytes, more than 3"):
        YamlFormat().read(b"a: b")
