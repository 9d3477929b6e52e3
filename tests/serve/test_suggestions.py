"""Suggestions that clients send to a running server."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.data.suggestions import Suggestion, read_suggestions
from regard.serve.settings import ServeConfig
from regard.serve.state import ServerState
from tests.serve.factories import KEY, RunningServer, Start

BODY = {"q": "Two dogs.", "s": "Zwei Hunde.", "source": "en", "target": "de"}
DOGS = Suggestion("Two dogs.", "Zwei Hunde.", "en", "de")


def test_suggestions_are_disabled_by_default(server: RunningServer) -> None:
    with server.client() as client:
        assert client.get("/frontend/settings").json()["suggestions"] is False
        answer = client.post("/suggest", json=BODY)
    assert (answer.status_code, answer.json()) == (403, {"error": "Suggestions are disabled on this server."})


def test_acknowledged_suggestions_are_stored(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "suggestions.db"
    server = start(suggestions={"file": path, "per_minute": 100})

    def suggest(number: int) -> Any:
        with server.client() as client:
            body = BODY | {"s": f"Zwei Hunde {number}."}
            if number % 2:
                return client.post("/suggest", data=body).json()  # a form, as LibreTranslate's page sends
            return client.post("/suggest", json=body).json()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(suggest, range(20))) == [{"success": True}] * 20
    assert {suggestion.translation for suggestion in read_suggestions(path)} == {f"Zwei Hunde {n}." for n in range(20)}
    with server.client() as client:
        assert client.get("/frontend/settings").json()["suggestions"] is True
        assert client.post("/suggest", json={"q": "A cat.", "s": "Eine Katze."}).json() == {"success": True}
    assert read_suggestions(path)[-1] == Suggestion("A cat.", "Eine Katze.", "en", "de")  # the model's languages


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"source": "fr"}, 400),
        ({"target": "en"}, 400),
        ({"s": " "}, 422),
        ({"q": ""}, 422),
        ({"s": None}, 422),
        ({"s": "x" * 20_000}, 413),
        ({"model": "writer"}, 422),
        ({"model": "nobody"}, 404),
    ],
)
def test_invalid_suggestion_is_refused(start: Start, tmp_path: Path, changes: dict[str, Any], status: int) -> None:
    path = tmp_path / "suggestions.db"
    with start(suggestions={"file": path}).client() as client:
        answer = client.post("/suggest", json=BODY | changes)
        lone_surrogate = client.post("/suggest", content=b'{"q": "\\ud800", "s": "\\ud800"}')
    assert answer.status_code == status
    assert isinstance(answer.json()["error"], str)
    assert lone_surrogate.status_code == 422
    with pytest.raises(RegardError, match="no suggestions"):
        read_suggestions(path)


def test_number_and_rate_of_suggestions_are_limited(start: Start, tmp_path: Path, keys_file: Path) -> None:
    path = tmp_path / "suggestions.db"
    server = start(suggestions={"file": path, "per_minute": 3, "max_count": 1}, keys_file=keys_file)
    with server.client(headers={"Authorization": f"Bearer {KEY}"}) as client:
        answers = [client.post("/suggest", json=BODY | {"s": f"Zwei Hunde {number}"}) for number in range(4)]
    assert [answer.status_code for answer in answers] == [200, 507, 507, 429]
    assert "full" in answers[1].json()["error"]
    assert int(answers[3].headers["retry-after"]) > 0
    assert len(read_suggestions(path)) == 1


def test_suggestion_that_cannot_be_stored_is_not_acknowledged(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "suggestions.db"
    server = start(suggestions={"file": path})
    store = server.state.suggestions._store
    assert store is not None
    store._connection.execute("PRAGMA max_page_count=6")
    with server.client() as client:
        answers = [client.post("/suggest", json=BODY | {"q": f"{number} {'dogs ' * 1000}"}) for number in range(4)]
    codes = [answer.status_code for answer in answers]
    assert codes[0] == 200
    assert codes[-1] == 507
    assert "disk is full" in answers[-1].json()["error"]
    assert len(read_suggestions(path)) == codes.count(200)


def test_server_with_an_unusable_file_does_not_start(folders: dict[str, Path], tmp_path: Path) -> None:
    settings = ServeConfig(models=folders, suggestions={"file": tmp_path})
    with pytest.raises(RegardError, match="cannot be read or stored"):
        asyncio.run(ServerState(settings).start())
