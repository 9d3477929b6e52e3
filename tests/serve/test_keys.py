"""Keys and rates: two keys from one address, routes that need no key, and how many clients are remembered."""

from collections.abc import Callable
from pathlib import Path

import pytest

from regard.serve import security
from regard.serve.settings import hash_key
from tests.serve.conftest import RunningServer

Start = Callable[..., RunningServer]
ALICE, BOB = {"Authorization": "Bearer key-of-alice"}, {"Authorization": "Bearer key-of-bob"}


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.txt"
    path.write_text(f"alice {hash_key('key-of-alice')}\nbob {hash_key('key-of-bob')}\n")
    return path


def test_rate_limit_two_keys_of_one_address_are_counted_apart(start: Start, keys_file: Path) -> None:
    with start(keys_file=keys_file, requests_per_minute=2).client() as client:
        assert [client.get("/health", headers=ALICE).status_code for _ in range(3)] == [200, 200, 429]
        assert [client.get("/health", headers=BOB).status_code for _ in range(3)] == [200, 200, 429]
        assert client.get("/health", headers=ALICE).status_code == 429


@pytest.mark.parametrize(
    ("route", "others"), [("/", ("/health", "/ready", "/v1/models")), ("/v1/models", ("/v1/models/writer", "/health"))]
)
def test_open_route_opens_no_longer_path(start: Start, keys_file: Path, route: str, others: tuple[str, ...]) -> None:
    with start(keys_file=keys_file, open_routes=(route,)).client() as client:
        assert client.get(route).status_code != 401
        assert [client.get(path).status_code for path in others] == [401] * len(others)
        assert [client.get(path, headers=BOB).status_code for path in others] == [200] * len(others)


def test_rate_limit_forgets_the_clients_that_came_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "MAX_CLIENTS", 3)
    limit = security.RateLimit(1)
    assert [limit.take(client, now=0.0) for client in "abcd"] == [0.0] * 4
    assert limit.take("d", now=0.0) > 0
    assert limit.take("a", now=0.0) == 0.0  # forgotten, so that memory is bounded
