"""Mixed load for many minutes: memory, descriptors and threads must come back to where they were."""

import asyncio
import random
import sys
import time

from tests.faults.verdict import Verdict
from tests.load.client import Connection
from tests.load.hostile import SEEDS, mutate, send_mutated
from tests.load.overload import REQUESTS, is_whole
from tests.load.server import Server
from tests.load.slow import leave
from tests.load.structured import check, generate, requests

CLIENTS = 16
WARM_UP = 0.1  # part of the time before memory counts
MAX_GROWTH = 0.05


async def prove(server: Server, minutes: float) -> Verdict:
    """Send good, odd and broken requests, and leave in between."""
    verdict = Verdict("soak", "requests of a mixed load failed, or the server grew")
    start, end = time.monotonic(), time.monotonic() + 60 * minutes
    await asyncio.sleep(1)
    before, statuses = server.figures, dict[int, int]()
    pool = [request for number in range(4) for request in generate(requests(), 250, 1000 + number)]
    memory: list[int] = []

    async def client(number: int) -> None:
        connection, source = Connection(server.port), random.Random(number)
        while time.monotonic() < end:
            kind = source.random()
            if kind < 0.6:
                request = source.choice(REQUESTS)
                answer = await connection.ask(request)
                is_good = answer.status in (200, 429, 503) and (answer.status != 200 or is_whole(answer))
                statuses[answer.status] = statuses.get(answer.status, 0) + 1
                verdict.add_fault(repr(request[-200:]), [] if is_good else [f"status {answer.status}"])
            elif kind < 0.8:
                request = source.choice(pool)
                answer = await connection.ask(request)
                statuses[answer.status] = statuses.get(answer.status, 0) + 1
                verdict.add_fault(repr(request[-300:]), check(request, answer))
            elif kind < 0.9:
                await leave(server, source)
            else:
                await send_mutated(server, mutate(source.choice(SEEDS), source))
        await connection.close()

    async def watch() -> None:
        while (now := time.monotonic()) < end:
            if now > start + 60 * minutes * WARM_UP:
                memory.append(server.figures.memory)
                if len(memory) % 12 == 1:
                    now_held, minute = server.figures, (now - start) / 60
                    sys.stderr.write(f"{minute:.1f} min  {now_held.memory / 1e6:.1f} MB  {now_held.threads} threads\n")
            await asyncio.sleep(5)

    await asyncio.gather(watch(), *(client(number) for number in range(CLIENTS)))
    verdict.require("requests still run", await server.is_idle(5))
    await asyncio.sleep(2)
    after = server.figures
    growth = after.memory / memory[0] - 1
    verdict.require(f"memory grew by {100 * growth:.1f} %", growth < MAX_GROWTH)
    verdict.require(
        f"descriptors {before.descriptors} -> {after.descriptors}", after.descriptors <= before.descriptors + 1
    )
    verdict.notes.append(
        f"{minutes:g} minutes, memory {memory[0] / 1e6:.0f} -> {after.memory / 1e6:.0f} MB ({100 * growth:+.1f} %)"
    )
    verdict.notes.append(
        f"descriptors {before.descriptors} -> {after.descriptors}, threads {before.threads} -> {after.threads}"
    )
    verdict.notes.append("answers " + ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items())))
    return verdict
