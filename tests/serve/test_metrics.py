"""Metrics: what is counted, and that no name of a client or key appears."""

from pathlib import Path

import httpx

from regard.serve.settings import add_key
from tests.serve.factories import RunningServer, Start


def test_metrics_have_no_labels_of_the_client(server: RunningServer) -> None:
    with server.client() as client:
        counts = []
        for number in range(60):
            client.get(f"/random/{number}")
            client.post("/v1/completions", json={"model": f"model-{number}", "prompt": "a"})
            client.get("/health", headers={"Host": f"host-{number}"})
            counts.append(count_series(client))
        assert len(set(counts[1:])) == 1  # the first round has the first call of each route


def test_tokens_are_counted(server: RunningServer) -> None:
    with server.client() as client:
        request = {"model": "writer", "prompt": "Two", "max_tokens": 5, "temperature": 0}
        before = read_counter(client)
        usage = client.post("/v1/completions", json=request).raise_for_status().json()["usage"]
        assert read_counter(client) == before + usage["completion_tokens"]
        client.post("/v1/completions", json=request | {"stream": True}).raise_for_status()
        assert read_counter(client) == before + 2 * usage["completion_tokens"]
        assert "regard:time_to_first_token_seconds_count" in client.get("/metrics").text


def read_counter(client: httpx.Client) -> float:
    lines = client.get("/metrics").text.splitlines()
    values = [line for line in lines if line.startswith('regard:generation_tokens_total{model="writer"}')]
    return float(values[0].split()[-1]) if values else 0.0


def count_series(client: httpx.Client) -> int:
    text = client.get("/metrics").raise_for_status().text
    assert "regard:num_requests_waiting" in text
    return sum(not line.startswith("#") for line in text.splitlines())


def test_metrics_have_no_names_of_keys(start: Start, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys.txt", "alice")
    server = start(keys_file=tmp_path / "keys.txt", open_routes=("/metrics",))
    with server.client() as client:
        client.get("/health", headers={"Authorization": f"Bearer {key}"})
        text = client.get("/metrics").text
    assert "request_success" in text
    assert "alice" not in text
