"""ASGI middleware in front of every route: request ids, body limits, hosts, keys and rate limits.

Checks use `scope["path"]`, which comes from the request line. `request.url` depends on the client's `Host` header and
is never used here.
"""

import base64
import binascii
import hmac
import json
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from urllib.parse import parse_qs

from regard.serve.disconnect import App, Message, Receive, Scope, Send
from regard.serve.errors import LIBRETRANSLATE_ROUTES, send_error
from regard.serve.settings import hash_key, is_loopback

MAX_CLIENTS = 10_000  # rate limits are kept for the most recent clients
# The key field in a form with a file. A plain search is enough, because a match must still be a valid key.
_FORM_KEY = re.compile(rb'form-data; name="api_key"\r\n(?:[^\r\n]{1,200}\r\n){0,5}\r\n([^\r\n]{1,200})\r\n--')


class HttpMiddleware:
    """Base middleware: handles HTTP requests, and forwards lifespan events to the next `app`."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call `handle` for an HTTP request."""
        await (self.handle if scope["type"] == "http" else self.app)(scope, receive, send)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request, or forward it."""
        raise NotImplementedError

    async def refuse(
        self, scope: Scope, send: Send, reason: str, status: int, text: str, *headers: tuple[bytes, bytes]
    ) -> None:
        """Send an error, unless another middleware did; `reason` is for the log and metrics."""
        if scope["state"].setdefault("refusal", reason) == reason:
            await send_error(scope, send, status, text, headers)


class RequestIdMiddleware(HttpMiddleware):
    """Assigns every request an id; adds the id and security headers to every response."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Close WebSockets, which are not supported."""
        if scope["type"] in ("http", "lifespan"):
            await super().__call__(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the id with the response."""
        request_id = scope.setdefault("state", {})["request_id"] = secrets.token_hex(8)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                ]
            await send(message)

        await self.app(scope, receive, send_with_id)


class BodyLimitMiddleware(HttpMiddleware):
    """Limits the body size, by content-length and by the bytes received; the rest is not read.

    Args:
        app: The next application.
        body_bytes: Maximum size of a body.
        upload_bytes: Maximum size of a body with files (multipart/form-data), by route.
    """

    def __init__(self, app: App, *, body_bytes: int, upload_bytes: Mapping[str, int]) -> None:
        super().__init__(app)
        self.body_bytes, self.upload_bytes = body_bytes, upload_bytes

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the received bytes."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        has_files = headers.get(b"content-type", b"").startswith(b"multipart/form-data")
        max_bytes = self.upload_bytes.get(scope["path"], self.body_bytes) if has_files else self.body_bytes
        received, is_refused = 0, False

        async def refuse_body() -> None:
            nonlocal is_refused
            is_refused = True
            close = (b"connection", b"close")  # the rest of the body is not read
            await self.refuse(scope, send, "body", 413, f"The maximum body size is {max_bytes:,} bytes.", close)

        async def limited_receive() -> Message:
            nonlocal received
            if not is_refused:
                message = await receive()
                received += len(message.get("body", b""))
                if received <= max_bytes:
                    return message
                await refuse_body()
            return {"type": "http.disconnect"}

        async def send_unless_refused(message: Message) -> None:
            if not is_refused:
                await send(message)

        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > max_bytes:
            await refuse_body()
        else:
            await self.app(scope, limited_receive, send_unless_refused)


class OriginMiddleware(HttpMiddleware):
    """Rejects cross-site requests from browsers.

    Args:
        app: The next application.
        hosts: Accepted names in the `Host` header, as a protection against DNS rebinding. None accepts any name,
            because keys are required.
    """

    def __init__(self, app: App, *, hosts: frozenset[str] | None) -> None:
        super().__init__(app)
        self.hosts = hosts

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the host and the origin of the request."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        host = headers.get(b"host", b"localhost")
        if scope["method"] not in ("GET", "HEAD", "OPTIONS") and not _is_own_page(headers, host):
            text = "Cross-origin requests are not allowed."
            await self.refuse(scope, send, "host", 403, text)
        elif self.hosts is not None and _read_host_name(host) not in self.hosts:
            text = "Unknown host name; add it to `hosts` in the server settings."
            await self.refuse(scope, send, "host", 421, text)
        else:
            await self.app(scope, receive, send)


class ClientMiddleware(HttpMiddleware):
    """Authorizes clients by key or address.

    Args:
        app: The next application.
        keys: Key names by hash; empty if no key is required.
        open_routes: Paths that need no key.
        reload_keys: Names of keys that may reload models. Without keys, local programs may.
        requests_per_minute: Rate limit per key or address; 0 for no limit.
    """

    def __init__(
        self,
        app: App,
        *,
        keys: Mapping[str, str],
        open_routes: frozenset[str],
        reload_keys: frozenset[str],
        requests_per_minute: int,
    ) -> None:
        super().__init__(app)
        self.keys, self.open_routes, self.reload_keys = keys, open_routes, reload_keys
        self.rates = RateLimit(requests_per_minute) if requests_per_minute else None

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the key, then the rate, then the permission to reload models."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        address = client = (scope.get("client") or ("", 0))[0]
        may_reload = not self.keys and is_loopback(address) and b"x-forwarded-for" not in headers  # no proxy
        # The address of a translated file cannot be guessed, and LibreTranslate's clients send no key with it.
        is_open = scope["path"] in self.open_routes or scope["path"].startswith("/download_file/")
        if self.keys and not is_open:
            key, receive = await _find_key(scope, headers, receive)
            client = self._check_key(key)
            if client is None:
                challenge = (b"www-authenticate", b'Basic realm="regard", charset="UTF-8"')
                await self.refuse(scope, send, "key", 401, "A valid key is required.", challenge)
                return
            scope["state"]["key"], may_reload = client, client in self.reload_keys
        if self.rates is not None and (wait := self.rates.take(client)) > 0:
            retry = (b"retry-after", str(max(1, round(wait))).encode())
            await self.refuse(scope, send, "rate", 429, "Rate limit exceeded.", retry)
        elif scope["path"].startswith("/reload/") and not may_reload:
            text = "This client may not reload models; see `reload_keys` in the settings."
            await self.refuse(scope, send, "permission", 403, text)
        else:
            await self.app(scope, receive, send)

    def _check_key(self, key: str | None) -> str | None:
        """Return the name of a key; compares all hashes, each in constant time."""
        digest, key_name = hash_key(key or ""), None
        for key_hash, name in self.keys.items():
            if hmac.compare_digest(key_hash, digest):
                key_name = name
        return key_name


async def _find_key(scope: Scope, headers: Mapping[bytes, bytes], receive: Receive) -> tuple[str | None, Receive]:
    """Return the key of a request; LibreTranslate clients send it in the body, which is buffered."""
    kind, _, value = headers.get(b"authorization", b"").partition(b" ")
    if kind.lower() == b"bearer":
        return value.decode("latin-1").strip(), receive
    if kind.lower() == b"basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2], receive
        except (binascii.Error, UnicodeDecodeError):
            return None, receive
    if scope["path"] not in LIBRETRANSLATE_ROUTES:
        return None, receive
    try:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=50)
    except ValueError:
        return None, receive
    if "api_key" in query:
        return query["api_key"][0], receive
    # LibreTranslate's Python client sends the key of GET /languages in a body.
    body, has_more = b"", scope["method"] == "POST" or scope["path"] == "/languages"
    while has_more:
        message = await receive()
        if message["type"] != "http.request":
            return None, receive
        body, has_more = body + message.get("body", b""), message.get("more_body", False)
    return _read_body_key(headers.get(b"content-type", b""), body), _replay(body, receive)


def _read_host_name(host: bytes) -> str:
    """Return the host name without its port."""
    text = host.decode("latin-1").lower()
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]


def _is_own_page(headers: Mapping[bytes, bytes], host: bytes) -> bool:
    """Return whether a request comes from this server's own page or from a non-browser client.

    Browsers send `Sec-Fetch-Site` only to https and localhost, but `Origin` with every POST: "null" for files and
    sandboxed frames, otherwise scheme, name and port. Other programs send neither.
    """
    site, origin = headers.get(b"sec-fetch-site", b"none"), headers.get(b"origin")
    if site != b"none" or origin is None:
        return site in (b"none", b"same-origin")
    scheme, _, place = origin.lower().partition(b"://")
    return place == host.lower().removesuffix({b"http": b":80", b"https": b":443"}.get(scheme, b"/"))


def _read_body_key(content_type: bytes, body: bytes) -> str | None:
    try:
        if content_type.startswith(b"application/json"):
            content = json.loads(body)
            key = content.get("api_key") if isinstance(content, dict) else None
            return key if isinstance(key, str) else None
        if content_type.startswith(b"application/x-www-form-urlencoded"):
            return parse_qs(body.decode(), max_num_fields=50).get("api_key", [None])[0]
        if content_type.startswith(b"multipart/form-data") and (field := _FORM_KEY.search(body)):
            return field[1].decode()
    except (ValueError, RecursionError):
        return None
    return None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that replays a buffered body."""
    is_given = False

    async def replayed() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


class RateLimit:
    """A token bucket per client.

    >>> limit = RateLimit(2)
    >>> limit.take("a", now=0.0), limit.take("a", now=0.0), limit.take("a", now=0.0), limit.take("a", now=30.0)
    (0.0, 0.0, 30.0, 0.0)
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, time

    def take(self, client: str, now: float | None = None) -> float:
        """Count a request; return 0, or the seconds until it is allowed."""
        now = time.monotonic() if now is None else now
        left, last = self._buckets.pop(client, (float(self.per_minute), now))
        left = min(float(self.per_minute), left + (now - last) * self.per_minute / 60)
        allowed = left >= 1
        self._buckets[client] = (left - allowed, now)
        while len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) * 60 / self.per_minute
