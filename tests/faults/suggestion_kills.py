"""R9: SIGKILL of a server that stores suggestions: every suggestion that it acknowledged is in the database."""

import asyncio
import random
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

from regard.data.suggestions import read_suggestions
from tests.faults.verdict import Verdict
from tests.load.client import TIMEOUT, Connection, post
from tests.load.server import Server, make_folder, make_models, start_server, stop_server, wait_until_ready

KILLS, QUICK_KILLS = 50, 1
CLIENTS = 8
MAX_ACKNOWLEDGED = 60  # before a kill
MAX_DELAY = 0.01  # seconds between the last awaited acknowledgment and the kill


def prove(quick: bool = False) -> Verdict:
    """Kill a server under load 50 times; or, quick, once. All of them write to one database."""
    verdict = Verdict("R9", "kills of a server lost acknowledged suggestions")
    path = make_folder() / "suggestions.db"
    models = {"en-de": make_models()["en-de"]}
    acknowledged, randomness = set[str](), random.Random(42)
    for number in range(QUICK_KILLS if quick else KILLS):
        server = start_server("suggestions.per_minute=1000000", options=["--suggestions", str(path)], models=models)
        try:
            wait_until_ready(server)
            count, delay = randomness.randrange(1, MAX_ACKNOWLEDGED), randomness.uniform(0, MAX_DELAY)
            new = asyncio.run(_send_until_killed(server, f"kill {number}", count, delay))
        finally:
            stop_server(server)
        acknowledged |= new
        verdict.require(f"kill {number} hit no traffic", len(new) >= count)
        verdict.add_fault(f"kill {number} after {len(new)} suggestions", _find_losses(path, acknowledged))
    verdict.notes.append(f"{len(acknowledged):,} acknowledged")
    return verdict


async def _send_until_killed(server: Server, name: str, count: int, delay: float) -> set[str]:
    """Send suggestions from several clients, kill the server after `count` acknowledgments; return all of them."""
    acknowledged, is_due = set[str](), asyncio.Event()

    async def send(client: int) -> None:
        connection, number = Connection(server.port), 0
        while True:
            text = f"{name}, client {client}, text {number}"
            answer = await connection.ask(post("/suggest", {"q": text, "s": text, "source": "en", "target": "de"}))
            if answer.status != 200:
                return
            acknowledged.add(text)
            number += 1
            if len(acknowledged) >= count:
                is_due.set()

    async def kill() -> None:
        await asyncio.wait_for(is_due.wait(), TIMEOUT)
        await asyncio.sleep(delay)
        server.send(signal.SIGKILL)

    await asyncio.gather(kill(), *(send(client) for client in range(CLIENTS)))
    return acknowledged


def _find_losses(path: Path, acknowledged: set[str]) -> list[str]:
    """Return what is wrong with the database; this closes it, so its log is merged, as after a normal end."""
    with closing(sqlite3.connect(path)) as connection:
        (state,) = connection.execute("PRAGMA integrity_check").fetchone()
    lost = acknowledged - {suggestion.text for suggestion in read_suggestions(path)}
    return ([] if state == "ok" else [state]) + ([f"{len(lost)} lost: {min(lost)}"] if lost else [])
