"""Clients that leave before their answer."""

import asyncio
import time

import httpx

from tests.serve.factories import REQUEST, Start, send


def test_a_client_that_leaves_cancels_its_request(start: Start) -> None:
    """The model is busy with one text after the other; the requests behind it belong to nobody any more."""
    server = start(queue={"batch_texts": 1})
    with server.client() as client:

        def count() -> float:
            lines = client.get("/metrics").text.splitlines()
            return sum(float(line.split()[-1]) for line in lines if line.startswith("regard:num_requests_waiting{"))

        body = httpx.Request("POST", f"{server.url}/translate", json=REQUEST | {"q": ["Two men."] * 60})
        raw = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        connections = [send(server, raw + b"%d\r\n\r\n" % len(body.content) + body.content) for _ in range(4)]
        end = time.monotonic() + 10
        while count() < 150:
            assert time.monotonic() < end
        for connection in connections:
            connection.close()
        end = time.monotonic() + 1
        while count():
            assert time.monotonic() < end
            time.sleep(0.01)


def test_clients_that_leave_free_their_place(start: Start) -> None:
    server = start()
    request = {"model": "writer", "prompt": "Two", "max_tokens": 1000, "stream": True, "temperature": 1}

    async def leave(after: int) -> None:
        async with (
            httpx.AsyncClient(base_url=server.url) as client,
            client.stream("POST", "/v1/completions", json=request) as response,
        ):
            parts = response.aiter_bytes()
            for _ in range(after):
                await anext(parts, b"")

    async def run() -> None:
        await asyncio.gather(*(leave(number % 3) for number in range(20)))

    asyncio.run(run())
    with server.client() as client:
        end = time.monotonic() + 20
        while (text := client.get("/metrics").text) and 'num_requests_running{model="writer"} 0.0' not in text:
            assert time.monotonic() < end, text
            time.sleep(0.05)
