"""The short version of `python -m tests.load`, and checks that its proofs can fail."""

import json
import subprocess
import sys

import pytest

from tests.load.client import Answer
from tests.load.hostile import SEEDS, mutate
from tests.load.overload import is_whole
from tests.load.structured import check, generate, recombine, requests


def test_no_request_client_or_signal_harms_the_server() -> None:
    """Run in a separate process: it starts servers, and its clients need an event loop of their own."""
    proofs = [
        "H1",
        "H2",
        "H3",
        "H4",
        "H5",
        "H6",
        "H8",
        "H10",
        "H7",
        "H9",
        "starts",
    ]  # H7 ends the server that others share
    command = [sys.executable, "-m", "tests.load", "--quick", *proofs]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stdout + result.stderr
    summary = json.loads(result.stdout.splitlines()[-1])
    assert {name: entry["violations"] for name, entry in summary.items()} == dict.fromkeys(proofs, 0)
    assert all(entry["of"] > 0 for entry in summary.values())


@pytest.mark.parametrize(
    ("answer", "is_good"),
    [
        (Answer(200, {"content-type": "application/json"}, b'{"translatedText": "a"}'), True),
        (Answer(200, {"content-type": "application/json"}, b"{}"), False),
        (Answer(200, {"content-type": "text/event-stream"}, b"data: [DONE]\n\n"), True),
        (Answer(200, {"content-type": "text/event-stream"}, b"data: {}\n\n"), False),
        (Answer(422, {}, b"{}"), True),
        (Answer(0), False),
        (Answer(500, {}, b""), False),
        (Answer(503, {}, b""), False),
        (Answer(503, {"retry-after": "1"}, b""), True),
    ],
)
def test_defects_are_noticed(answer: Answer, is_good: bool) -> None:
    assert (check(b"POST /translate HTTP/1.1", answer) == []) is is_good


def test_cut_streams_are_noticed() -> None:
    headers = {"content-type": "text/event-stream; charset=utf-8"}
    assert is_whole(Answer(200, headers, b'data: {"text": "a"}\n\ndata: [DONE]\n\n'))
    assert not is_whole(Answer(200, headers, b'data: {"text": "a"}\n\n'))
    assert not is_whole(Answer(200, headers, b'data: {"error": {}}\n\ndata: [DONE]\n\n'))


def test_requests_differ() -> None:
    import random

    made = generate(requests(), 30, 1)
    source = random.Random(1)
    assert len({*made, *recombine(made, 30, source)}) > 30
    assert len({mutate(seed, source) for seed in SEEDS for _ in range(10)}) > 50
