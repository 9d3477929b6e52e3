"""The page: one HTML file with the document and the program that draws it.

    <div id="app">                                    the program draws here
    <script type="application/json" id="document">    the document
    <script>                                          static/app.js, built from web/

The content security policy allows this one program and no other, and no request to any other machine.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any, cast

from regard.base.errors import RegardError
from regard.look.document import Document, to_json

DOCUMENT_START = '<script type="application/json" id="document">'
TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
</head>
<body>
<div id="app"></div>
<noscript>This page draws with JavaScript, which is switched off.</noscript>
{start}{document}</script>
<script>{script}</script>
</body>
</html>
"""


def read_script() -> str:
    """Return the program of the page, which ships with the package."""
    path = files("regard.look") / "static" / "app.js"
    if not path.is_file():
        raise RegardError(
            "The program of the page is missing.",
            location=str(path),
            hint="Build it: `npm ci && npm run build` in web/.",
        )
    return path.read_text(encoding="utf-8")


def make_page(document: Mapping[str, Any], script: str | None = None) -> str:
    """Return the page of a document.

    Args:
        document: A `regard.look.document.Document`.
        script: The program; by default the one that ships with the package.
    """
    script = read_script() if script is None else script
    if "</script" in script.lower() or "<!--" in script:
        raise RegardError("The program of the page would end its own script element.", hint="Escape `<` in it.")
    connect = "'self'" if document["live"] else "'none'"
    policy = (
        f"default-src 'none'; script-src {make_hash_source(script)}; style-src 'unsafe-inline'; img-src data: blob:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )
    return TEMPLATE.format(
        policy=policy,
        title=escape(f"{document['text'][:60]} · Regard"),
        start=DOCUMENT_START,
        document=to_json(document),
        script=script,
    )


def make_hash_source(content: str) -> str:
    """Return the source of a content security policy that allows exactly this script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def read_document(page: str) -> Document:
    """Return the document of a page."""
    start = page.index(DOCUMENT_START) + len(DOCUMENT_START)
    return cast("Document", json.loads(page[start : page.index("</script>", start)]))
