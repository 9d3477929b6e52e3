"""Put today's program into the pages of docs/gallery; their documents stay: python scripts/refresh_gallery.py."""

import sys
from pathlib import Path

from regard.look.page import make_page, read_document

GALLERY = Path(__file__).parents[1] / "docs/gallery"

if __name__ == "__main__":
    for path in sorted(GALLERY.glob("*.html")):
        path.write_text(make_page(read_document(path.read_text(encoding="utf-8"))), encoding="utf-8")
        sys.stdout.write(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB\n")
