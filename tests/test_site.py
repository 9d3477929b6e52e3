"""The website: a strict build, links, hosts, and ten pages in Chromium."""

import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from scripts.build_site import API, LECTURES, ROOT, build, read_navigation

WEB = ROOT / "web"
LINK = re.compile(r'<(a|link|img|script|iframe|source)\b[^>]*?\b(?:href|src)="?([^"\s>]+)')
ID = re.compile(r'\bid="?([^"\s>]+)')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site with one small page in place of the lectures, which have their own tests."""
    folder = tmp_path_factory.mktemp("site")
    lectures = folder / "lectures"
    lectures.mkdir()
    (lectures / "index.html").write_text('<!doctype html><html lang="en"><title>Lectures</title></html>')
    build(folder / "out", lectures)
    return folder / "out"


def test_links_lead_to_pages_and_headings(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 100
    ids = {path: {unquote(name) for name in ID.findall(text)} for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        for tag, link in LINK.findall(text):
            if urlsplit(link).scheme in ("http", "https", "mailto", "data"):
                assert tag == "a" or link.startswith("data:"), f"{path}: {link} is loaded from another host"
                continue
            target, fragment = urldefrag(unquote(link))
            page = (path.parent / target).resolve() if target else path
            page = page / "index.html" if page.is_dir() else page
            if not page.exists() or (fragment and page in ids and fragment not in ids[page] | {"__comments"}):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken


def test_navigation_lists_the_pages_of_the_index_and_those_that_are_generated(site: Path) -> None:
    sections = read_navigation((ROOT / "docs/index.md").read_text(encoding="utf-8"))
    paths = re.findall(r": '([^']+)'", str(sections))
    assert {API, f"{LECTURES}/index.html", "docs/gallery/README.md", "docs/guides/train.md"} <= set(paths)
    assert 'id="regard' in (site / "docs/api.html").read_text(encoding="utf-8")


@pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("chromium") and (WEB / "node_modules").exists()),
    reason="needs Node, Chromium and `npm ci` in web/",
)
def test_ten_pages_in_chromium(site: Path) -> None:
    """Narrow and dark, wide and light: no other host, no failed request, no sideways scrolling, no finding of axe."""
    command = ["node", "check_site.mjs", "--quick", str(site)]
    result = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False, timeout=3600)  # noqa: S603
    assert result.returncode == 0, result.stdout + result.stderr
