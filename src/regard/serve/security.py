"""What stands before every route: hosts, keys, rate and body limits, request ids. Pure ASGI, no route can leave it out.

The path that decides is `scope["path"]`, which the server reads from the request line. `request.url` is made from the
`Host` header, which the client chooses, and is never used here.
"""

import base64
import binascii
import hmac
import json
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect

from regard.serve.disconnect import App, Message, Receive, Scope, Send, cancel_on_disconnect
from regard.serve.errors import LIBRETRANSLATE_ROUTES, send_error
from regard.serve.settings import LOCAL_NAMES, hash_key, is_loopback

MAX_CLIENTS = 10_000  # rate limits are kept for the clients that came last
# The field of a form with a file. A search is enough: what a file contains must still be a valid key.
_FORM_KEY = re.compile(rb'form-data; name="api_key"\r\n(?:[^\r\n]{1,200}\r\n){0,5}\r\n([^\r\n]{1,200})\r\n--')


class SecurityMiddleware:
    """ASGI middleware: checks the key, the rate and the size of every request, and gives it an id.

    Args:
        app: The application.
        keys: Names of keys by their hash; empty: no key is needed.
        hosts: Names in the `Host` header that are answered without keys. A page of another site can give its own name
            the address of this machine (DNS rebinding) and would then read every answer.
        open_routes: Paths that need no key.
        reload_keys: Names of the keys that may reload models. Without keys, programs on this machine may.
        body_bytes: Maximum size of a body.
        upload_bytes: Maximum size of a body that holds files (multipart/form-data), for each route that takes them.
        requests_per_minute: Maximum rate of each key or address; 0: no limit.
        refuse: Called with the reason of every refused request, for metrics: "host", "key", "rate", "body",
            "permission".
    """

    def __init__(
        self,
        app: App,
        *,
        keys: Mapping[str, str],
        hosts: frozenset[str] = LOCAL_NAMES,
        open_routes: frozenset[str],
        reload_keys: frozenset[str] = frozenset(),
        body_bytes: int,
        upload_bytes: Mapping[str, int],
        requests_per_minute: int,
        refuse: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.app, self.keys, self.hosts, self.open_routes, self.reload_keys = app, keys, hosts, open_routes, reload_keys
        self.body_bytes, self.upload_bytes, self.refuse = body_bytes, upload_bytes, refuse
        self.rates = RateLimit(requests_per_minute) if requests_per_minute else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # there are no web sockets
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        request_id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id

        has_files = headers.get(b"content-type", b"").startswith(b"multipart/form-data")
        max_bytes = self.upload_bytes.get(scope["path"], self.body_bytes) if has_files else self.body_bytes
        is_refused = False

        async def send_with_id(message: Message) -> None:
            if is_refused:
                return  # the answer was given already
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id.encode()),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                ]
            await send(message)

        async def refuse(reason: str, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
            nonlocal is_refused
            if not is_refused:
                self.refuse(reason)
                scope["state"]["refusal"] = reason
                await send_error(scope, send_with_id, status, text, headers)
                is_refused = True

        async def refuse_body() -> None:
            close = (b"connection", b"close")  # the rest of the body is not read
            await refuse("body", 413, f"The body may have {max_bytes:,} bytes.", close)

        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > max_bytes:
            await refuse_body()
            return
        if (problem := self._find_foreign_page(scope["method"], headers)) is not None:
            await refuse("host", *problem)
            return
        limited_receive = _limit_body(receive, max_bytes, refuse_body)
        client = (scope.get("client") or ("", 0))[0]
        if self.keys and scope["path"] not in self.open_routes:
            key, limited_receive = await self._find_key(scope, headers, limited_receive)
            name = self._check_key(key)
            if name is None:
                challenge = (b"www-authenticate", b'Basic realm="regard", charset="UTF-8"')
                await refuse("key", 401, "A valid key is needed.", challenge)
                return
            client = scope["state"]["key"] = name
        if self.rates is not None and (wait := self.rates.take(client)) > 0:
            retry = (b"retry-after", str(max(1, round(wait))).encode())
            await refuse("rate", 429, "Too many requests in this minute.", retry)
            return
        if scope["path"].startswith("/reload/") and not self._may_reload(scope, headers):
            text = "This client may not reload models; see `reload_keys` in the settings."
            await refuse("permission", 403, text)
            return
        with suppress(ClientDisconnect):  # the client left, or its body was refused: there is nobody to answer
            await cancel_on_disconnect(self.app, scope, limited_receive, send_with_id)

    def _find_foreign_page(self, method: str, headers: Mapping[bytes, bytes]) -> tuple[int, str] | None:
        """Return why the page of another site may not send this request in its reader's browser."""
        host = headers.get(b"host", b"localhost")
        if method not in ("GET", "HEAD", "OPTIONS") and not _is_own_page(headers, host):
            return 403, "Pages of other sites and other ports may not send requests."
        if not self.keys and _read_host_name(host) not in self.hosts:
            return 421, "This server has another name; `hosts` in its settings lists those that it answers to."
        return None

    def _may_reload(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        if self.keys:
            return scope["state"].get("key") in self.reload_keys
        return is_loopback((scope.get("client") or ("", 0))[0]) and b"x-forwarded-for" not in headers  # no proxy

    async def _find_key(
        self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive
    ) -> tuple[str | None, Receive]:
        """Return the key of a request; LibreTranslate's clients send it in the body, which is read and kept."""
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

    def _check_key(self, key: str | None) -> str | None:
        """Return the name of a key; all hashes are compared, each in constant time."""
        digest, key_name = hash_key(key or ""), None
        for key_hash, name in self.keys.items():
            if hmac.compare_digest(key_hash, digest):
                key_name = name
        return key_name


def _read_host_name(host: bytes) -> str:
    """Return the name of a host without its port."""
    text = host.decode("latin-1").lower()
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]


def _is_own_page(headers: Mapping[bytes, bytes], host: bytes) -> bool:
    """Return whether a request comes from this server's own page, or not from a browser's page.

    A browser sends `Sec-Fetch-Site` to https and to this machine only, but `Origin` with every POST: "null" for
    files and sandboxed frames, else scheme, name and port. Programs send neither.
    """
    site, origin = headers.get(b"sec-fetch-site", b"none"), headers.get(b"origin")
    if site != b"none" or origin is None:
        return site in (b"none", b"same-origin")
    scheme, _, place = origin.lower().partition(b"://")
    return place == host.lower().removesuffix({b"http": b":80", b"https": b":443"}.get(scheme, b"/"))


def _limit_body(receive: Receive, max_bytes: int, refuse_body: Callable[[], Awaitable[None]]) -> Receive:
    """Count the bytes of a body that has no content-length, or more than it says; the rest is not read."""
    received = 0

    async def limited() -> Message:
        nonlocal received
        if received > max_bytes:
            return {"type": "http.disconnect"}
        message = await receive()
        received += len(message.get("body", b""))
        if received > max_bytes:
            await refuse_body()
            return {"type": "http.disconnect"}
        return message

    return limited


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
    """Return a `receive` that gives a body that was read already."""
    is_given = False

    async def replayed() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


class RateLimit:
    """A token bucket for each client.

    >>> limit = RateLimit(2)
    >>> limit.take("a", now=0.0), limit.take("a", now=0.0), limit.take("a", now=0.0), limit.take("a", now=30.0)
    (0.0, 0.0, 30.0, 0.0)
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, time

    def take(self, client: str, now: float | None = None) -> float:
        """Count a request; return 0, or the seconds after which it would be allowed."""
        now = time.monotonic() if now is None else now
        left, last = self._buckets.pop(client, (float(self.per_minute), now))
        left = min(float(self.per_minute), left + (now - last) * self.per_minute / 60)
        allowed = left >= 1
        self._buckets[client] = (left - allowed, now)
        while len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) * 60 / self.per_minute
