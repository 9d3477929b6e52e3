from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from regard.config.sources import ParquetConfig
from tests.data.readers.formats import read_all, read_until_error


def write_parquet(tmp_path: Path, **columns: Any) -> str:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=1000)
    return str(path)


def test_rows_of_many_groups_come_in_order(tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(5000)]
    path = write_parquet(tmp_path, other=list(range(5000)), source=texts, label=[i % 3 for i in range(5000)])
    examples, _ = read_all(ParquetConfig(path=path, label="label"))
    assert [example.source for example in examples] == texts
    assert [example.location.line for example in examples] == list(range(1, 5001))
    assert [example.label for example in examples[:4]] == ["0", "1", "2", "0"]


@pytest.mark.parametrize("kind", [pyarrow.large_string(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())])
def test_other_kinds_of_text_columns(kind: Any, tmp_path: Path) -> None:
    path = write_parquet(tmp_path, source=pyarrow.array(["a", "b", "a"]).cast(kind))
    assert [example.source for example in read_all(ParquetConfig(path=path))[0]] == ["a", "b", "a"]


def test_nulls_are_left_out_and_counted(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, source=["a", None, "c"], target=["x", "y", "z"])
    examples, defects = read_all(ParquetConfig(path=path, target="target"))
    assert [(example.source, example.target) for example in examples] == [("a", "x"), ("c", "z")]
    assert str(defects) == f"null left out: 1, first at {path}:2"


def test_bytes_that_are_not_utf8_are_refused_with_their_row(tmp_path: Path) -> None:
    raw = pyarrow.array([b"a"] * 1500 + [b"b\xff"] + [b"c"])
    texts = pyarrow.Array.from_buffers(pyarrow.string(), len(raw), raw.buffers())
    path = write_parquet(tmp_path, source=texts)
    _, error = read_until_error(ParquetConfig(path=path))
    assert error.location == f"{path}:1501"
    assert error.message == "Not UTF-8: 0xff, byte 2 of the text."


def test_wrong_columns_are_refused(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, text=["a"], number=[1])
    assert "The file has these columns: text, number." in str(read_until_error(ParquetConfig(path=path))[1])
    assert "has type int64, not string" in read_until_error(ParquetConfig(path=path, source="number"))[1].message


def test_a_compressed_file_is_refused_with_the_fix(tmp_path: Path) -> None:
    path = Path(write_parquet(tmp_path, source=["a"])).rename(tmp_path / "a.parquet.gz")
    path.write_bytes(b"\x1f\x8b" + path.read_bytes())
    assert "decompress .parquet.gz first" in str(read_until_error(ParquetConfig(path=str(path)))[1])
