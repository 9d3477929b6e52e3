"""Build the website: python scripts/build_site.py [FOLDER]. The default folder is build/site.

Pages stay plain Markdown that GitHub shows as well. Zensical gets a copy of them at the same relative paths, so that
links work as they are; README.md is the home page. The lectures and the API page are written into the copy. The
navigation is docs/index.md. The site loads nothing from other hosts.
"""

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import tomli_w

import regard

ROOT = Path(__file__).parents[1]
LECTURES = "docs/lectures/pages"
API = "docs/api.md"
GENERATED = {"Lectures": {"Open the lectures": f"{LECTURES}/index.html"}, "Reference": {"API": API}}
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s#]+)[^)]*\)")
LINKED = re.compile(r"""(?:\]\(|(?:src|href)=")([^)\s#":]+)""")  # a path in the repository, of a link or a picture
LIGHT = {"media": "(prefers-color-scheme: light)", "scheme": "default"}
DARK = {"media": "(prefers-color-scheme: dark)", "scheme": "slate"}
THEME = {
    "font": False,  # else pages load fonts from another host
    "features": [
        "content.code.copy",
        "navigation.footer",
        "navigation.indexes",
        "navigation.tabs",
        "navigation.top",
        "search.highlight",
        "toc.follow",
    ],
    "palette": [
        {**LIGHT, "toggle": {"icon": "lucide/sun", "name": "Switch to dark mode"}},
        {**DARK, "toggle": {"icon": "lucide/moon", "name": "Switch to light mode"}},
    ],
}
API_OPTIONS = {
    "docstring_options": {"warnings": False},
    "heading_level": 3,
    "separate_signature": True,
    "show_overloads": False,
    "show_root_full_path": False,
    "show_root_heading": True,
    "show_signature_annotations": True,
    "show_source": False,
}
CONFIG: dict[str, Any] = {
    "site_name": "Regard",
    "site_description": "Train, see into and serve your own Transformers",
    "docs_dir": "source",
    "site_dir": "site",
    "use_directory_urls": False,
    "extra_css": ["docs/site.css"],
    "extra_javascript": ["docs/site.js"],
    "theme": THEME,
    "plugins": {"mkdocstrings": {"handlers": {"python": {"paths": [str(ROOT / "src")], "options": API_OPTIONS}}}},
    "markdown_extensions": {
        "attr_list": {},
        "md_in_html": {},
        "tables": {},
        "toc": {"permalink": True},
        "pymdownx": {"highlight": {}, "superfences": {}},
    },
}


def build(out: Path, lectures: Path | None = None) -> None:
    """Copy the pages, add what is generated, and build; a broken link stops it.

    `lectures` is a folder that `regard lectures --save` wrote; by default, the lectures are computed.
    """
    work = out.with_name(f"{out.name}-source")
    source = work / "source"
    shutil.rmtree(work, ignore_errors=True)
    copy_pages(source)
    (source / API).write_text(write_api(), encoding="utf-8")
    if lectures:
        shutil.copytree(lectures, source / LECTURES)
    else:
        command = [sys.executable, "-m", "regard", "lectures", "--save", str(source / LECTURES)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command
    nav = read_navigation((ROOT / "docs/index.md").read_text(encoding="utf-8"))
    config = tomli_w.dumps({"project": {**CONFIG, "nav": nav}})
    (work / "zensical.toml").write_text(config, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "zensical", "build", "--clean", "--strict"], cwd=work, check=True)
    shutil.rmtree(out, ignore_errors=True)
    shutil.move(work / "site", out)


def copy_pages(source: Path) -> None:
    """Copy README.md as the home page, all other pages, and the files that pages link."""
    pages = [page for folder in ("", "docs/**", "examples/**") for page in ROOT.glob(f"{folder}/*.md".lstrip("/"))]
    links = [(page.parent / target).resolve() for page in pages for target in LINKED.findall(page.read_text("utf-8"))]
    extra = [ROOT / path for path in (*CONFIG["extra_css"], *CONFIG["extra_javascript"])]
    for path in sorted({*pages, *extra, *(path for path in links if path.exists())}):
        to = source / ("index.md" if path == ROOT / "README.md" else path.relative_to(ROOT))
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, to, dirs_exist_ok=True)
            listing = "\n".join(f"- [{file.name}]({file.name})" for file in sorted(path.iterdir()) if file.is_file())
            (to / "index.md").write_text(f"# {path.name}\n\n{listing}\n", encoding="utf-8")
        else:
            shutil.copyfile(path, to)


def read_navigation(text: str) -> list[dict[str, object]]:
    """Return the sections of docs/index.md with the pages that they link."""
    nav: list[dict[str, object]] = [{"Home": "index.md"}]
    for section in text.split("\n## ")[1:]:
        heading, _, body = section.partition("\n")
        links = [(title, target) for title, target in LINK.findall(body) if target.endswith(".md")]
        paths = [(title, (ROOT / "docs" / target).resolve().relative_to(ROOT).as_posix()) for title, target in links]
        entries = {**GENERATED.get(heading, {}), **{title[0].upper() + title[1:]: path for title, path in paths}}
        nav.append({heading: [{title: path} for title, path in entries.items()]})
    return nav


def write_api() -> str:
    """Return the API page: every public name with its docstring."""
    members = [getattr(regard, name) for name in regard.__all__]
    functions = [member for member in members if inspect.isfunction(member)]
    classes = [member for member in members if inspect.isclass(member)]
    lines = ["# API", "", "From the docstrings of the code."]
    for heading, group in (("Functions", functions), ("Classes", classes)):
        lines += ["", f"## {heading}", *(f"\n::: {member.__module__}.{member.__qualname__}" for member in group)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build/site")
