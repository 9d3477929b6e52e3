"""H2: requests with changed bytes; H8: random paths, models and hosts; H9: keys on every route."""

import asyncio
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.faults.verdict import Verdict
from tests.load.client import ADDRESS, NO_ANSWER, Connection, ask, ask_all, get, make_request, post, repeat
from tests.load.server import Server, make_models

MUTATIONS, QUICK_MUTATIONS = 10_000, 200
PATHS, QUICK_PATHS = 20_000, 400
HEALTH_SECONDS, QUICK_HEALTH_SECONDS = 0.1, 1.0  # CI may be busy
ROUND = 100  # mutated requests between two looks at /health
CLIENTS = 32
PATIENCE = 0.3  # seconds for an answer: a request that lost its end has none
SEEDS = (
    post("/translate", {"q": "Two dogs.", "source": "en", "target": "de", "alternatives": 1}),
    post("/translate", {"q": "Two dogs.", "stream": True, "beam_size": 1}),
    make_request("POST", "/translate", b"q=Two+dogs&target=de", "application/x-www-form-urlencoded"),
    post("/v1/completions", {"model": "writer", "prompt": "Two", "max_tokens": 4, "stop": ["a"]}),
    post("/v1/chat/completions", {"model": "writer", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}),
    post("/v1/embeddings", {"model": "encoder", "input": ["a", "b"]}),
    make_request("POST", "/translate", b"5\r\nq=One\r\n0\r\n\r\n", "text/plain", "Transfer-Encoding: chunked"),
    make_request(
        "POST",
        "/translate_file?target=de",
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n# Two\r\n--b--\r\n',
        "multipart/form-data; boundary=b",
    ),
    get("/v1/models") + get("/health"),
    make_request("GET", "/", None, "", "Connection: Upgrade", "Upgrade: websocket"),
)
PIECES = (
    *(
        b"\r\n",
        b"\n",
        b"\r\n\r\n",
        b"\x00",
        b"\xff",
        b"%00",
        b"%",
        b": ",
        b"chunked",
        b"Transfer-Encoding: chunked\r\n",
    ),
    *(b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n", b"0\r\n\r\n"),
    *(
        b"Expect: 100-continue\r\n",
        b"HTTP/9.9",
        b"CONNECT a:1 ",
        b"ffffffffffffffff\r\n",
        b"[" * 500,
        b'"' * 9,
        b"\\ud800",
    ),
)


def mutate(content: bytes, source: random.Random) -> bytes:
    """Return a request with some of its bytes changed, removed, repeated or replaced."""
    data = bytearray(content)
    for _ in range(source.choice((1, 1, 2, 4, 16))):
        start = source.randrange(len(data) + 1)
        end = min(len(data), start + source.choice((0, 1, 1, 4, 30)))
        kind = source.randrange(5)
        if kind == 0:
            data[start:end] = source.randbytes(end - start)
        elif kind == 1:
            data[start:end] = source.choice(PIECES)
        elif kind == 2:
            data[start:start] = data[start:end] * source.choice((1, 2, 50))
        elif kind == 3:
            other = source.choice(SEEDS)
            data[start:end] = other[source.randrange(len(other)) :]
        else:
            del data[start:end]
    return bytes(data)


async def send_mutated(server: Server, content: bytes) -> int:
    """Send bytes, wait a moment for an answer, and close the connection; return the answer's status."""
    try:
        reader, writer = await asyncio.open_connection(ADDRESS, server.port)
    except OSError:
        return -1
    try:
        writer.write(content)
        async with asyncio.timeout(PATIENCE):
            line = await reader.readline()
        return int(line.split(b" ")[1]) if line.startswith(b"HTTP/") else NO_ANSWER
    except (OSError, ValueError, IndexError):
        return NO_ANSWER
    finally:
        writer.close()


async def prove_mutations(server: Server, quick: bool) -> Verdict:
    """H2."""
    verdict, source = Verdict("H2", "requests with changed bytes harmed the server"), random.Random(2)
    slowest, answered, limit = 0.0, 0, QUICK_HEALTH_SECONDS if quick else HEALTH_SECONDS
    health = Connection(server.port)
    for _ in range((QUICK_MUTATIONS if quick else MUTATIONS) // ROUND):
        contents = [mutate(source.choice(SEEDS), source) for _ in range(ROUND)]

        async def strike(content: bytes) -> tuple[bytes, int]:
            return content, await send_mutated(server, content)

        for content, status in await repeat(CLIENTS, strike, contents):
            answered += status > 0
            is_defect = status >= 500 and status not in (501, 503)
            verdict.add_fault(repr(content[:300]), [f"status {status}"] if is_defect or status < 0 else [])
        answer = await health.ask(get("/health"))
        slowest = max(slowest, answer.seconds)
        verdict.require(
            f"/health: {answer.status} after {answer.seconds:.3f} s", answer.status == 200 and answer.seconds <= limit
        )
    await health.close()
    verdict.require("the server ended", server.is_alive)
    verdict.require("the requests still run", await server.is_idle(10))
    verdict.notes.append(f"/health within {1000 * slowest:.0f} ms; {answered:,} had an answer")
    return verdict


def make_random_requests(count: int, source: random.Random) -> Iterator[bytes]:
    """Yield requests with random paths, models, methods and hosts."""
    for number in range(count):
        word = "".join(source.choices("abcdefghijklmnopqrstuvwxyz0123456789-_.~", k=source.randrange(1, 30)))
        kind = number % 4
        if kind == 0:
            method = source.choice(("GET", "POST", "PUT", "DELETE", "PROPFIND", "M-SEARCH"))
            yield make_request(method, f"/{word}/{number}?{word}={number}")
        elif kind == 1:
            yield post("/v1/completions", {"model": word, "prompt": "a"})
        elif kind == 2:
            yield get("/health").replace(b"127.0.0.1", word.encode())
        else:
            yield make_request(
                "POST", source.choice((f"/reload/{word}", f"/v1/models/{word}", f"/translate?model={word}"))
            )


async def prove_paths(server: Server, quick: bool) -> Verdict:
    """H8."""
    verdict, source = Verdict("H8", "random paths, models and hosts added a series to /metrics"), random.Random(8)
    count = QUICK_PATHS if quick else PATHS
    await ask_all(server.port, make_random_requests(200, source), CLIENTS)  # each route and status once
    await server.count_series()  # /metrics is a route, too
    before, memory = await server.count_series(), server.figures.memory
    for _, answer in await ask_all(server.port, make_random_requests(count, source), CLIENTS):
        verdict.add_fault("a request", [] if 200 <= answer.status < 500 else [f"status {answer.status}"])
    after = await server.count_series()
    verdict.require(f"{before} series became {after}", before == after)
    verdict.notes.append(f"{after} series; memory {100 * (server.figures.memory / memory - 1):+.1f} %")
    return verdict


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
HOSTS = ("127.0.0.1", "/health", "127.0.0.1/health?", "evil.example", "localhost/v1/models?x=", "a" * 300)
KEY_HEADERS = (
    "",
    "Authorization: Bearer",
    "Authorization: Bearer x",
    "Authorization: Basic eDp4",
    "X-Api-Key: x",
    "Authorization: Bearer \xff",
)


async def prove_keys(server: Server, key: str, quick: bool) -> Verdict:
    """H9: `server` has keys; every route, method and host without one is refused; defaults are safe."""
    verdict = Verdict("H9", "requests without a key, or public addresses without keys, were accepted")
    document = (await ask(server.port, get("/openapi.json", f"Authorization: Bearer {key}"))).json()
    # The address of a translated file cannot be guessed and needs no key.
    paths = [path.replace("{name}", "writer") for path in document["paths"] if not path.startswith("/download_file/")]
    variants = [
        "/openapi.json",
        "/docs",
        "/",
        "//health",
        "/health/",
        "/health/../v1/models",
        "/%68ealth",
        "/health;a",
        "/none",
    ]
    requests = [
        make_request(method, path, None, "", *([header] if header else [])).replace(
            b"Host: 127.0.0.1", f"Host: {host}".encode()
        )
        for path in [*paths, *variants]
        for method in METHODS
        for host in HOSTS[: 3 if quick else None]
        for header in KEY_HEADERS[: 3 if quick else None]
    ]
    for request, answer in await ask_all(server.port, requests, 16):
        verdict.add_fault(repr(request[:200]), [] if answer.status in (400, 401) else [f"status {answer.status}"])
    for path in paths:
        answer = await ask(server.port, get(path, f"Authorization: Bearer {key}"))
        verdict.require(
            f"{path} with its key: {answer.status}", answer.status not in (401, 403) and answer.status < 500
        )
    verdict.require("the server listens on other addresses than 127.0.0.1", listens_on(server) == {"127.0.0.1"})
    folder = str(next(iter(make_models().values())))
    for host in ("0.0.0.0",) if quick else ("0.0.0.0", "::", "192.168.0.1"):  # noqa: S104
        command = [sys.executable, "-m", "regard", "serve", folder, "--host", host, "--port", "0"]
        result = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=60, check=False
        )
        verdict.add_fault(
            f"--host {host}", [] if result.returncode and "open to everyone" in result.stderr else [result.stderr]
        )
    verdict.notes.append(
        f"{len(paths) + len(variants)} paths, {len(METHODS)} methods, {len(HOSTS)} hosts, {len(KEY_HEADERS)} headers"
    )
    return verdict


def listens_on(server: Server) -> set[str]:
    """Return the addresses on which a process listens, from the table of the system."""
    sockets = {
        link.readlink().name for link in (Path("/proc") / str(server.process.pid) / "fd").iterdir() if link.is_symlink()
    }
    addresses = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == "0A" and f"socket:[{columns[9]}]" in sockets:
                number = bytes.fromhex(columns[1].partition(":")[0])
                addresses.add(".".join(map(str, reversed(number))) if name == "tcp" else columns[1])
    return addresses
