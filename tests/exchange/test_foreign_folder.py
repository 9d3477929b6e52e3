"""Every file of an untrusted folder is opened by `ForeignFolder`, which refuses links that leave the folder."""

import ast
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from regard import exchange
from regard.base import extras
from regard.base.errors import RegardError
from regard.exchange.export import ExportOptions, export_model
from regard.exchange.foreign_folder import ForeignFolder
from regard.exchange.importer import import_model
from regard.text.chat_template import find_chat_template
from tests.exchange.folders import write_case
from tests.exchange.models import POSITIONS

OPENERS = {
    "open",
    "read_bytes",
    "read_text",
    "read_json",
    "read_regular_file",
    "load_tensors",
    "load_file",
    "safe_open",
}
OTHER_FILES = {  # modules that open files which are not part of a foreign folder
    "argos/write.py": "files of the package and of the export",
    "engine_cache.py": "a file that it has written",
    "foreign_folder.py": "the one place",
    "gguf/format.py": "the file that the user names",
    "huggingface/write.py": "a verified model of Regard",
    "onnx/runner.py": "the export that was just written",
    "provenance.py": "a verified model of Regard",
    "web/write.py": "files of the package and of the export",
}
opened: list[str] | None = None  # paths, while a test records them


def _record(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and opened is not None and isinstance(arguments[0], str | os.PathLike):
        opened.append(os.fspath(arguments[0]))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sharded encoder-decoder with two tokenizers and every optional file that an import reads."""
    root = tmp_path_factory.mktemp("foreign")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(extras.EXTRAS, "huggingface", (("no_such_module",), ""))  # the proof is not under test
        write_case("marian-separate-bias=True", root / "ours")
        folder, _ = export_model(root / "ours", "huggingface", options=ExportOptions(max_positions=POSITIONS))
    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    for shard, part in (("a.safetensors", names[::2]), ("b.safetensors", names[1::2])):
        save_file({name: tensors[name] for name in part}, folder / shard)
    index = {name: f"{'ab'[number % 2]}.safetensors" for number, name in enumerate(names)}
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    (folder / "special_tokens_map.json").write_text("{}")
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (folder / "modules.json").write_text("[]")
    (folder / "sentence_bert_config.json").write_text("{}")
    return folder


def _list_opened(folder: Path, out: Path) -> set[str]:
    """Import a folder and return the names of its files that were opened."""
    global opened
    opened = []
    try:
        import_model(folder, out)
        return {os.path.relpath(path, folder) for path in opened if Path(path).is_relative_to(folder)}
    finally:
        opened = None


@pytest.fixture(scope="module")
def names(foreign: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    sys.addaudithook(_record)  # Python has no way to remove it
    return _list_opened(foreign, tmp_path_factory.mktemp("out") / "model")


def test_import_reads_every_kind_of_file(foreign: Path, names: set[str]) -> None:
    files = {str(path.relative_to(foreign)) for path in foreign.rglob("*") if path.is_file()}
    assert files - names == {"manifest.json", "parity.json"}  # by Regard, for the export


def test_import_each_file_linked_out_is_refused(foreign: Path, names: set[str], tmp_path: Path) -> None:
    for number, name in enumerate(sorted(names)):
        folder, private = tmp_path / str(number), tmp_path / f"{number}.private"
        shutil.copytree(foreign, folder)
        (folder / name).rename(private)
        (folder / name).symlink_to(private)
        with pytest.raises(RegardError, match="This is a link to a file outside the folder") as raised:
            import_model(folder, tmp_path / "model")
        assert raised.value.location == str(folder / name)
    assert not (tmp_path / "model").exists()


def test_import_hugging_face_cache_follows_links_to_its_blobs(foreign: Path, names: set[str], tmp_path: Path) -> None:
    snapshot = tmp_path / "models--a--b" / "snapshots" / "0123"
    blobs = tmp_path / "models--a--b" / "blobs"
    shutil.copytree(foreign, snapshot)
    blobs.mkdir()
    for number, name in enumerate(sorted(names)):
        (snapshot / name).rename(blobs / str(number))
        (snapshot / name).symlink_to(os.path.relpath(blobs / str(number), (snapshot / name).parent))
    (tmp_path / "named by a link").symlink_to(snapshot)
    imported = import_model(tmp_path / "named by a link", tmp_path / "model")
    assert len(repr(imported)) < 500
    assert find_chat_template(tmp_path / "model") == "{{ messages[0].content }}"


def test_find_link_inside_the_folder_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("text")
    (tmp_path / "name").symlink_to("real")
    folder = ForeignFolder(tmp_path)
    assert folder.find("name") == tmp_path / "name"
    assert folder.find("other") is None


@pytest.mark.parametrize("name", ["", ".", "..", "/etc/passwd", "../x", "a\0b", "x" * 5000, "file/x"])
def test_find_name_that_is_no_file_of_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(RegardError):
        ForeignFolder(tmp_path).find(name)


def test_exchange_opens_foreign_files_in_one_place() -> None:
    """A new file of a foreign folder must go through `ForeignFolder`, also in branches that no test runs."""
    package = Path(exchange.__file__).parent
    modules = {str(path.relative_to(package)): path for path in package.rglob("*.py")}
    assert OTHER_FILES.keys() <= modules.keys()
    for name in modules.keys() - OTHER_FILES.keys():
        for node in ast.walk(ast.parse(modules[name].read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                receiver, _, function = ast.unparse(node.func).rpartition(".")
                assert function not in OPENERS or receiver in ("files", "folder.files"), f"{name}:{node.lineno}"
