"""Serve a page on this machine with http.server.

    GET /TOKEN/                  the page
    GET /TOKEN/NAME?QUERY        JSON: the result of the page's `answer`
    POST /TOKEN/NAME             the same; the body is the query, which may be longer than a URL

A page requests URLs relative to its own: `fetch("map?group=...")`. Errors are {"error": "..."} with status 400.

Access: the server listens on 127.0.0.1 only. Every URL contains a random token, so other users of the machine cannot
guess it. `Host` must be this machine, so that a page of another site cannot reach the server by a name that resolves to
127.0.0.1 (DNS rebinding). Requests with another site's `Origin` are rejected.
"""

import hmac
import secrets
import threading
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, cast
from urllib.parse import parse_qs, urlsplit

from regard.base.errors import RegardError
from regard.look.document import to_json

HOST = "127.0.0.1"
MAX_BODY = 2**18  # bytes: two texts of 5,000 characters, each at most 12 bytes in a query
FORM = "application/x-www-form-urlencoded"
JSON, HTML, TEXT = "application/json", "text/html; charset=utf-8", "text/plain; charset=utf-8"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
Query = Mapping[str, list[str]]


class LivePage(Protocol):
    """A page that can request more data."""

    def html(self, *, live: bool = False) -> str:
        """Return the page."""

    def answer(self, name: str, query: Query) -> Mapping[str, Any] | None:
        """Return the response to a request from the page; None if the request is unknown.

        Raises:
            RegardError, ValueError, KeyError: The query is wrong.
        """


@dataclass(frozen=True)
class Response:
    """The response to a request."""

    status: int
    content_type: str
    body: bytes


def respond(
    page: LivePage, token: str, path: str, headers: Mapping[str, str], port: int, body: bytes | None = None
) -> Response:
    """Return the response to a request.

    Args:
        page: The page.
        token: The secret part of every URL.
        path: The path with its query, e.g. "/TOKEN/map?group=decoder.self&layer=0&head=1".
        headers: The request's headers, in any case; `Host` and `Origin` count.
        port: The port of the server, which `Host` must name.
        body: The query of a POST request; None for GET.
    """
    allowed_hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
    lower = {name.lower(): value for name, value in headers.items()}  # HTTP header names are case-insensitive
    origin = lower.get("origin")
    if lower.get("host") not in allowed_hosts:
        return Response(403, TEXT, b"This server answers only requests to this machine.")
    if origin is not None and origin not in {f"http://{host}" for host in allowed_hosts}:
        return Response(403, TEXT, b"This server answers only its own page.")
    address = urlsplit(path)
    _, _, rest = address.path.partition("/")
    requested_token, slash, name = rest.partition("/")
    if not slash or not hmac.compare_digest(requested_token.encode(), token.encode()):
        return Response(404, TEXT, b"There is nothing here. Use the whole address that the command printed.")
    if body is not None and lower.get("content-type", "").partition(";")[0] != FORM:
        return Response(415, TEXT, f"The body must be {FORM}.".encode())
    if name == "" and body is None:
        return Response(200, HTML, page.html(live=True).encode())
    try:
        query = address.query if body is None else body.decode()
        result = page.answer(name, parse_qs(query, max_num_fields=1000))
    except (RegardError, ValueError, KeyError) as error:
        message = str(error) if isinstance(error, RegardError) else "The request is not complete."
        return Response(400, JSON, to_json({"error": message}).encode())
    if result is None:
        return Response(404, TEXT, b"There is no such page.")
    return Response(200, JSON, to_json(result).encode())


class LocalServer:
    """A running server for one page."""

    def __init__(self, page: LivePage, port: int) -> None:
        self.token = secrets.token_urlsafe(24)
        lock = threading.Lock()  # the model handles one request at a time
        token = self.token

        class Handler(BaseHTTPRequestHandler):
            timeout = 60  # seconds to wait for a slow client

            def do_GET(self) -> None:
                self._respond()

            def do_POST(self) -> None:
                length = self.headers.get("Content-Length", "")
                if not length.isascii() or not length.isdigit():
                    return self._send(Response(411, TEXT, b"The request has no length."))
                if int(length) > MAX_BODY:
                    return self._send(Response(413, JSON, b'{"error":"The text is too long."}'))
                return self._respond(self.rfile.read(int(length)))

            def _respond(self, body: bytes | None = None) -> None:
                server_port = cast("ThreadingHTTPServer", self.server).server_port
                with lock:
                    response = respond(page, token, self.path, dict(self.headers.items()), server_port, body)
                self._send(response)

            def _send(self, response: Response) -> None:
                self.send_response(response.status)
                headers = {"Content-Type": response.content_type, "Content-Length": str(len(response.body)), **HEADERS}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(response.body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        try:
            self._server = ThreadingHTTPServer((HOST, port), Handler)
        except OSError as error:
            hint = "Choose another one, or 0 for any free port."
            raise RegardError(f"Port {port} cannot be used: {error.strerror}.", hint=hint) from error
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self._server.server_port}/{self.token}/"

    def open_browser(self) -> bool:
        """Open the page; False if there is no browser."""
        return webbrowser.open(self.url)

    def wait(self) -> None:
        """Wait until the user presses Ctrl-C."""
        try:
            while self._thread.is_alive():
                self._thread.join(timeout=1.0)
        except KeyboardInterrupt:
            return

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def serve(page: LivePage, port: int = 0) -> Iterator[LocalServer]:
    """Serve a page until the block ends; port 0 selects any free port."""
    server = LocalServer(page, port)
    try:
        yield server
    finally:
        server.close()
