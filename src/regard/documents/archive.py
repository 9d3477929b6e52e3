"""Zip archives of office documents: some members are replaced, the others keep their content.

The archive comes from someone else, so it is checked before any member is decompressed: number, names, kinds, sizes and
compression ratios of the members. Nothing is ever written to disk.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Mapping

from regard.base.errors import RegardError

MAX_MEMBERS = 10_000
MAX_SIZE = 1 << 28  # bytes of all members, decompressed
MAX_RATIO = 200  # decompressed bytes per compressed byte, of all members; XML reaches 20 to 50
_FREE_SIZE = 1 << 20  # smaller archives may have any ratio
_SYMLINK, _FILE_TYPE = 0o120000, 0o170000  # of the Unix mode
_BAD_NAME = re.compile(r'^[/\\]|^[A-Za-z]:|\\|(^|/)\.\.?(/|$)|//|[\x00-\x1f\x7f<>:"|?*]')
_MACROS = re.compile(r"(^|/)(vba\w*\.(bin|xml)|Basic/|Scripts/|activeX/|macrosheets/)", re.IGNORECASE)


class Archive:
    """A checked archive in memory."""

    def __init__(self, data: bytes) -> None:
        """Open an archive.

        Raises:
            RegardError: The data is not a zip archive, or it is unsafe to open.
        """
        try:
            self._file = zipfile.ZipFile(io.BytesIO(data))
            self._members = self._file.infolist()
        except (zipfile.BadZipFile, zipfile.LargeZipFile, ValueError, OverflowError, NotImplementedError) as error:
            raise _damaged(f"not a zip archive ({error})") from error
        self._data = data
        _check_members(self._members, len(data))
        self.names = [member.filename for member in self._members]

    def read(self, name: str) -> bytes:
        """Return the content of a member.

        Raises:
            RegardError: The archive has no such member, or it is damaged.
        """
        try:
            return self._file.read(name)  # never more than the declared size, which was checked
        except KeyError:
            raise _damaged(f"'{name}' is missing") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError) as error:
            raise _damaged(f"'{name[:100]}' cannot be read ({error})") from error

    def replace(self, contents: Mapping[str, bytes]) -> bytes:
        """Return the archive with new contents of some members.

        The order, names, dates, attributes and compression methods of all members are kept. Without a change, the
        result is the original, byte for byte.
        """
        changed = {name: content for name, content in contents.items() if content != self.read(name)}
        if not changed:
            return self._data
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w") as file:
            file.comment = self._file.comment
            for member in self._members:
                name = member.filename
                file.writestr(_copy_info(member), changed[name] if name in changed else self.read(name))
        return output.getvalue()


def _copy_info(member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Copy what describes a member, without its position and size."""
    copy = zipfile.ZipInfo(member.filename, member.date_time)
    for field in ("compress_type", "comment", "extra", "create_system", "external_attr", "internal_attr"):
        setattr(copy, field, getattr(member, field))
    return copy


def _check_members(members: list[zipfile.ZipInfo], archive_size: int) -> None:
    if len(members) > MAX_MEMBERS:
        raise _unsafe(f"it has {len(members):,} members, more than {MAX_MEMBERS:,}")
    seen = set[str]()
    for member in members:
        name = member.orig_filename
        if _BAD_NAME.search(name) or len(name) > 255:
            raise _unsafe(f"the name '{name[:100]}' of a member leaves the archive or is not portable")
        if name.lower() in seen:
            raise _unsafe(f"two members are named '{name[:100]}'")
        seen.add(name.lower())
        if member.create_system == 3 and member.external_attr >> 16 & _FILE_TYPE == _SYMLINK:
            raise _unsafe(f"'{name}' is a symbolic link")
        if member.flag_bits & 0x1:
            raise _unsafe(f"'{name}' is encrypted")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _unsafe(f"'{name}' is compressed with method {member.compress_type}")
        if _MACROS.search(name):
            raise _unsafe(f"it contains macros ('{name}')")
    size = sum(member.file_size for member in members)
    if size > MAX_SIZE:
        raise _unsafe(f"it unpacks to {size >> 20:,} MB, more than {MAX_SIZE >> 20}")
    compressed = min(archive_size, sum(member.compress_size for member in members))
    if size > _FREE_SIZE and size > MAX_RATIO * compressed:
        raise _unsafe(f"it unpacks to {size // max(compressed, 1):,} times its size")


def _damaged(reason: str) -> RegardError:
    return RegardError(
        f"The document is damaged: {reason}.",
        location="the zip archive of the document",
        hint="Open it in its program and save it again.",
    )


def _unsafe(reason: str) -> RegardError:
    return RegardError(
        f"The document is refused: {reason}.",
        location="the zip archive of the document",
        hint="Open it in its program, remove what is refused, and save it again.",
    )
