"""The site of the lectures: an index, one page per lecture, and the embedded pages of `regard look`.

    index.html                  the five lectures
    lecture-1.html ...          a page: its blocks as JSON, and static/lectures.js, which draws them
    look/NAME.html              an embedded page

All files work offline from the file system. The content security policy allows no requests.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path

from regard.base import progress
from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.base.version import __version__
from regard.lectures import trained, worked_pages
from regard.lectures.blocks import Lecture, LookFrame
from regard.lectures.load import NUMBERS, load_lecture
from regard.look.document import Document, to_json
from regard.look.page import make_hash_source, make_page

LOOK_PAGES: Mapping[str, Callable[[], Document]] = {**worked_pages.PAGES, **trained.PAGES}


def load_lectures(numbers: Sequence[int] = NUMBERS) -> list[Lecture]:
    """Return lectures, and report progress."""
    return [load_lecture(number) for number in progress.track(numbers, "compute the lectures")]


def write_site(folder: Path, lectures: Sequence[Lecture]) -> list[Path]:
    """Write the pages of these lectures and the index into a folder; return the files."""
    written = []

    def write(name: str, content: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content.encode())
        written.append(path)

    names = {
        block.name
        for lecture in lectures
        for station in lecture.stations
        for block in station.blocks
        if isinstance(block, LookFrame)
    }
    overview = [
        {
            "number": lecture.number,
            "title": lecture.title,
            "introduction": lecture.introduction,
            "stations": [{"name": station.name, "title": station.title} for station in lecture.stations],
        }
        for lecture in lectures
    ]
    write("index.html", _make_page("Five lectures on Transformers", {"lectures": overview}))
    for lecture in lectures:
        title = f"Lecture {lecture.number}: {lecture.title}"
        write(f"lecture-{lecture.number}.html", _make_page(title, {"lecture": asdict(lecture), "lectures": overview}))
    for name in progress.track(sorted(names), "write the pages of regard look"):
        write(f"look/{name}.html", make_page(LOOK_PAGES[name]()))
    return written


def _make_page(title: str, content: Mapping[str, object]) -> str:
    folder = files("regard.lectures")
    script = folder / "static" / "lectures.js"
    if not script.is_file():
        raise RegardError(
            "The page's script is missing.", location=str(script), hint="Build it: `npm ci && npm run build` in web/."
        )
    code = script.read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; script-src {make_hash_source(code)}; style-src 'unsafe-inline'; img-src data: blob:; "
        "frame-src 'self' file:; base-uri 'none'; form-action 'none'"
    )
    template = (folder / "page.html").read_text(encoding="utf-8")
    document = to_json(_to_plain({**content, "version": __version__}))
    return template.format(policy=policy, title=escape(title), document=document, script=code)


def _to_plain(content: Mapping[str, object]) -> dict[str, object]:
    """Return a JSON value in which infinities and NaN, which JSON lacks, are the strings inf, -inf and nan."""

    def convert(part: object) -> object:
        if isinstance(part, float) and not math.isfinite(part):
            return str(part)
        if isinstance(part, Mapping):
            return {key: convert(item) for key, item in part.items()}
        if isinstance(part, (list, tuple)):
            return [convert(item) for item in part]
        return part

    return {key: convert(part) for key, part in content.items()}
