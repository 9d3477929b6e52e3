"""The page: one HTML file (`page.html`) with the document and the program that draws it.

    <div id="app">                                    the program draws here
    <script type="application/json" id="document">    the document
    <script>                                          static/app.js, built from web/

The content security policy allows only this script, and no requests to other machines.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any, cast

from regard.base.errors import RegardError
from regard.look.certainty import describe_certainty
from regard.look.document import Document, to_json

# A saved file has no public address, so it has no og:image: previews do not show data URIs.
DESCRIPTION = "See what a Transformer read, how sure it was, and what breaks it. Made with Regard."
DOCUMENT_START = '<script type="application/json" id="document">'


def read_script() -> str:
    """Return the page's script, which ships with the package."""
    path = files("regard.look") / "static" / "app.js"
    if not path.is_file():
        raise RegardError(
            "The page's script is missing.",
            location=str(path),
            hint="Build it: `npm ci && npm run build` in web/.",
        )
    return path.read_text(encoding="utf-8")


def make_page(document: Mapping[str, Any], script: str | None = None) -> str:
    """Return the page of a document.

    Args:
        document: A `regard.look.document.Document`.
        script: The script; by default the one that ships with the package.
    """
    script = read_script() if script is None else script
    if "</script" in script.lower() or "<!--" in script:
        raise RegardError("The page's script would end its own script element.", hint="Escape `<` in it.")
    connect = "'self'" if document["live"] else "'none'"
    policy = (
        f"default-src 'none'; script-src {make_hash_source(script)}; style-src 'unsafe-inline'; img-src data: blob:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    template = (files("regard.look") / "page.html").read_text(encoding="utf-8")
    return template.format(
        policy=policy,
        title=escape(f"{make_headline(document)} · Regard"),
        description=escape(make_description(document)),
        start=DOCUMENT_START,
        document=to_json(document),
        script=script,
    )


def make_headline(document: Mapping[str, Any]) -> str:
    """Return input and output in one line, as a browser's tab and the preview of a shared link show them."""
    parts = [" ".join(str(text).split())[:60] for text in (document["text"], document.get("output"))]
    return " → ".join(part for part in parts if part)


def make_description(document: Mapping[str, Any]) -> str:
    """Return what the preview of a shared link says below input and output: first how sure the model is."""
    sure = describe_certainty(document)
    return f"{sure[:1].upper()}{sure[1:]}. {DESCRIPTION}" if sure else DESCRIPTION


def make_hash_source(content: str) -> str:
    """Return the source of a content security policy that allows exactly this script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def read_document(page: str) -> Document:
    """Return the document of a page."""
    start = page.index(DOCUMENT_START) + len(DOCUMENT_START)
    return cast("Document", json.loads(page[start : page.index("</script>", start)]))
