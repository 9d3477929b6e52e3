"""Prepare a release: write the address of the public repository into the package.

    python scripts/set_repository_url.py https://HOST/OWNER/regard

It adds [project.urls] to pyproject.toml and makes the links of README.md absolute, because a package index shows the
README without the repository around it. The repository itself keeps relative links: do not commit the result.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?!https?://|#)([^)]+)\)")


def main() -> None:
    """Change pyproject.toml and README.md."""
    if len(sys.argv) != 2 or not sys.argv[1].startswith("https://"):
        sys.exit(__doc__)
    url = sys.argv[1].rstrip("/")
    for name, change in (("README.md", make_links_absolute), ("pyproject.toml", add_urls)):
        path = ROOT / name
        path.write_text(change(path.read_text(encoding="utf-8"), url), encoding="utf-8", newline="\n")


def make_links_absolute(text: str, url: str) -> str:
    """Make the relative links of a page of the root folder absolute.

    >>> make_links_absolute("[a](docs/a.md#b), [c](https://c.org), [d](#e)", "https://h/o/r")
    '[a](https://h/o/r/blob/main/docs/a.md#b), [c](https://c.org), [d](#e)'
    """
    return LINK.sub(rf"]({url}/blob/main/\1)", text)


def add_urls(text: str, url: str) -> str:
    """Add [project.urls] before the scripts of pyproject.toml."""
    pages = {"Repository": "", "Documentation": "/blob/main/docs/index.md", "Changelog": "/blob/main/CHANGELOG.md"}
    table = "".join(f'{name} = "{url}{page}"\n' for name, page in {**pages, "Issues": "/issues"}.items())
    return text.replace("[project.scripts]\n", f"[project.urls]\n{table}\n[project.scripts]\n")


if __name__ == "__main__":
    main()
