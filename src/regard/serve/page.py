"""The pages at `/` and `/look`: HTML files with inline script and style, restricted by a content security policy.

`/look` shows how a model translates a sentence. It sends the sentence to `/translate` with `explain` and starts the
script of `regard look` with the document of the response.

They need a key like every other route: the browser shows a password prompt and then sends the key with every request.
"""

from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from regard.base.errors import RegardError
from regard.look.page import make_hash_source, read_script

POLICY = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def make_router() -> APIRouter:
    """Return the routes of the pages."""
    router = APIRouter()

    @router.get("/", include_in_schema=False)
    async def page() -> Response:
        return make_page()

    @router.get("/look", include_in_schema=False)
    async def look() -> Response:
        return make_look_page()

    return router


@cache
def make_page() -> HTMLResponse:
    """Return the page with its content security policy."""
    script, style = (_read(name) for name in ("page.js", "page.css"))
    policy = (
        f"default-src 'none'; script-src {make_hash_source(script)}; style-src {make_hash_source(style)}; "
        f"connect-src 'self'; img-src data:; media-src data:; {POLICY}"
    )
    return _respond("page.html", policy, style=style, script=script)


@cache
def make_look_page() -> HTMLResponse:
    """Return the page that looks into a model, without a document: its program asks for one."""
    script, program = _read("look.js"), read_script()
    policy = (
        f"default-src 'none'; script-src {make_hash_source(script)} {make_hash_source(program)}; "
        f"style-src 'unsafe-inline'; connect-src 'self'; img-src data: blob:; {POLICY}"
    )
    return _respond("look.html", policy, script=script, program=program)


def _respond(name: str, policy: str, **parts: str) -> HTMLResponse:
    template = (files("regard.serve") / name).read_text(encoding="utf-8")
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-cache"}
    return HTMLResponse(template.format(**parts), headers=headers)


def _read(name: str) -> str:
    path = files("regard.serve") / "static" / name
    if not path.is_file():
        raise RegardError("The server page is missing.", location=str(path), hint="Build it: scripts/build_web")
    return path.read_text(encoding="utf-8")
