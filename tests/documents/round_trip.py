"""Write files of every format with an identity model, and with all of their text rewritten.

python -m tests.documents.round_trip              # 520 files
python -m tests.documents.round_trip --count 2    # 2 files per format

identity    every segment is its own translation: the file must keep its bytes. XLIFF, TMX and gettext files get
            targets: without them they must be equal.
rewritten   the letters of every segment are replaced (rot13), and replaced back in a second pass, so every segment is
            written twice: the library of the format must read the same.
"""

import argparse
import codecs
import random
import re
import sys
from collections import Counter
from collections.abc import Callable

from regard.documents.registry import find_format
from regard.documents.segment import Segment, SegmentBuilder, iter_pieces
from tests.documents.samples.bilingual import make_po, make_tmx, make_xliff
from tests.documents.samples.office import make_docx, make_odt, make_pptx
from tests.documents.samples.pages import make_html, make_markdown, make_srt, make_text, make_vtt
from tests.documents.samples.strings import make_json, make_yaml
from tests.documents.views import VIEWS, view_po, view_xml

MAKERS: dict[str, Callable[[random.Random], bytes]] = {
    ".txt": make_text,
    ".md": make_markdown,
    ".html": make_html,
    ".srt": make_srt,
    ".vtt": make_vtt,
    ".docx": make_docx,
    ".pptx": make_pptx,
    ".odt": make_odt,
    ".xlf": make_xliff,
    ".tmx": make_tmx,
    ".po": make_po,
    ".json": make_json,
    ".yaml": make_yaml,
}
BILINGUAL = {".xlf", ".tmx", ".po"}  # sources stay, targets are added
_NEW_TARGET = re.compile(
    r'\s*<(?:\w+:)?target state="needs-review-translation" state-qualifier="mt-suggestion">.*?</(?:\w+:)?target>'
    r'|\s*<(?:\w+:)?target(?: state="[\w-]+")?(?:/>|>.*?</(?:\w+:)?target>)| state="[\w-]+"'
    r'|\s*<tuv xml:lang="(?i:de|de-de)">.*?</tuv>',
    re.DOTALL,
)


def rotate(segment: Segment) -> Segment:
    """Return a segment with other letters of the same number; protected texts are copied."""
    builder = SegmentBuilder()
    for piece in iter_pieces(segment):
        builder.add(piece._replace(text=codecs.encode(piece.text, "rot13")) if piece.kind == "text" else piece)
    return builder.build(segment.location)


def find_difference(suffix: str, data: bytes) -> str:
    """Return how a file differs after it was written with its own text; empty if it does not."""
    file_format = find_format(f"file{suffix}")
    document = file_format.read(data)
    if not document.segments:
        return ""
    written = document.write(document.segments)
    if suffix in BILINGUAL:
        return _find_bilingual_difference(suffix, data, written)
    if written != data:
        return "not byte-identical"
    rotated = document.write([rotate(segment) for segment in document.segments])
    if rotated == data:
        return "not rewritten"
    again = file_format.read(rotated)
    back = again.write([rotate(segment) for segment in again.segments])
    if [rotate(segment).text for segment in again.segments] != [segment.text for segment in document.segments]:
        return "other segments after rewriting"
    return "" if VIEWS[suffix](back) == VIEWS[suffix](data) else "reads differently"


def _find_bilingual_difference(suffix: str, data: bytes, written: bytes) -> str:
    rest = find_format(f"file{suffix}").read(written)
    if suffix != ".po":
        if rest.segments:
            return "segments without a target remain"
        encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
        remains = [_NEW_TARGET.sub("", content.decode(encoding)) for content in (data, written)]
        view_xml(written)
        return "" if remains[0] == remains[1] else "other parts changed"
    before, after = view_po(data), view_po(written)
    for old, new in zip(before, after, strict=True):
        if "fuzzy" in old["flags"] or not (old["msgstr"] or any(old["msgstr_plural"].values())):
            plural = new["msgid_plural"] or new["msgid"]
            if [new["msgstr"], *new["msgstr_plural"].values()] not in ([new["msgid"]], ["", new["msgid"], plural]):
                has_words = any(character.isalpha() for character in new["msgid"])
                if has_words:
                    return f"not translated: {new}"
            new["msgstr"], new["msgstr_plural"] = old["msgstr"], old["msgstr_plural"]
        if old != new:
            return f"changed: {old} {new}"
    untouched = {line for line in data.splitlines() if line.startswith((b"#", b"msgid", b"msgctxt"))}
    return "" if untouched <= set(written.splitlines()) else "other lines changed"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=40, help="files per format")
    parser.add_argument("--suffix", choices=MAKERS)
    options = parser.parse_args()
    failed = total = 0
    for suffix, make in MAKERS.items():
        if options.suffix in (None, suffix):
            differences = Counter[str]()
            segments = spans = 0
            for seed in range(options.count):
                data = make(random.Random(seed))
                differences[find_difference(suffix, data)] += 1
                read = find_format(f"file{suffix}").read(data).segments
                segments, spans = segments + len(read), spans + sum(len(segment.spans) for segment in read)
            equal = differences.pop("", 0)
            failed, total = failed + options.count - equal, total + options.count
            sys.stdout.write(f"{suffix:6} {equal:3} of {options.count} equal, {segments:,} segments, {spans:,} spans\n")
            sys.stdout.write("".join(f"       {count} {what[:300]}\n" for what, count in differences.items()))
    sys.stdout.write(f"{total - failed} of {total} files equal\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
