"""A page on this machine: `respond` answers requests, `serve` runs it on http.server.

    GET /TOKEN/                                              the page
    GET /TOKEN/document                                      the document
    GET /TOKEN/map?group=decoder.cross&layer=1&head=3        blob: the weights of one head
    GET /TOKEN/row?group=...&layer=1&head=3&row=0            {"weights": [...]}, exact
    GET /TOKEN/logits?position=7                             blob: log-probabilities of a sampling step
    GET /TOKEN/continue?candidate=17                         {"continuation": ..., "vocabulary": ...}
    GET /TOKEN/hypothesis?candidate=17                       {"hypothesis": ..., "blobs": ...}
    GET /TOKEN/ablate?head=decoder.cross.1.3&head=...        {"text": ..., "delta": ...}; all these heads are off

A page asks relative to its own address: `fetch("map?group=...")`. Errors are {"error": "..."} with status 400.

Who may read: the server listens on 127.0.0.1 only. Every address contains a random token, so that other users of the
machine cannot guess it. `Host` must be this machine, so that a page of another site cannot reach the server by a name
that resolves to 127.0.0.1 (DNS rebinding). A request whose `Origin` is another site is refused.
"""

import hmac
import secrets
import threading
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from regard.base.errors import RegardError
from regard.look.ablation import Head
from regard.look.document import to_json
from regard.look.look import Look

HOST = "127.0.0.1"
JSON, HTML, TEXT = "application/json", "text/html; charset=utf-8", "text/plain; charset=utf-8"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
Query = Mapping[str, list[str]]


@dataclass(frozen=True)
class Response:
    """The answer to a request."""

    status: int
    content_type: str
    body: bytes


def respond(look: Look, token: str, path: str, headers: Mapping[str, str], port: int) -> Response:
    """Return the answer to a GET request; nothing else is read or changed.

    Args:
        look: What the page shows.
        token: The secret part of every address.
        path: The path with its query, e.g. "/TOKEN/map?group=decoder.self&layer=0&head=1".
        headers: The request's headers; `Host` and `Origin` count.
        port: The port of the server, which `Host` must name.
    """
    allowed_hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
    origin = headers.get("Origin")
    if headers.get("Host") not in allowed_hosts:
        return Response(403, TEXT, b"This server answers only requests to this machine.")
    if origin is not None and origin not in {f"http://{host}" for host in allowed_hosts}:
        return Response(403, TEXT, b"This server answers only its own page.")
    address = urlsplit(path)
    _, _, rest = address.path.partition("/")
    requested_token, slash, name = rest.partition("/")
    if not slash or not hmac.compare_digest(requested_token.encode(), token.encode()):
        return Response(404, TEXT, b"There is nothing here. Use the whole address that the command printed.")
    if name == "":
        return Response(200, HTML, look.html(live=True).encode())
    action = ACTIONS.get(name)
    if action is None:
        return Response(404, TEXT, b"There is no such page.")
    try:
        result = action(look, parse_qs(address.query, max_num_fields=1000))
    except (RegardError, ValueError, KeyError) as error:
        message = str(error) if isinstance(error, RegardError) else "The request is not complete."
        return Response(400, JSON, to_json({"error": message}).encode())
    return Response(200, JSON, to_json(result).encode())


def _read_head(query: Query) -> Head:
    return cast("Head", (query["group"][0], int(query["layer"][0]), int(query["head"][0])))


def _parse_head(text: str) -> Head:
    group, layer, head = text.rsplit(".", 2)
    return cast("Head", (group, int(layer), int(head)))


def _continue(look: Look, query: Query) -> dict[str, Any]:
    continuation, vocabulary = look.continue_from(int(query["candidate"][0]))
    return {"continuation": continuation, "vocabulary": vocabulary}


ACTIONS: dict[str, Callable[[Look, Query], Mapping[str, Any]]] = {
    "document": lambda look, _: {**look.document, "live": True},
    "map": lambda look, query: look.map(*_read_head(query)),
    "row": lambda look, query: {"weights": look.row(*_read_head(query), int(query["row"][0]))},
    "logits": lambda look, query: look.logits(int(query["position"][0])),
    "continue": _continue,
    "hypothesis": lambda look, query: look.hypothesis(int(query["candidate"][0])),
    "ablate": lambda look, query: look.without_heads([_parse_head(text) for text in query["head"]]),
}


class LocalServer:
    """A running server of one look."""

    def __init__(self, look: Look, port: int) -> None:
        self.token = secrets.token_urlsafe(24)
        lock = threading.Lock()  # the model answers one request at a time
        token = self.token

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server_port = cast("ThreadingHTTPServer", self.server).server_port
                with lock:
                    response = respond(look, token, self.path, dict(self.headers.items()), server_port)
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
def serve(look: Look, port: int = 0) -> Iterator[LocalServer]:
    """Serve a look until the block ends; port 0 takes any free one."""
    server = LocalServer(look, port)
    try:
        yield server
    finally:
        server.close()
