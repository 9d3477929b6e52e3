"""Files to translate: plain text, Markdown, HTML, subtitles. The result has the structure of the file."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote

from regard.base.errors import RegardError
from regard.serve.html_text import translate_html

TranslateTexts = Callable[[list[str]], Awaitable[list[str]]]
_CUE_LINE = re.compile(r"^\s*$|^\d+$|-->|^WEBVTT|^NOTE\b|^STYLE\b|^REGION\b")  # numbers, times and headers of subtitles
_MARKDOWN_MARK = re.compile(r"^(\s*(?:#{1,6}\s+|[-*+]\s+|\d+[.)]\s+|>\s+)*)(.*?)(\s*)$", re.DOTALL)
MEDIA_TYPES = {".txt": "text/plain", ".md": "text/markdown", ".srt": "text/plain", ".vtt": "text/vtt"}
HTML = {".html", ".htm", ".xhtml"}


@dataclass(frozen=True)
class TranslatedFile:
    """A translated file."""

    name: str
    content: bytes
    media_type: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers that offer it as a download."""
        return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(self.name)}"}


async def translate_document(name: str, content: bytes, translate: TranslateTexts) -> TranslatedFile:
    """Translate a file.

    Args:
        name: Its name; the ending decides how it is read.
        content: Its bytes, in UTF-8.
        translate: Translates texts.

    Raises:
        RegardError: The ending is not endings, or the file is not UTF-8.
    """
    path = PurePosixPath(PurePosixPath(name.replace("\\", "/")).name)
    suffix = path.suffix.lower()
    if suffix not in HTML and suffix not in MEDIA_TYPES:
        endings = ", ".join(sorted({*MEDIA_TYPES, *HTML}))
        raise RegardError(f"Files that end in '{suffix[:10]}' cannot be translated.", fix=f"Use one of: {endings}.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RegardError("The file is not UTF-8.", fix="Save it as UTF-8.") from None
    output_name = f"{path.stem}.translated{suffix}"
    if suffix in HTML:
        return TranslatedFile(output_name, (await translate_html(text, translate)).encode(), "text/html; charset=utf-8")
    lines = text.splitlines(keepends=True)
    parts = [_split_line(line, suffix) for line in lines]
    indices = [index for index, (_, middle, _) in enumerate(parts) if middle]
    translations = await translate([parts[index][1] for index in indices]) if indices else []
    for index, translation in zip(indices, translations, strict=True):
        before, _, after = parts[index]
        parts[index] = (before, translation, after)
    return TranslatedFile(
        output_name, "".join("".join(part) for part in parts).encode(), f"{MEDIA_TYPES[suffix]}; charset=utf-8"
    )


def _split_line(line: str, suffix: str) -> tuple[str, str, str]:
    """Return what stays before a line's text, the text, and what stays after it."""
    if suffix in (".srt", ".vtt") and _CUE_LINE.search(line.strip()):
        return line, "", ""
    pattern = _MARKDOWN_MARK.match(line) if suffix == ".md" else re.match(r"^(\s*)(.*?)(\s*)$", line, re.DOTALL)
    assert pattern is not None  # noqa: S101 - both match any text
    return pattern.group(1), pattern.group(2), pattern.group(3)
