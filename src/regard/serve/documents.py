"""File translation for plain text, Markdown, HTML and subtitles, preserving their structure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote

from regard.base.errors import RegardError
from regard.serve.html_text import TranslateTexts, translate_html

_VTT_BLOCK = re.compile(r"WEBVTT\b|NOTE\b|STYLE\b|REGION\b")  # up to the next empty line
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_MARKDOWN_MARK = re.compile(r"\s*+(?:#{1,6}\s++|[-*+]\s++|\d++[.)]\s++|>\s++)*+")
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # of `str.splitlines`
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
        """Response headers for a download."""
        return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(self.name)}"}


async def translate_document(name: str, content: bytes, translate: TranslateTexts, *, max_lines: int) -> TranslatedFile:
    """Translate a file.

    Args:
        name: The file name; the extension determines the format.
        content: The file content, in UTF-8.
        translate: Translates texts.
        max_lines: Maximum number of lines, or of tags in HTML.

    Raises:
        RegardError: The extension is unknown, the file is not UTF-8, or it has too many lines.
    """
    path = PurePosixPath(PurePosixPath(name.replace("\\", "/")).name)
    suffix = path.suffix.lower()
    if suffix not in HTML and suffix not in MEDIA_TYPES:
        endings = ", ".join(sorted({*MEDIA_TYPES, *HTML}))
        raise RegardError(f"'{suffix[:10]}' files are not supported.", hint=f"Use one of: {endings}.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RegardError("The file is not UTF-8.", hint="Save it as UTF-8.") from None
    if sum(map(text.count, "<" if suffix in HTML else _LINE_ENDS)) > max_lines:  # before lists of them are made
        raise RegardError(f"The file has more than {max_lines:,} lines or tags.", hint="Split the file.")
    output_name = f"{path.stem}.translated{suffix}"
    if suffix in HTML:
        return TranslatedFile(output_name, (await translate_html(text, translate)).encode(), "text/html; charset=utf-8")
    lines = text.splitlines(keepends=True)
    copied_mask = _find_copied_lines(lines, suffix)
    parts = [
        (line, "", "") if is_copied else _split_line(line, suffix)
        for line, is_copied in zip(lines, copied_mask, strict=True)
    ]
    indices = [index for index, (_, middle, _) in enumerate(parts) if middle]
    translations = await translate([parts[index][1] for index in indices]) if indices else []
    for index, translation in zip(indices, translations, strict=True):
        before, _, after = parts[index]
        parts[index] = (before, translation, after)
    return TranslatedFile(
        output_name, "".join("".join(part) for part in parts).encode(), f"{MEDIA_TYPES[suffix]}; charset=utf-8"
    )


def _split_line(line: str, suffix: str) -> tuple[str, str, str]:
    """Return the fixed part before a line's text, the text, and the fixed part after it."""
    mark = _MARKDOWN_MARK.match(line) if suffix == ".md" else None
    start = len(line) - len(line.lstrip()) if mark is None else mark.end()
    text = line[start:].rstrip()
    return line[:start], text, line[start + len(text) :]


def _find_copied_lines(lines: Sequence[str], suffix: str) -> list[bool]:
    """Return whether each line is copied: times, numbers and notes in subtitles, code in Markdown."""
    if suffix == ".md":
        return _find_code(lines)
    if suffix not in (".srt", ".vtt"):
        return [False] * len(lines)
    copied_mask, is_block, is_first = [], False, True
    for index, line in enumerate(lines):
        is_empty, has_times = not line.strip(), "-->" in line
        # The line before a cue's times is its number or name.
        is_name = is_first and index + 1 < len(lines) and "-->" in lines[index + 1]
        if suffix == ".vtt" and is_first and _VTT_BLOCK.match(line):
            is_block = True
        copied_mask.append(is_empty or has_times or is_name or is_block)
        is_block, is_first = is_block and not is_empty, is_empty
    return copied_mask


def _find_code(lines: Sequence[str]) -> list[bool]:
    """Return whether each line of Markdown belongs to a fenced code block."""
    code_mask, fence = [], None
    for line in lines:
        match = _FENCE.match(line)
        code_mask.append(fence is not None or match is not None)
        if fence is None:
            fence = match[1] if match else None
        elif match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = None
    return code_mask
