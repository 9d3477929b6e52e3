# ruff: noqa: E501 - files as they are
"""Files that attack the translation of documents: each is refused with a reason, or translated within the limits.

A child process has 10 seconds of CPU time, so an attack on quadratic time dies. A file that is translated keeps what
cannot be translated: no attack may read another file, run code, or make a document that its reader does not expect.
"""

import io
import json
import random
import re
import zipfile
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from regard.documents.registry import find_format
from regard.documents.translate import Sentence, TranslatedSentence, translate_document
from tests.documents.samples.bilingual import make_tmx, make_xliff
from tests.documents.samples.office import make_docx, make_odt, make_pptx
from tests.hostile import child
from tests.hostile.child import open_in_child

MAX_MEMORY = 600 << 20  # bytes beyond the imports and the file: six times the largest file
SECRET = b"root:x:0:0"  # in /etc/passwd
Make = Callable[[], bytes]
ATTACKS: dict[str, tuple[str, Make, str]] = {}  # by name: suffix, the file, and what the refusal says; "" if translated


def add(name: str, suffix: str, make: Make, says: str = "") -> None:
    assert name not in ATTACKS
    ATTACKS[name] = suffix, make, says


def translate(sentences: list[Sentence]) -> Sequence[TranslatedSentence]:
    """Translate words into words that look like markup of every format."""
    return [TranslatedSentence(f"<w> {sentence.text[::-1]} &lt; {{\\}} [x](y) --> `") for sentence in sentences]


def run(suffix: str, data: bytes) -> None:
    """Translate a file and read the result again."""
    file_format = find_format(f"a{suffix}")
    document = file_format.read(data)
    written, report = translate_document(document, translate)
    assert SECRET not in written
    assert len(written) < 40 * len(data) + (1 << 20)
    if report.segments and suffix not in (".srt", ".vtt"):
        file_format.read(written)


# Archives: Word, PowerPoint and OpenDocument.

DOCX, PPTX, ODT = make_docx(random.Random(1)), make_pptx(random.Random(1)), make_odt(random.Random(1))


def rezip(data: bytes, changes: dict[str, bytes], *, drop: str = "", **attributes: int) -> bytes:
    """Write an archive with other members; the new ones have these attributes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name not in changes and name != drop:
                new.writestr(name, old.read(name))
        for name, content in changes.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = attributes.get("compress_type", zipfile.ZIP_DEFLATED)
            info.external_attr, info.create_system = attributes.get("external_attr", 0), 3
            new.writestr(info, content)
    return buffer.getvalue()


def edit(data: bytes, name: str, old: str, new: str) -> bytes:
    """Replace a text in a member."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        content = file.read(name).decode()
    assert old in content
    return rezip(data, {name: content.replace(old, new, 1).encode()})


def patch(data: bytes, offset: int, value: bytes) -> bytes:
    """Overwrite bytes of the central directory's last entry."""
    place = data.rindex(b"PK\x01\x02") + offset
    return data[:place] + value + data[place + len(value) :]


def duplicate(data: bytes, name: str) -> bytes:
    """Add a second member with the name of another."""
    return rezip(data, {"x" * len(name): b"second"}).replace(b"x" * len(name), name.encode())


def attack_archive(suffix: str, archive: bytes, part: str) -> None:
    """Add the attacks on one kind of archive; `part` is its main document."""
    no_part = "missing|damaged|no document|not an OpenDocument"
    new: list[tuple[str, Make, str]] = [
        ("bomb", lambda: rezip(archive, {part: b"<a>" + bytes(16 << 20)}), "times its size"),
        ("bomb in another member", lambda: rezip(archive, {"x.bin": bytes(16 << 20)}), "unpacks to"),
        ("parent folder", lambda: rezip(archive, {"../../x": b""}), "leaves the archive"),
        ("absolute path", lambda: rezip(archive, {"/etc/x": b""}), "leaves the archive"),
        ("path of Windows", lambda: rezip(archive, {"C:\\x": b""}), "leaves the archive"),
        ("control character", lambda: rezip(archive, {"a\x1b[2Jb": b""}), "not portable"),
        (
            "symbolic link",
            lambda: rezip(archive, {part: b"/etc/passwd"}, external_attr=0o120777 << 16),
            "symbolic link",
        ),
        ("duplicate member", lambda: duplicate(archive, part), "two members are named"),
        ("other compression", lambda: rezip(archive, {"x": b""}, compress_type=zipfile.ZIP_LZMA), "with method 14"),
        ("encrypted", lambda: patch(archive, 8, b"\x01"), "encrypted"),
        ("wrong size", lambda: patch(archive, 24, b"\x01\x00\x00\x00"), "damaged|cannot be read"),
        ("truncated", lambda: archive[: len(archive) // 2], "not a zip archive"),
        ("without its part", lambda: rezip(archive, {}, drop=part), no_part),
        ("empty archive", lambda: rezip(b"PK\x05\x06" + bytes(18), {}), no_part),
    ]
    for name, make, says in new:
        add(f"{suffix[1:]}: {name}", suffix, make, says)


attack_archive(".docx", DOCX, "word/document.xml")
attack_archive(".pptx", PPTX, "ppt/presentation.xml")
attack_archive(".odt", ODT, "content.xml")
TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
MACRO = "application/vnd.ms-word.{}.macroEnabled.main+xml"
for kind in ("document", "template"):
    add(
        f"docx: macros of a {kind} in the content types",
        ".docx",
        partial(edit, DOCX, "[Content_Types].xml", TYPE, MACRO.format(kind)),
        "macro",
    )
add("docx: macros", ".docx", lambda: rezip(DOCX, {"word/vbaProject.bin": b"x"}), "contains macros")
add("docx: macros in an ActiveX control", ".docx", lambda: rezip(DOCX, {"word/activeX/a.bin": b"x"}), "contains macros")
add("odt: macros", ".odt", lambda: rezip(ODT, {"Basic/Standard/Module1.xml": b"x"}), "contains macros")
add("odt: macros in Python", ".odt", lambda: rezip(ODT, {"Scripts/python/a.py": b"x"}), "contains macros")
add("docx: many members", ".docx", lambda: rezip(DOCX, {f"m{n}": b"" for n in range(10_001)}), "members, more than")
add("docx: no archive", ".docx", lambda: b"\xd0\xcf\x11\xe0" + bytes(100), "not a zip archive")

# XML: entities, depth and encodings.

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def xml_attacks(root: str, text: str) -> dict[str, tuple[bytes, str]]:
    """Return documents; `text` is the start of a paragraph with {} for its text."""
    body = f"<{root}>" + text + f"</{root.split()[0]}>"

    def doctype(definitions: str, content: str) -> bytes:
        return f"<!DOCTYPE x [{definitions}]>{body.format(content)}".encode()

    refused = "entit|document type|DOCTYPE|definition"
    return {
        "billion laughs": (doctype(f'<!ENTITY l0 "ha">{LAUGHS}', "&l9;"), refused),
        "quadratic blowup": (doctype(f'<!ENTITY a "{"x" * 50_000}">', "&a;" * 50_000), refused),
        "external entity": (doctype('<!ENTITY a SYSTEM "file:///etc/passwd">', "&a;"), refused),
        "external entity of the network": (doctype('<!ENTITY a SYSTEM "http://127.0.0.1:9/">', "&a;"), refused),
        "parameter entity": (doctype('<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;', "x"), refused),
        "undefined entity": (body.format("&nbsp;").encode(), "undefined|not defined|not well-formed|Not well-formed"),
        "10,000 nested elements": (body.format("<a>" * 10_000 + "</a>" * 10_000).encode(), "nested|deep"),
        "two million elements": (body.format("<a/>" * 2_000_000).encode(), "tags, more than|times its size"),
        "NUL bytes": (body.format("a\0b").encode(), "NUL bytes"),
        "broken UTF-8": (body.format("a").encode().replace(b"a<", b"a\xff\xc0<"), "well-formed|UTF-8|encod"),
        "lone surrogate": (body.format("&#xD800;").encode(), "well-formed"),
        "UTF-7": (b'<?xml version="1.0" encoding="UTF-7"?>' + body.format("+ADw-a+AD4-").encode(), "encod"),
        "other encoding than it says": (
            '<?xml version="1.0" encoding="utf-8"?><a/>'.encode("utf-32"),
            "NUL bytes",
        ),
        "not closed": (body.format("a").encode()[:-3], "well-formed"),
    }


XML_FILES: list[tuple[str, str, str, Callable[[bytes], bytes]]] = [
    (".docx", f"w:document {W}", "<w:body><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:body>",
     lambda xml: rezip(DOCX, {"word/document.xml": xml})),
    (".odt", 'o:document-content xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
     'xmlns:t="urn:oasis:names:tc:opendocument:xmlns:text:1.0"',
     "<o:body><o:text><t:p>{}</t:p></o:text></o:body>", lambda xml: rezip(ODT, {"content.xml": xml})),
    (".xlf", 'xliff version="1.2"', '<file><body><trans-unit id="1"><source>{}</source></trans-unit></body></file>', bytes),
    (".tmx", 'tmx version="1.4"', '<header srclang="en"/><body><tu><tuv xml:lang="en"><seg>{}</seg></tuv></tu></body>',
     bytes),
]  # fmt: skip
for suffix, root, text, wrap in XML_FILES:
    for name, (xml, says) in xml_attacks(root, text).items():
        add(f"{suffix[1:]}: {name}", suffix, partial(wrap, xml), says)

RUNS = "<w:r><w:rPr><w:b/></w:rPr><w:t>a</w:t></w:r><w:r><w:t>b</w:t></w:r>"


def docx(paragraph: str) -> bytes:
    """Return a Word document with this paragraph."""
    return rezip(
        DOCX, {"word/document.xml": f"<w:document {W}><w:body><w:p>{paragraph}</w:p></w:body></w:document>".encode()}
    )


def xliff(content: str) -> bytes:
    """Return an XLIFF file with this source."""
    unit = f'<trans-unit id="1"><source>{content}</source></trans-unit>'
    return f'<xliff version="1.2"><file source-language="en" target-language="de"><body>{unit}</body></file></xliff>'.encode()


add("docx: a paragraph of 10,000 runs", ".docx", lambda: docx(RUNS * 10_000))
add("docx: 10,000 bookmarks that cross", ".docx", lambda: docx(
    "".join(f'<w:bookmarkStart w:id="{n}"/>' for n in range(10_000)) + "<w:r><w:t>a b</w:t></w:r>"
    + "".join(f'<w:bookmarkEnd w:id="{n}"/>' for n in range(10_000))))  # fmt: skip
add("docx: field that runs a program", ".docx", lambda: docx(
    '<w:r><w:t>See </w:t></w:r><w:fldSimple w:instr="DDEAUTO c:\\\\x.exe"><w:r><w:t>it</w:t></w:r></w:fldSimple>'))  # fmt: skip
add("xlf: 10,000 starts and ends of other pairs", ".xlf", lambda: xliff(
    '<bx id="1"/>' * 10_000 + "a" + '<ex id="2"/>' * 10_000))  # fmt: skip
add("xlf: 10,000 marks around an element that closes", ".xlf", lambda: xliff(
    '<bx id="1"/>' + '<bx id="2"/>' * 10_000 + '<g id="3">a' + '<ex id="1"/>' * 10_000 + "</g>"))  # fmt: skip
add("xlf: 10,000 nested pairs", ".xlf", lambda: xliff(
    "".join(f'<bx id="{n}" rid="{n}"/>a' for n in range(10_000)) + "".join(f'<ex id="{n}" rid="{n}"/>' for n in reversed(range(10_000)))))  # fmt: skip
add("xlf: the same id 10,000 times", ".xlf", lambda: xliff('<x id="1"/>a' * 10_000))

# JSON, YAML and gettext.

DEEP = "nested|deep|recursion|more than|Not a"
add("json: 100,000 nested lists", ".json", lambda: b"[" * 100_000 + b"]" * 100_000, DEEP)
add("json: 100,000 nested objects", ".json", lambda: b'{"a":' * 100_000, DEEP)
add("json: three million values", ".json", lambda: b"[" + b"[]," * 3_000_000 + b"1]", "more than")
add("json: number of a million digits", ".json", lambda: b'{"a": ' + b"9" * 1_000_000 + b"}", "Not a JSON")
add("json: lone surrogate", ".json", lambda: b'{"a": "x \\ud800 y", "b": "\xc3\xa9"}', "Not a JSON")
add("json: broken UTF-8", ".json", lambda: b'{"a": "\xff"}', "not UTF-8")
add("json: NUL byte", ".json", lambda: b'{"a": "x\x00"}', "Not a JSON")
add("json: escapes without an end", ".json", lambda: b'{"a": "' + b"\\\\" * 500_000, "Not a JSON")
add("json: the same key 10,000 times", ".json", lambda: b'{"a": "b"' + b', "a": "b"' * 10_000 + b"}")
add("yaml: aliases that grow exponentially", ".yaml", lambda: "\n".join(
    ["a0: &a0 [lol, lol]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]).encode())  # fmt: skip
add("yaml: alias of itself", ".yaml", lambda: b"a: &a [word, *a]\n")
add("yaml: merge keys that grow exponentially", ".yaml", lambda: "\n".join(
    ["a0: &a0 {k: word}"] + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)]).encode())  # fmt: skip
add(
    "yaml: object that runs a command",
    ".yaml",
    lambda: b"a: !!python/object/apply:os.system ['touch /tmp/x']\nb: word\n",
)
add("yaml: 10,000 nested lists", ".yaml", lambda: b"[" * 10_000, "nested|Not a")
add(
    "yaml: 10,000 nested mappings",
    ".yaml",
    lambda: b"\n".join(b" " * n + b"a:" for n in range(3_000)),
    "nested|Not a|more than",
)
add("yaml: lone surrogate", ".yaml", lambda: b'a: "x \\ud800 y"\n', "Not a YAML|surrogate")
add("yaml: control character", ".yaml", lambda: b"a: x\x00y\n", "Not a YAML")
add("yaml: broken UTF-8", ".yaml", lambda: b"a: \xff\n", "not UTF-8")
add("yaml: quoted string without an end", ".yaml", lambda: b'a: "' + b"x\n\n" * 50_000, "Not a YAML")
add(
    "po: index of plural of a billion",
    ".po",
    lambda: b'msgid "a"\nmsgid_plural "b"\nmsgstr[999999999] ""\n',
    "Not a line",
)
add("po: escapes without an end", ".po", lambda: b'msgid "' + b"\\\\" * 500_000 + b"\nmsgstr", "Not a line")
add("po: a message of 100,000 strings", ".po", lambda: b'msgid ""\n' + b'"a b "\n' * 100_000 + b'msgstr ""\n')
add("po: broken UTF-8", ".po", lambda: b'msgid "\xff"\nmsgstr ""\n', "not UTF-8")

# HTML, Markdown, subtitles and text: repeated markup that never ends.

UNITS = {
    ".html": [
        "<", "<!--", "<script>", "<![CDATA[", "<pre ", "</b>", "<b>", "<b><i></b>", '<a b="', "<a b='c\" ", "&", "&#", "<br>x",
        "<code>", "<a title=x title='", "<i translate=no>", "<p translate=no>", "<p>", "<b>x. A ", "<code>a</code>. B ",
        "<img alt='a b'>", "<?", "<a href=x><div>",
    ],
    ".md": [
        "[", "![", "[a](", "*a ", "*a **b ", "`", "` `` ", "<!--", "a<b", "<?", "<![CDATA[", "&", "\\", "|", "| a |\n|-|\n", "[^1]",
        "~~a", "[a]: b\n", "[a]\n", "<a href='", '[a](b "', "_a__", "```\n", "{%", "#", "1. a\n", "[^a]: b c\n", "**a. B ** ",
        "<b>a. B ",
    ],
    ".srt": ["<", "<i", "<i>a. B ", "{\\", "00:00:01,000 --> 0", "-", "1\n", "00:01,0 --> 00:02,0\na b\n\n", "- a\n"],
    ".vtt": ["WEBVTT\n\n", "NOTE\n", "00:01.0 --> 00:02.0\n<v a>b &lt; ", "&", "<c.a>b</c> "],
    ".txt": ["{", "{a", "%(", "${", "<a b=\"", "http://", "a@", "a. B ", "\u00a0", "1.", "{a} "],
}  # fmt: skip
for suffix, units in UNITS.items():
    for unit in units:
        size = 10_000 if len(unit) < 4 else 6_000  # more segments take longer
        add(
            f"{suffix[1:]}: {unit!r} again and again",
            suffix,
            (unit * (size // len(unit))).encode,
        )
for suffix in UNITS:
    add(f"{suffix[1:]}: NUL bytes", suffix, lambda: b"a\0b \0\n\n\0c d\n" * 1_000)
    add(f"{suffix[1:]}: lone surrogate", suffix, lambda: b"a \xed\xa0\x80 b", "not UTF-8")
    add(f"{suffix[1:]}: UTF-16", suffix, lambda: "a b".encode("utf-16"), "not UTF-8")
    add(f"{suffix[1:]}: a paragraph of 100 MB", suffix, lambda: b"word " * (20 << 20), "more than")
for unit in (">", "> ", "- ", "1. "):
    add(f"md: {unit!r} 10,000 deep", ".md", (unit * 10_000 + "a b").encode)
add("html: 10,000 nested tags", ".html", lambda: ("<b>" * 10_000 + "a. B" + "</b>" * 10_000 + " c").encode())
add(
    "html: 10,000 nested tags around 10,000 sentences",
    ".html",
    lambda: ("c " + "<b>" * 10_000 + "A b. " * 10_000).encode(),
)
add("html: a million tags", ".html", lambda: b"<b>" * 1_000_000, "tags")
add("html: a paragraph of 3 MB", ".html", lambda: b"word " * 600_000, "characters")
add(
    "docx: a paragraph of 3 MB",
    ".docx",
    lambda: docx("<w:r><w:t>" + "Word word. " * 270_000 + "</w:t></w:r>"),
    "characters",
)
add("json: a string of 5 MB", ".json", lambda: json.dumps({"a": "word " * (1 << 20)}).encode(), "characters")


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_refused_or_translated_within_the_limits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    suffix, make, says = ATTACKS[name]
    data = make()
    monkeypatch.setattr(child, "TIMEOUT", 300.0)  # of a busy machine; the limit of CPU time holds
    outcome = open_in_child(lambda: run(suffix, data))
    assert (outcome.ended, outcome.kind, outcome.printed) == (
        ("refused", "RegardError", "") if says else ("opened", "", "")
    ), outcome.message
    assert outcome.memory < MAX_MEMORY
    if says:
        assert re.search(says, outcome.message), outcome.message
        assert outcome.location
        assert outcome.has_fix
        assert outcome.message.replace("\n", "").isprintable()
        assert len(outcome.message) < 1_000


def test_attacks_are_many_and_valid_files_are_translated() -> None:
    assert len(ATTACKS) >= 60
    files = {".docx": DOCX, ".pptx": PPTX, ".odt": ODT}
    files |= {".xlf": make_xliff(random.Random(1)), ".tmx": make_tmx(random.Random(1))}
    for suffix, data in files.items():
        assert open_in_child(partial(run, suffix, data)).ended == "opened"
