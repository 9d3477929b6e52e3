"""The file format: files of the gguf package are read, damaged ones are refused."""

from pathlib import Path

import gguf
import numpy as np
import pytest

from regard.base.errors import DamagedError
from regard.exchange.gguf.dequantize import dequantize
from regard.exchange.gguf.format import parse
from tests.exchange.gguf.factories import make_model, write_model


def test_parse_file_of_the_gguf_package_reads_its_tensors(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_block_count(2)
    writer.add_tensor("a.weight", np.arange(6, dtype=np.float32).reshape(2, 3))
    for step in ("write_header_to_file", "write_kv_data_to_file", "write_tensors_to_file", "close"):
        getattr(writer, step)()
    file = parse(np.fromfile(tmp_path / "a.gguf", np.uint8), location="a.gguf")
    assert file.metadata["llama.block_count"] == 2
    assert dequantize(file.tensors["a.weight"]).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    write_model(make_model(), tmp_path / "tiny.gguf")
    content = (tmp_path / "tiny.gguf").read_bytes()
    for damaged in (b"", b"GGUF", content[:-40], b"GGML" + content[4:], content[:300], content[:8] + b"\xff" * 16):
        with pytest.raises(DamagedError):
            parse(np.frombuffer(damaged, np.uint8), location="x.gguf")
