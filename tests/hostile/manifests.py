"""Manifests with wrong names, sizes or hashes, or with more JSON than a folder can need."""

import json
import os
from collections.abc import Callable
from typing import Any

from tests.hostile.attack import attack
from tests.hostile.doors import Place

DEEP = 100_000
NAME = "manifest.json"
Files = dict[str, Any]


def _rewrite_manifest(place: Place, change: Callable[[Files], object]) -> None:
    """Change the manifest and write it in Regard's format."""
    path = place.folder / NAME
    manifest = json.loads(path.read_bytes())
    change(manifest["files"])
    path.write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


def _add_file(place: Place, name: str) -> None:
    """Add a file to the manifest."""
    _rewrite_manifest(place, lambda files: files.update({name: {"bytes": 5, "sha256": "0" * 64}}))


@attack("load", "manifest is damaged")
def escape_upwards(place: Place) -> None:
    """A name that leaves the folder: ../outside/victim.txt."""
    _add_file(place, "../outside/victim.txt")


@attack("load", "manifest is damaged")
def escape_by_root(place: Place) -> None:
    """A name that is an absolute path."""
    _add_file(place, "/etc/passwd")


@attack("load", "manifest is damaged")
def name_with_nul(place: Place) -> None:
    """A name with a NUL in it."""
    _add_file(place, "model\0.toml")


@attack("load", "manifest is damaged")
def endless_name(place: Place) -> None:
    """A name of 100,000 letters."""
    _add_file(place, "x" * 100_000)


@attack("load", "manifest is damaged")
def name_for_the_terminal(place: Place) -> None:
    """A name that would clear the terminal and print a false message."""
    _add_file(place, "\x1b[2J\x1b[HAll is well.\r")


@attack("load", r"\\x1b\[2JAll is well\. is not in the manifest")
def file_for_the_terminal(place: Place) -> None:
    """A file in the folder whose name would clear the terminal and print a false message."""
    (place.folder / "\x1b[2JAll is well.").touch()


@attack("load", "manifest is damaged")
def names_of_windows(place: Place) -> None:
    """Files named like devices and drives of Windows, present and sealed."""
    for name in ("NUL", "aux.txt", "C:evil", "..\\up"):
        (place.folder / name).write_text("there")
    place.write_manifest()


@attack("load", "has different content")
def lie_about_content(place: Place) -> None:
    """Weights of the right size with one byte changed."""
    path = place.folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@attack("load", "bytes, not 1000000000000000000")
def lie_about_size(place: Place) -> None:
    """A manifest that claims an exabyte of weights."""
    _rewrite_manifest(place, lambda files: files["model.safetensors"].update(bytes=10**18))


@attack("load", "manifest is damaged")
def facts_of_wrong_types(place: Place) -> None:
    """Sizes that are lists, hashes that are numbers."""
    _rewrite_manifest(place, lambda files: files.update({"model.toml": {"bytes": [1], "sha256": 1e300}}))


@attack("load", "manifest is damaged")
def deep_manifest(place: Place) -> None:
    """100,000 nested lists."""
    (place.folder / NAME).write_text("[" * DEEP + "]" * DEEP)


@attack("load", "manifest is damaged")
def manifest_with_keys_twice(place: Place) -> None:
    """The same file twice, with different hashes."""
    path = place.folder / NAME
    text = path.read_text()
    path.write_text(text.replace('"files": {', '"files": {"model.toml": {"bytes": 1, "sha256": ""},', 1))


@attack("load", r"manifest\.json")
def endless_manifest(place: Place) -> None:
    """A manifest of 16 GB that is sparse."""
    os.truncate(place.folder / NAME, 16 << 30)


@attack("load", "bytes; the limit is")
def crowded_manifest(place: Place) -> None:
    """A manifest that names 30,000 files."""
    _rewrite_manifest(place, lambda files: files.update({f"f{n}": {"bytes": 1, "sha256": ""} for n in range(30_000)}))


@attack("load", "manifest is damaged")
def manifest_of_no_text(place: Place) -> None:
    """Bytes that are not UTF-8."""
    (place.folder / NAME).write_bytes(b'{"files": {"\xff\xfe": 1}}')


@attack("load", "manifest is damaged")
def empty_manifest(place: Place) -> None:
    """An empty manifest."""
    (place.folder / NAME).write_bytes(b"")


@attack("load", "files")
def crowded_folder(place: Place) -> None:
    """A folder with 6,000 files."""
    (place.folder / "many").mkdir()
    for number in range(6_000):
        (place.folder / "many" / str(number)).touch()


@attack("load", "deep|not in the manifest|folders")
def deep_folder(place: Place) -> None:
    """300 nested folders, and a file at the bottom."""
    before, here = os.getcwd(), place.folder  # noqa: PTH109 - the paths are too long for pathlib
    os.chdir(here)
    for _ in range(300):
        os.mkdir("d")  # noqa: PTH102
        os.chdir("d")
    with open("bottom", "w") as file:  # noqa: PTH123
        file.write("here")
    os.chdir(before)
