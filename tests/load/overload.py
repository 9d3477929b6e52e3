"""H4: ten times more requests than the server can answer; H7: SIGTERM under load."""

import asyncio
import json
import multiprocessing
import random
import signal
import time
from collections import Counter
from multiprocessing.connection import Connection as Pipe

from tests.faults.verdict import Verdict
from tests.load.client import NO_ANSWER, Answer, Connection, ask, get, post
from tests.load.server import Server, run_server, start_server, stop_server, wait_until_ready

MAX_WAITING, BATCH_TEXTS = 32, 1  # one text at a time: a small model would outrun the network
CLIENTS = 10 * (MAX_WAITING + BATCH_TEXTS)
MIN_OVERLOAD = 5.0  # requests for each one that is answered; refused clients wait up to as long as they are told
SECONDS, QUICK_SECONDS = 20.0, 2.0
REFUSAL_SECONDS, QUICK_REFUSAL_SECONDS = 0.1, 2.0
SETTINGS = (f"queue.max_waiting={MAX_WAITING}", f"queue.batch_texts={BATCH_TEXTS}")
TRANSLATE = post("/translate", {"q": "Two dogs.", "target": "de"})
REQUESTS = (
    TRANSLATE,
    TRANSLATE,
    post("/translate", {"q": "One cat.", "stream": True, "beam_size": 1}),
    post("/v1/completions", {"model": "writer", "prompt": "Two", "max_tokens": 20, "stream": True}),
    post("/v1/completions", {"model": "writer", "prompt": "Two", "max_tokens": 10}),
    post("/v1/embeddings", {"model": "encoder", "input": "Two dogs."}),
)

SLOW_REQUESTS = (
    post("/translate", {"q": "a", "target": "de", "beam_size": 16, "alternatives": 7}),
    post("/translate", {"q": "x y z", "target": "de", "beam_size": 16, "alternatives": 7}),
    *REQUESTS[2:4],
)


def is_whole(answer: Answer) -> bool:
    """Return whether an answer with status 200 is complete: a stream has its end, and none an error."""
    is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
    return (
        answer.body.endswith(b"data: [DONE]\n\n") and b'"error"' not in answer.body
        if is_stream
        else bool(answer.json())
    )


def load_server(port: int, clients: int, seconds: float, pipe: Pipe) -> None:
    """Send requests from many clients, each in a closed loop; runs in a process of its own."""

    async def run() -> tuple[Counter[str], int]:
        counts, end, without_retry = Counter[str](), time.monotonic() + seconds, 0

        async def client(number: int) -> None:
            nonlocal without_retry
            connection, source = Connection(port), random.Random(number)
            while time.monotonic() < end:
                answer = await connection.ask(source.choice(SLOW_REQUESTS))
                is_lost = answer.status == 200 and not is_whole(answer)
                counts["lost" if is_lost else str(answer.status)] += 1
                without_retry += answer.status in (429, 503) and "retry-after" not in answer.headers
                if answer.status != 200:
                    await asyncio.sleep(float(answer.headers.get("retry-after", 1)) * source.random())
            await connection.close()

        await asyncio.gather(*(client(number) for number in range(clients)))
        return counts, without_retry

    pipe.send(asyncio.run(run()))


async def prove_overload(quick: bool) -> Verdict:
    """H4, on a server with a short queue."""
    verdict = Verdict("H4", "requests of a tenfold overload were lost, or refused without Retry-After")
    seconds, limit = (QUICK_SECONDS, QUICK_REFUSAL_SECONDS) if quick else (SECONDS, REFUSAL_SECONDS)
    with run_server(*SETTINGS) as server:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=load_server, args=(server.port, CLIENTS, seconds, theirs))
        process.start()
        waiting, refusals, end, probe = 0.0, list[float](), time.monotonic() + seconds + 20, Connection(server.port)
        while process.is_alive() and not ours.poll() and time.monotonic() < end + 60:
            answer = await probe.ask(SLOW_REQUESTS[0])
            if answer.status in (429, 503):
                refusals.append(answer.seconds)
            text = (await probe.ask(get("/metrics"))).body.decode()
            lines = [line for line in text.splitlines() if line.startswith("regard:num_requests_waiting{")]
            waiting = max([waiting, *(float(line.split()[-1]) for line in lines)])
            await asyncio.sleep(0.02)
        await probe.close()
        counts, without_retry = await asyncio.to_thread(ours.recv)
        await asyncio.to_thread(process.join)
        verdict.faults = sum(counts.values())
        others = {status: count for status, count in counts.items() if status not in ("200", "429", "503")}
        for status, count in others.items():
            verdict.violations += [f"status {status}"] * count
        verdict.violations += ["no Retry-After"] * without_retry
        verdict.require(f"{waiting:.0f} texts waited, the limit is {MAX_WAITING}", waiting <= MAX_WAITING)
        factor = sum(counts.values()) / max(1, counts["200"])
        verdict.require(f"only {factor:.1f} requests for each answer", quick or factor >= MIN_OVERLOAD)
        refusals.sort()
        if refusals:
            p99 = refusals[int(0.99 * len(refusals))]
            verdict.require(f"a refusal took {p99:.3f} s", p99 <= limit)
            verdict.notes.append(f"refusals p50 {1000 * refusals[len(refusals) // 2]:.0f}, p99 {1000 * p99:.0f} ms")
        verdict.require("requests still run", await server.is_idle(5))
        answer = await ask(server.port, TRANSLATE)
        verdict.require(f"/translate afterwards: {answer.status}", answer.status == 200)
        verdict.notes.append(f"{factor:.0f} requests for each answer")
        verdict.notes.append("answers " + ", ".join(f"{status}: {count:,}" for status, count in sorted(counts.items())))
    return verdict


ENDS, QUICK_ENDS = 20, 1
GRACE = 30.0  # seconds; `deadlines.drain`


async def end_under_load(server: Server, seconds: float, source: random.Random) -> list[str]:
    """Send SIGTERM to a server while clients wait for answers; return what went wrong."""
    answers, log_start = Counter[str](), -1
    while log_start != (log_start := len(server.log.read_text())):  # lines of earlier clients may still come
        await asyncio.sleep(0.3)

    async def client(number: int) -> None:
        connection, choice = Connection(server.port), random.Random(number)
        while True:
            answer = await connection.ask(choice.choice(REQUESTS))
            answers["lost" if answer.status == 200 and not is_whole(answer) else str(answer.status)] += 1
            if answer.status in (NO_ANSWER, 503) and has_ended:
                return
            await asyncio.sleep(0.01 * choice.random())

    has_ended = False
    clients = [asyncio.ensure_future(client(number)) for number in range(24)]
    await asyncio.sleep(seconds * (0.2 + source.random()))
    server.send(signal.SIGTERM)
    has_ended, start = True, time.monotonic()
    code = await asyncio.to_thread(server.wait, GRACE + 10)
    seconds = time.monotonic() - start
    await asyncio.gather(*clients)
    log = server.log.read_text()[log_start:]
    lines = [json.loads(line) for line in log.splitlines() if '"route"' in line]
    answered = Counter(line["status"] for line in lines)
    broken = [] if code == 0 else [f"code {code}"]
    broken += [f"{seconds:.1f} s"] if seconds > GRACE else []
    broken += [f"{answered[0]} requests were accepted and not answered"] if answered[0] else []
    broken += [f"{answers['lost']} answers were cut"] if answers["lost"] else []
    if answered[200] != answers["200"]:
        broken.append(f"{answered[200]} answers were sent, {answers['200']} arrived")
    broken += [f"status {status}" for status in answers if status not in ("0", "200", "429", "503", "lost")]
    broken += ["a traceback in the log"] if "Traceback" in log else []
    return broken


async def prove_ends(quick: bool, server: Server | None = None) -> Verdict:
    """H7: servers are ended under load; `server`, if given, is the first of them."""
    verdict, source = (
        Verdict("H7", "ends under load lost an accepted request, or had another code than 0"),
        random.Random(7),
    )
    for number in range(QUICK_ENDS if quick else ENDS):
        ended = server if server is not None and number == 0 else start_server()
        try:
            await asyncio.to_thread(wait_until_ready, ended)
            verdict.add_fault(f"SIGTERM {number}", await end_under_load(ended, 0.5 if quick else 1.0, source))
        finally:
            stop_server(ended)
    return verdict
