"""Paths that hold no model of Regard are refused with the command that helps."""

from pathlib import Path

import pytest

import regard
from regard.base.errors import RegardError


def test_load_hugging_face_folder_names_the_import_command(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(RegardError, match=f"regard import {tmp_path} --out"):
        regard.load(tmp_path)
    with pytest.raises(RegardError, match="Hugging Face"):
        regard.look_into(tmp_path, "Hi")


def test_load_gguf_file_names_the_import_command(tmp_path: Path) -> None:
    (tmp_path / "llama.gguf").write_bytes(b"GGUF")
    with pytest.raises(RegardError, match=r"regard import .*llama\.gguf --out"):
        regard.load(tmp_path / "llama.gguf")
