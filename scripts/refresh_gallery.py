"""Put today's program into the pages of docs/gallery and write its index: python scripts/refresh_gallery.py.

The documents of the pages stay. Afterwards `node docs/gallery/thumbnails.mjs` draws the thumbnails.
"""

import runpy
import sys
from html import escape
from pathlib import Path
from typing import Any

from regard.look.page import make_page, read_document

GALLERY = Path(__file__).parents[1] / "docs/gallery"
DESCRIPTION = "Six Transformers, each trained on a CPU in minutes, and what happens inside them."
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' file:"
STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1e26; --muted: #5d6370; --rule: #d5d9e0; }
@media (prefers-color-scheme: dark) { :root { --page: #14161b; --ink: #eceef2; --muted: #a3a9b6; --rule: #3a404b; } }
body { margin: 0 auto; max-width: 1500px; padding: 24px; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { margin: 0; font-size: 28px; } h2 { margin: 0 0 4px; font-size: 18px; line-height: 1.3; } p { margin: 0; }
ul { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 320px), 1fr)); gap: 24px; padding: 0;
  margin: 24px 0; list-style: none; }
a { display: block; height: 100%; color: inherit; text-decoration: none; border: 1px solid var(--rule);
  border-radius: 8px; overflow: hidden; }
a:hover, a:focus-visible { border-color: var(--muted); outline: 2px solid var(--muted); }
img { display: block; width: 100%; aspect-ratio: 2; object-fit: contain; background: #fff;
  border-bottom: 1px solid var(--rule); }
.text { padding: 12px 16px 16px; } .muted { color: var(--muted); }
"""


def read_pages() -> dict[str, dict[str, str]]:
    """Return title and introduction of each page, in the order of the index."""
    hooks = runpy.run_path(str(GALLERY / "hooks.py"))
    return {
        name: {"title": hooks["TITLES"][name], "text": introduce(read(name))}
        for name, introduce in hooks["HOOKS"].items()
    }


def read(name: str) -> Any:
    """Return the document of a page."""
    return read_document((GALLERY / f"{name}.html").read_text(encoding="utf-8"))


def make_index(pages: dict[str, dict[str, str]]) -> str:
    """Return the index: one card per page."""
    cards = "\n".join(
        f'<li><a href="{name}.html"><img src="../pictures/gallery-{name}.png" alt="" width="520" height="260">'
        f'<div class="text"><h2>{escape(page["title"])}</h2><p>{escape(page["text"])}</p></div></a></li>'
        for name, page in pages.items()
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>Regard gallery</title>
<meta name="description" content="{DESCRIPTION}">
<meta property="og:title" content="Regard gallery">
<meta property="og:description" content="{DESCRIPTION}">
<meta property="og:image" content="../pictures/gallery-pronoun.png">
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>See what a Transformer does</h1>
<p class="muted">{DESCRIPTION} Every number is computed from the page it introduces.</p>
<ul>
{cards}
</ul>
<p class="muted">Made with Regard: <code>regard look MODEL "your text" --save page.html</code></p>
</main>
</body>
</html>
"""


if __name__ == "__main__":
    for path in sorted(GALLERY.glob("*.html")):
        if path.name != "index.html":
            path.write_text(make_page(read_document(path.read_text(encoding="utf-8"))), encoding="utf-8")
            sys.stdout.write(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB\n")
    (GALLERY / "index.html").write_text(make_index(read_pages()), encoding="utf-8")
