"""H10: template bombs, pipelined requests, aborted reloads, pages of other origins, files of too many sentences."""

import asyncio
import signal
import socket
import struct

from tests.faults.verdict import Verdict
from tests.load.client import ADDRESS, ask, get, post
from tests.load.server import TEMPLATE, Server, make_models, run_server
from tests.load.slow import make_file

HEALTH_SECONDS, QUICK_HEALTH_SECONDS = 0.5, 5.0  # CI may be busy
BOMBS = (
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(9999) %}{% set x = 'a' * 10**9 %}{% endfor %}",
    "{% for i in range(99999) %}{{ 'much too much output' * 9 }}{% endfor %}",
)
CHAT = post("/v1/chat/completions", {"model": "writer", "messages": [{"role": "user", "content": "Hi"}]})
HEAVY = post("/translate", {"q": ["Two dogs."] * 60})
FOREIGN = (
    ["Origin: null"],
    ["Origin: file://"],
    ["Origin: http://127.0.0.1:1"],
    ["Origin: http://localhost:3000"],
    ["Sec-Fetch-Site: same-site"],
    ["Sec-Fetch-Site: cross-site"],
    ["Origin: https://evil.example", "Sec-Fetch-Site: none"],
)
POSTS = ("/translate", "/translate_file", "/detect", "/reload/writer", "/v1/completions", "/v1/embeddings", "/classify")


async def prove(server: Server, quick: bool) -> Verdict:
    """H10; the chat template of the server is changed, and restored at the end."""
    verdict = Verdict("H10", "attacks on templates, queue, reloads, origins and files succeeded")
    await _send_bombs(server, verdict, quick)
    await _pipeline(server, verdict, 8 if quick else 80)
    await _abort_reloads(server, verdict)
    for path in POSTS:
        for headers in FOREIGN:
            answer = await ask(server.port, post(path, {}, *headers))
            verdict.add_fault(f"{path} {headers}", [] if answer.status == 403 else [f"status {answer.status}"])
    await _send_files(server, verdict)
    for path in ("/translate/", "/health/", "/v1/models/"):
        answer = await ask(server.port, get(path).replace(b"127.0.0.1", b"localhost"))
        verdict.add_fault(path, [f"to {answer.headers['location']}"] if "location" in answer.headers else [])
    verdict.require("the server ended", server.is_alive)
    if not quick:
        await _end_with_a_bomb(verdict)
    return verdict


async def _send_bombs(server: Server, verdict: Verdict, quick: bool) -> None:
    path = make_models()["writer"].with_name("chat.jinja")
    limit = QUICK_HEALTH_SECONDS if quick else HEALTH_SECONDS
    try:
        for bomb in BOMBS:
            path.write_text(bomb)
            verdict.require("a template is loaded", (await ask(server.port, post("/reload/writer", {}))).status == 200)
            server.reset_peak()
            memory = server.figures.memory
            chats = [asyncio.ensure_future(ask(server.port, CHAT)) for _ in range(2 if quick else 8)]
            slowest = 0.0
            while not all(chat.done() for chat in chats):
                slowest = max(slowest, (await ask(server.port, get("/health"))).seconds)
                await asyncio.sleep(0.05)
            broken = [f"status {chat.result().status}" for chat in chats if chat.result().status != 422]
            broken += [f"/health took {slowest:.2f} s"] if slowest > limit else []
            broken += ["memory grew by 50 MB"] if server.peak - memory > 50e6 else []
            verdict.add_fault(bomb, broken)
    finally:
        path.write_text(TEMPLATE)
        await ask(server.port, post("/reload/writer", {}))


async def _pipeline(server: Server, verdict: Verdict, count: int) -> None:
    for _ in range(count // 4):
        for _ in range(4):
            _, writer = await asyncio.open_connection(ADDRESS, server.port)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.write(HEAVY + get("/health"))
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.close()
        verdict.faults += 3
        verdict.add_fault("pipelined requests", [] if await server.is_idle(10) else ["inputs stay in the queue"])


async def _abort_reloads(server: Server, verdict: Verdict) -> None:
    threads = server.figures.threads
    for _ in range(40):
        _, writer = await asyncio.open_connection(ADDRESS, server.port)
        writer.write(post("/reload/en-de", {}))
        await writer.drain()
        writer.close()
    grown = server.figures.threads - threads
    verdict.faults += 39
    verdict.add_fault("aborted reloads", [f"{grown} more threads"] if grown > 2 else [])
    while (await ask(server.port, post("/reload/en-de", {}))).status == 409:
        await asyncio.sleep(0.1)


async def _send_files(server: Server, verdict: Verdict) -> None:
    for content in (b"Go on. " * 9000, b"Two dogs.\n" * 256 + b"two dogs " * 5000):
        before = await server.read_gauge("generation_tokens_total")
        answer = await ask(server.port, make_file("a.txt", content))
        broken = [] if answer.status == 422 else [f"status {answer.status}"]
        broken += ["tokens were generated"] if await server.read_gauge("generation_tokens_total") > before else []
        verdict.add_fault(repr(content[-20:]), broken)


async def _end_with_a_bomb(verdict: Verdict) -> None:
    path = make_models()["writer"].with_name("bomb.jinja")
    path.write_text(BOMBS[0])
    with run_server(options=["--chat-template", f"writer={path}"]) as server:
        chats = [asyncio.ensure_future(ask(server.port, CHAT, timeout=60)) for _ in range(4)]
        await asyncio.sleep(1)
        server.send(signal.SIGTERM)
        await asyncio.gather(*chats)
        code = await asyncio.to_thread(server.wait, 40)
        verdict.add_fault("SIGTERM during a bomb", [] if code == 0 else [f"code {code}"])
