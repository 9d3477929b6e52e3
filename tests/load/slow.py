"""H3: slow clients; H5: clients that leave; H6: requests above the limits."""

import asyncio
import json
import random
import socket
import struct
import time
from dataclasses import dataclass

from tests.faults.verdict import Verdict
from tests.load.client import ADDRESS, Connection, ask, get, make_request, post, repeat
from tests.load.server import Server

CONNECTIONS, QUICK_CONNECTIONS = 500, 20
PROBES, QUICK_PROBES = 400, 60
DISCONNECTS, QUICK_DISCONNECTS = 2000, 80
TOLERANCE = 2.0  # seconds after a deadline; the timers of hundreds of connections end together
TRANSLATE = post("/translate", {"q": "Two dogs.", "target": "de"})


@dataclass(frozen=True)
class Slow:
    """A slow client: what it sends at once, then byte by byte, and the deadline that it misses."""

    first: bytes
    rest: bytes = b""
    is_body: bool = False


HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
SLOW = (
    Slow(b""),
    Slow(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: ", b"a" * 1000),
    Slow(b"GET /", b"a" * 1000),
    Slow(get("/health") + b"\r\n", b"\r\n" * 500),  # line breaks after a whole request
    Slow(HEAD + b"Content-Length: 1000\r\n\r\n{", b" " * 999, is_body=True),
    Slow(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 500, is_body=True),
    Slow(get("/health").replace(b"GET", b"POST") + get("/health")[:20], b"a" * 1000),
)


async def be_slow(server: Server, slow: Slow) -> float:
    """Send a byte each second; return the seconds until the server closes the connection."""
    reader, writer = await asyncio.open_connection(ADDRESS, server.port)
    start = time.monotonic()

    async def dribble() -> None:
        writer.write(slow.first)
        for byte in slow.rest:
            await asyncio.sleep(1)
            writer.write(bytes([byte]))

    task = asyncio.ensure_future(dribble())
    try:
        while await reader.read(10_000):
            pass
    except ConnectionError:
        pass
    finally:
        task.cancel()
        writer.close()
    return time.monotonic() - start


async def measure_latency(server: Server, count: int) -> list[float]:
    connection, seconds = Connection(server.port), []
    for _ in range(count):
        answer = await connection.ask(TRANSLATE)
        seconds.append(answer.seconds if answer.status == 200 else float("inf"))
        await asyncio.sleep(0.005)
    await connection.close()
    return sorted(seconds)


async def prove_slow(server: Server, quick: bool, header_seconds: float, body_seconds: float) -> Verdict:
    """H3: the server has these deadlines."""
    verdict = Verdict("H3", "slow connections outlived their deadline")
    count, probes = (QUICK_CONNECTIONS, QUICK_PROBES) if quick else (CONNECTIONS, PROBES)
    await measure_latency(server, 20)
    idle = await measure_latency(server, probes)
    tasks = [(slow, asyncio.ensure_future(be_slow(server, slow))) for slow in (SLOW * count)[:count]]
    busy = await measure_latency(server, probes)
    for slow, task in tasks:
        limit = body_seconds if slow.is_body else header_seconds
        try:
            async with asyncio.timeout(limit + 30):
                seconds = await task
        except TimeoutError:
            seconds = float("inf")
        is_late = seconds > limit + TOLERANCE
        verdict.add_fault(
            repr(slow.first), [f"closed after {seconds:.1f} s, the deadline is {limit} s"] if is_late else []
        )
    idle_p99, busy_p99 = (values[int(0.99 * len(values))] for values in (idle, busy))
    idle_p50, busy_p50 = (values[len(values) // 2] for values in (idle, busy))
    p50, p99 = (
        f"{1000 * before:.1f} -> {1000 * after:.1f} ms"
        for before, after in ((idle_p50, busy_p50), (idle_p99, busy_p99))
    )
    verdict.notes.append(f"/translate beside them p50 {p50}, p99 {p99}")
    verdict.require(
        f"p99 rose from {idle_p99:.3f} to {busy_p99:.3f} s", busy_p99 <= (20 if quick else 2) * idle_p99 + 0.005
    )
    return verdict


STREAM = {"model": "writer", "prompt": "Two", "max_tokens": 500, "stream": True}
LEAVING = (
    post("/v1/completions", STREAM),
    post("/v1/chat/completions", STREAM | {"messages": [{"role": "user", "content": "Hi"}]}),
    post("/translate", {"q": "Two dogs. One cat.", "stream": True, "beam_size": 1}),
    post("/translate", {"q": ["Two dogs."] * 5}),
    post("/translate", {"q": ["Two dogs."] * 20}) + get("/health"),
    post("/v1/completions", {"model": "writer", "prompt": "Two", "max_tokens": 30}),
    post("/v1/embeddings", {"model": "encoder", "input": ["Two dogs."] * 20}),
)


async def leave(server: Server, source: random.Random) -> None:
    """Send a request, or a part of it, and close the connection at a random moment."""
    request, moment = source.choice(LEAVING), source.randrange(5)
    try:
        reader, writer = await asyncio.open_connection(ADDRESS, server.port)
    except OSError:
        return
    try:
        if source.random() < 0.5:  # a reset instead of an orderly end
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.write(request[: source.randrange(len(request))] if moment == 0 else request)
        async with asyncio.timeout(0.5):
            if moment == 2:
                await asyncio.sleep(source.random() / 50)  # before the first byte
            elif moment == 3:
                await reader.readline()
            elif moment == 4:
                await reader.readuntil(b"data: ")
                await reader.readuntil(b"\n\n")
    except (OSError, EOFError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()


async def prove_disconnects(server: Server, quick: bool) -> Verdict:
    """H5."""
    verdict, source = Verdict("H5", "clients that left kept a place, a descriptor or a thread"), random.Random(5)
    await repeat(16, lambda _: leave(server, source), range(50))  # threads and pools are made once
    await server.is_idle(10)
    await asyncio.sleep(0.5)
    before, count = server.figures, QUICK_DISCONNECTS if quick else DISCONNECTS
    for _ in range(4):
        await repeat(32, lambda _: leave(server, source), range(count // 4))
        start = time.monotonic()
        is_idle = await server.is_idle(1.0 if not quick else 5.0)
        seconds = time.monotonic() - start
        await asyncio.sleep(max(0, 1 - seconds))
        after = server.figures
        broken = [] if is_idle else ["requests still run after 1 s"]
        broken += (
            [f"descriptors {before.descriptors} -> {after.descriptors}"]
            if after.descriptors > before.descriptors + 1
            else []
        )
        broken += [f"threads {before.threads} -> {after.threads}"] if after.threads > before.threads else []
        verdict.faults += count // 4 - 1
        verdict.add_fault("a round", broken)
        verdict.notes.append(f"idle after {seconds:.2f} s")
    answer = await ask(server.port, TRANSLATE)
    verdict.require(f"/translate afterwards: {answer.status}", answer.status == 200)
    return verdict


def make_file(name: str, content: bytes) -> bytes:
    head = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    return make_request(
        "POST", "/translate_file?target=de", head + content + b"\r\n--b--\r\n", "multipart/form-data; boundary=b"
    )


def make_large_requests() -> list[tuple[str, bytes]]:
    """Return requests above the limits, or that take long to read, by name."""
    writer = {"model": "writer", "prompt": "a"}
    mega, half = 250_000, 950_000  # a part of a form may have 1 MB
    bodies = [
        ("/translate", {"q": "a" * (mega - 100)}),
        ("/translate", {"q": ["a"] * 45_000}),
        ("/translate", {"q": [""] * 60_000}),
        ("/translate", {"q": "ﷺ" * 9000}),
        ("/translate", {"q": "a. " * 3000}),
        ("/translate", {"q": "a", "alternatives": 10**9}),
        ("/translate", {"q": "a", "beam_size": 10**9}),
        ("/translate", {"q": "a", "required": ["a"] * 45_000}),
        ("/translate", {"q": "a", "required": ["ﷺ" * 99] * 4}),
        ("/translate", {"q": "a", "forbidden": ["a" * 240_000]}),
        ("/translate", {"q": "a", "prefix": "a" * 240_000}),
        ("/translate", {"q": "a", "source": "a" * 240_000, "target": "de"}),
        ("/translate", {"q": "<" * 9999 + "ﷺ", "format": "html", "beam_size": 99}),
        ("/v1/completions", writer | {"prompt": "a" * (mega - 100)}),
        ("/v1/completions", writer | {"prompt": ["a"] * 45_000}),
        ("/v1/completions", writer | {"prompt": "é" * 9999}),
        ("/v1/completions", writer | {"n": 10**9}),
        ("/v1/completions", writer | {"max_tokens": 10**9}),
        ("/v1/completions", writer | {"stop": ["a"] * 45_000}),
        ("/v1/completions", writer | {"stop": "a" * 240_000}),
        ("/v1/completions", writer | {"model": "a" * 240_000}),
        ("/v1/chat/completions", {"model": "writer", "messages": [{"role": "user", "content": "a"}] * 6000}),
        ("/v1/embeddings", {"model": "encoder", "input": ["a"] * 45_000}),
        ("/v1/embeddings", {"model": "encoder", "input": "a" * 240_000}),
        ("/detect", {"q": "a" * 240_000}),
    ]
    requests = [(f"{path} {json.dumps(body)[:60]}", post(path, body)) for path, body in bodies]
    files = [
        ("a.html", b"<!--" * (half // 4)), ("b.html", b"<" * half), ("c.html", b"<script>" * (half // 8)),
        ("d.html", b"<b>" * (half // 3)), ("a.txt", b"\n" * half), ("b.txt", b"a" + b" " * half + b"a"),
        ("c.txt", b"a" * half), ("d.txt", b"a. " * (half // 3)), ("a.md", b"> " * (half // 2) + b"x" * 20_000),
        ("b.md", b"# a" + b" " * half + b"b" + b"x" * 20_000), ("a.srt", b"1" * half + b"a"), ("e.txt", b"\r" * half),
        ("f.txt", b"\xff" * half),
    ]  # fmt: skip
    requests += [(f"/translate_file {name} {content[:20]!r}", make_file(name, content)) for name, content in files]
    json_bodies = [
        b"[" * 240_000,
        b'{"q":' * 40_000,
        b'{"q":"' + b"\\u0000" * 40_000 + b'"}',
        b"1" * 240_000,
        b'{"q":1' + b"0" * 240_000 + b"}",
    ]
    for path in ("/translate", "/v1/completions"):
        requests += [(f"{path} {body[:20]!r}", make_request("POST", path, body)) for body in json_bodies]
    form = "application/x-www-form-urlencoded"
    requests.append(("a form of many fields", make_request("POST", "/translate", b"a=b&" * 45_000, form)))
    requests.append(("a form of many texts", make_request("POST", "/translate", b"q=b&" * 45_000, form)))
    parts = b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\na\r\n' * 4000 + b"--b--\r\n"
    requests.append(
        ("a form of many parts", make_request("POST", "/translate", parts, "multipart/form-data; boundary=b"))
    )
    requests.append(("a body of 250,001 bytes", make_request("POST", "/translate", b"a" * (mega + 1))))
    requests.append(
        (
            "a body that says 10 GB",
            make_request("POST", "/translate", b"").replace(b"Length: 0", b"Length: 10000000000"),
        )
    )
    chunks = b"1\r\na\r\n" * 300_000
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    requests += [
        ("chunks of one byte", head + chunks + b"0\r\n\r\n"),
        ("chunks without an end", head + b"fffff\r\n" + b"a" * 30_000_000),
    ]
    requests.append(("a long header", b"GET /health HTTP/1.1\r\nX: " + b"a" * 30_000_000))
    requests.append(("many headers", b"GET /health HTTP/1.1\r\n" + b"a: b\r\n" * 5_000_000))
    requests.append(("a long path", b"GET /" + b"a" * 30_000_000))
    requests.append(("a long trailer", head + b"0\r\nX: " + b"a" * 30_000_000))
    return requests


CLOSED = ("chunks", "a long", "many headers")  # the connection may be closed while the client still sends
MAX_SECONDS, MAX_BYTES = 1.0, 20_000_000


async def prove_limits(server: Server, quick: bool) -> Verdict:
    """H6."""
    verdict = Verdict("H6", "requests above a limit were accepted, slow, or took memory")
    slowest, most = (0.0, ""), (0, "")
    await ask(server.port, make_large_requests()[0][1])
    for name, request in make_large_requests():
        server.reset_peak()
        before = server.figures.memory
        answer = await ask(server.port, request, timeout=30)
        grown = server.peak - before
        may_close = name.startswith(CLOSED)
        is_refused = answer.status in (400, 401, 404, 413, 422, 431, 501) or (may_close and answer.status == 0)
        broken = [] if is_refused else [f"status {answer.status} {answer.body[:100]!r}"]
        limit = MAX_SECONDS * (5 if quick else 1)
        broken += [f"{answer.seconds:.1f} s"] if answer.seconds > limit else []
        broken += [f"{grown / 1e6:.0f} MB"] if grown > MAX_BYTES else []
        verdict.add_fault(name, broken)
        slowest, most = max(slowest, (answer.seconds, name)), max(most, (grown, name))
    verdict.notes.append(
        f"slowest {slowest[0]:.2f} s ({slowest[1][:40]}), most memory {most[0] / 1e6:.0f} MB ({most[1][:40]})"
    )
    verdict.require("the server ended", server.is_alive)
    return verdict
