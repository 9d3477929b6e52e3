"""Training samples that may have taught a word, asked from a running server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.serve.settings import ServeConfig
from tests.blame.runs import PLANTED, QUESTION
from tests.serve.factories import RunningServer, run_in_thread

BODY = {"q": QUESTION, "text": "Hund findet Brot", "word": "Brot", "model": "run"}


@pytest.fixture(scope="module")
def blaming(planted_run: Path, folders: dict[str, Path]) -> Iterator[RunningServer]:
    settings = ServeConfig(models={"run": planted_run, **folders}, engine="torch", blame=True)
    with run_in_thread(settings) as server:
        yield server


def test_candidates_are_the_planted_pairs_without_paths(blaming: RunningServer, planted_run: Path) -> None:
    with blaming.client() as client:
        answer = client.post("/blame", json=BODY)
        supports = {model["id"]: "blame" in model["supports"] for model in client.get("/v1/models").json()["data"]}
    candidates = answer.json()["candidates"]
    assert {candidate["location"] for candidate in candidates[:3]} == {f"all.en:{line}" for line in PLANTED}
    assert candidates[0]["target"].split().count("Brot") == 1
    assert str(planted_run.parent) not in answer.text
    assert supports == {"run": True, "en-de": False, "writer": False, "encoder": False}


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"word": "Wasser"}, 422),  # not in the translation
        ({"word": ""}, 422),
        ({"text": "x" * 20_000}, 413),
        ({"model": "en-de"}, 403),  # no training data
        ({"model": "writer"}, 422),
        ({"text": None}, 422),
    ],
)
def test_question_that_has_no_answer_is_refused(blaming: RunningServer, changes: dict[str, Any], status: int) -> None:
    with blaming.client() as client:
        assert client.post("/blame", json=BODY | changes).status_code == status


def test_blame_is_off_by_default(planted_run: Path) -> None:
    with run_in_thread(ServeConfig(models={"run": planted_run}, engine="torch")) as server, server.client() as client:
        assert client.post("/blame", json=BODY).status_code == 403
        assert "blame" not in client.get("/v1/models").json()["data"][0]["supports"]
