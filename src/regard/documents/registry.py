"""File formats by suffix, imported on first use."""

import importlib
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from regard.base.errors import RegardError
from regard.documents.format import Format

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        ".txt": "txt.TextFormat",
        ".md": "markdown.MarkdownFormat",
        ".markdown": "markdown.MarkdownFormat",
        ".html": "html.HtmlFormat",
        ".htm": "html.HtmlFormat",
        ".xhtml": "html.HtmlFormat",
        ".srt": "subtitles.SrtFormat",
        ".vtt": "subtitles.VttFormat",
        ".docx": "office.DocxFormat",
        ".pptx": "office.PptxFormat",
        ".odt": "odt.OdtFormat",
        ".xlf": "xliff.XliffFormat",
        ".xliff": "xliff.XliffFormat",
        ".tmx": "tmx.TmxFormat",
        ".po": "po.PoFormat",
        ".pot": "po.PoFormat",
        ".json": "json_strings.JsonFormat",
        ".yaml": "yaml_strings.YamlFormat",
        ".yml": "yaml_strings.YamlFormat",
    }
)
"""By suffix: the module in `regard.documents`, and the class."""
_LANGUAGES = frozenset(  # ISO 639-1, and the codes of ISO 639-3 that Tatoeba uses for the larger languages
    """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo
    es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg
    ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn
    no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta
    te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
    ara ces cmn dan deu ell eng fin fra heb hin hun ind ita jpn kor nld nob pol por ron rus spa swe tur ukr vie zho
    """.split()  # noqa: SIM905 - one word per name
)


def find_format(name: str) -> Format:
    """Return the format of a file, by the suffix of its name.

    Names without a suffix, and names that end in a language code (`news.en`), are text: one segment per line.

    Raises:
        RegardError: The suffix is unknown; the hint lists the formats.

    >>> find_format("news.en").suffixes
    ('.txt',)
    >>> find_format("report.pdf")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    regard.base.errors.RegardError: Files that end in .pdf cannot be translated.
      where: report.pdf
      fix:   The formats are .txt... Rename plain text with one sentence per line to .txt.
    """
    suffix = find_suffix(name)
    module, _, class_name = FORMATS[".txt" if is_text(suffix) else suffix].rpartition(".")
    document_format: Format = getattr(importlib.import_module(f"regard.documents.{module}"), class_name)()
    return document_format


def find_suffix(name: str) -> str:
    r"""Return the suffix of a name in lower case; raises `RegardError` if no format has it.

    >>> find_suffix("C:\\Docs\\Notes.TXT"), find_suffix("news.pt-BR"), find_suffix("README")
    ('.txt', '.pt-br', '')
    """
    suffix = PurePosixPath(name.replace("\\", "/")).suffix.lower()
    if suffix not in FORMATS and not is_text(suffix):
        message = f"Files that end in {suffix[:20]} cannot be translated."
        hint = f"The formats are {', '.join(FORMATS)}. Rename plain text with one sentence per line to .txt."
        raise RegardError(message, location=name[-200:], hint=hint)
    return suffix


def is_text(suffix: str) -> bool:
    """Return whether a suffix stands for text with one segment per line: .txt, a language code or none.

    >>> [is_text(suffix) for suffix in (".txt", "", ".de", ".en-gb", ".mdx")]
    [True, True, True, True, False]
    """
    code = re.fullmatch(r"\.([a-z]{2,3})([-_][a-z]{2,4})?", suffix)
    return suffix in ("", ".txt") or (code is not None and code[1] in _LANGUAGES)
