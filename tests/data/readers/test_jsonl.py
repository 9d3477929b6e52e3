import json
from pathlib import Path

import pytest

from regard.config.sources import JsonlConfig
from tests.data.readers.formats import read_all, read_until_error


def write_jsonl(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": "a", "source": "b", "target": "c"}', "The key 'source' occurs twice"),
        (r'{"source": "a\ud83d", "target": "c"}', r"a lone surrogate, \ud83d, at character 2"),
        (r'{"source": "\ude00\ud83d", "target": "c"}', r"a lone surrogate, \ude00, at character 1"),
        ('{"source": "a"}', "The object has no key 'target'"),
        ('{"source": 1, "target": "c"}', "'source' is not a string: 1"),
        ('{"source": ["a"], "target": "c"}', "'source' is not a string"),
        ('["a", "c"]', "not a JSON object"),
        ('{"source": "a", "target": "c"', "Not JSON"),
        ('{"source": "a", "target": "c"} {}', "Not JSON"),
        ('{"source": "a", "target": "c", "x": ' + "9" * 5000 + "}", "Not JSON"),
        ('{"x": ' * 100_000, "Not JSON"),
    ],
    ids=lambda text: text[:40],
)
def test_ambiguous_records_are_refused(line: str, message: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path, '{"source": "fine", "target": "gut"}', line)
    rows_read, error = read_until_error(JsonlConfig(path=path, target="target"))
    assert rows_read == [("fine", "gut")]
    assert message in error.message
    assert error.location == f"{path}:2"


def test_whole_surrogate_pairs_are_characters(tmp_path: Path) -> None:
    (example,), _ = read_all(JsonlConfig(path=write_jsonl(tmp_path, r'{"source": "\ud83d\ude00"}')))
    assert example.source == "😀"


def test_duplicate_keys_that_are_not_read_are_counted(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path, '{"source": "a"}', '{"source": "b", "meta": {"x": 1, "x": 2}}', '{"source": "c"}')
    examples, defects = read_all(JsonlConfig(path=path))
    assert [example.source for example in examples] == ["a", "b", "c"]
    assert str(defects) == f"duplicate key (not read): 1, first at {path}:2"


def test_nulls_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path, '{"source": "a", "target": null}', '{"source": "b", "target": "c"}')
    examples, defects = read_all(JsonlConfig(path=path, target="target"))
    assert [(example.source, example.location.line) for example in examples] == [("b", 2)]
    assert str(defects) == f"null left out: 1, first at {path}:1"


@pytest.mark.parametrize(("label", "text"), [("good", "good"), (3, "3"), (True, "true")])
def test_labels_may_be_numbers(label: object, text: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path, json.dumps({"source": "a", "label": label}))
    assert read_all(JsonlConfig(path=path, label="label"))[0][0].label == text


@pytest.mark.parametrize("label", [None, 1.5, ["a"]])
def test_other_labels_are_refused(label: object, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path, json.dumps({"source": "a", "label": label}))
    assert read_until_error(JsonlConfig(path=path, label="label"))[1].location == f"{path}:1"
