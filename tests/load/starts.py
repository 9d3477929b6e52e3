"""Starts and ends of servers whose models run in CTranslate2: one earlier trial aborted at its exit."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

from tests.faults.verdict import Verdict
from tests.load.client import ask, get, post
from tests.load.server import Server, make_folder, make_models, start_server, stop_server, wait_until_ready

STARTS, QUICK_STARTS = 20, 2
MODELS = 7  # translators in one process


def make_exported_models() -> dict[str, Path]:
    """Export the small translator to CTranslate2; return it under several names."""
    folder = make_folder() / "exported"
    shutil.copytree(make_models()["en-de"], folder)
    command = [sys.executable, "-m", "regard", "export", str(folder), "--to", "ctranslate2"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    return {f"model-{number}": folder for number in range(MODELS)}


def prove(quick: bool) -> Verdict:
    """Start servers with seven translators each, translate with every one, and end them."""
    verdict, models = (
        Verdict("starts", "starts and ends with CTranslate2 had another code than 0"),
        make_exported_models(),
    )
    for number in range(QUICK_STARTS if quick else STARTS):
        server = start_server(models=models, options=["--engine", "ctranslate2"])
        try:
            wait_until_ready(server)
            broken = asyncio.run(_use(server, should_reload=number % 2 == 1))
        finally:
            code = stop_server(server)
        broken += [] if code == 0 else [f"code {code}: {server.log.read_text()[-300:]}"]
        verdict.add_fault(f"start {number}", broken)
    verdict.notes.append(f"{MODELS} translators in each process")
    return verdict


async def _use(server: Server, *, should_reload: bool) -> list[str]:
    requests = [post("/translate", {"q": "Two dogs.", "model": f"model-{number}"}) for number in range(MODELS)]
    tasks = [asyncio.ensure_future(ask(server.port, request)) for request in requests]
    reloads = [post(f"/reload/model-{number}", {}) for number in range(MODELS if should_reload else 0)]
    answers = [await ask(server.port, request) for request in reloads]  # one at a time; translations go on
    answers += await asyncio.gather(*tasks)
    broken = [f"status {answer.status}: {answer.body[:200]!r}" for answer in answers if answer.status != 200]
    description = (await ask(server.port, get("/v1/models"))).body
    return broken + ([] if b"model-0" in description else ["no models"])
