"""The page at `/`: one HTML file with its program and its style, which no other site may frame, and no other program.

It is behind the keys like every route: a browser asks for the key with its password prompt and sends it from then on.
"""

from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from regard.base.errors import RegardError
from regard.look.page import make_hash_source

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Regard</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<noscript>This page needs JavaScript, which is switched off.</noscript>
<script>{script}</script>
</body>
</html>
"""


def make_router() -> APIRouter:
    """Return the route of the page."""
    router = APIRouter()

    @router.get("/", include_in_schema=False)
    async def page() -> Response:
        return make_page()

    return router


@cache
def make_page() -> HTMLResponse:
    """Return the page with its content security policy."""
    script, style = (_read(name) for name in ("page.js", "page.css"))
    policy = (
        f"default-src 'none'; script-src {make_hash_source(script)}; style-src {make_hash_source(style)}; "
        "connect-src 'self'; img-src data:; media-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-cache"}
    return HTMLResponse(TEMPLATE.format(style=style, script=script), headers=headers)


def _read(name: str) -> str:
    path = files("regard.serve") / "static" / name
    if not path.is_file():
        raise RegardError("The page of the server is missing.", location=str(path), hint="Build it: scripts/build_web")
    return path.read_text(encoding="utf-8")
