import io
import zipfile

import pytest

from regard.base.errors import RegardError
from regard.documents import archive
from regard.documents.archive import Archive


def make_zip(members: dict[str, bytes], **attributes: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, (1999, 12, 31, 23, 58, 0))
            for attribute, value in attributes.items():
                setattr(info, attribute, value)
            file.writestr(info, content)
    return buffer.getvalue()


def test_archive_without_change_is_returned_byte_for_byte() -> None:
    data = make_zip({"a": b"1", "b/c": b"2"}) + b"trailing bytes"
    assert Archive(data).replace({"a": b"1"}) == data


def test_archive_with_change_keeps_order_names_dates_and_compression() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.comment = b"a comment"
        for name, method in (
            ("mimetype", zipfile.ZIP_STORED),
            ("é.xml", zipfile.ZIP_DEFLATED),
            ("b", zipfile.ZIP_STORED),
        ):
            info = zipfile.ZipInfo(name, (1999, 12, 31, 23, 58, 0))
            info.compress_type, info.external_attr = method, 0o600 << 16
            file.writestr(info, name * 50)
    output = Archive(buffer.getvalue()).replace({"é.xml": b"new"})
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(io.BytesIO(output)) as new:
        fields = ("filename", "date_time", "compress_type", "external_attr", "create_system", "extra", "comment")
        described = [[[getattr(info, field) for field in fields] for info in file.infolist()] for file in (old, new)]
        assert described[0] == described[1]
        assert new.comment == b"a comment"
        assert {name: new.read(name) for name in new.namelist()} == {
            **{name: old.read(name) for name in old.namelist()},
            "é.xml": b"new",
        }
        assert new.testzip() is None


@pytest.mark.parametrize(
    "name", ["../a", "/a", "a/../b", "C:a", "a\\b", "a//b", "./a", "a/..", "a\x1bb", "a:b", "x" * 256]
)
def test_archive_member_name_that_is_unsafe_is_rejected(name: str) -> None:
    with pytest.raises(RegardError, match="leaves the archive or is not portable"):
        Archive(make_zip({"ok": b"", name: b""}))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no zip", "not a zip archive"),
        (make_zip({"a": b""})[:-5], "not a zip archive"),
        (make_zip({"a": b"", "A": b""}), "two members are named"),
        (make_zip({"a": b"/etc/passwd"}, external_attr=0o120777 << 16, create_system=3), "symbolic link"),
        (make_zip({"a": b"x"}, compress_type=zipfile.ZIP_BZIP2), "compressed with method 12"),
        (make_zip({"word/vbaProject.bin": b"x"}), "contains macros"),
        (make_zip({"Basic/Standard/x.xml": b"x"}), "contains macros"),
        (make_zip({"a": bytes(2 << 20)}, compress_type=zipfile.ZIP_DEFLATED), r"unpacks to [\d,]+ times its size"),
    ],
)
def test_archive_that_is_unsafe_is_rejected(data: bytes, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        Archive(data)


def test_archive_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_zip({"a": b"12", "b": b"34"})
    with monkeypatch.context() as patch:
        patch.setattr(archive, "MAX_MEMBERS", 1)
        with pytest.raises(RegardError, match="2 members, more than 1"):
            Archive(data)
    monkeypatch.setattr(archive, "MAX_SIZE", 3)
    with pytest.raises(RegardError, match="more than 0"):
        Archive(data)


def test_archive_member_that_is_damaged_or_missing_is_an_error() -> None:
    data = bytearray(make_zip({"a": b"content"}))
    data[data.index(b"content")] ^= 1
    with pytest.raises(RegardError, match="cannot be read"):
        Archive(bytes(data)).read("a")
    with pytest.raises(RegardError, match="'x' is missing"):
        Archive(bytes(data)).read("x")
