"""Routes: health, readiness and the OpenAPI description."""

from tests.serve.factories import RunningServer


def test_health_readiness_and_request_ids(server: RunningServer) -> None:
    with server.client() as client:
        assert client.get("/health").json() == {"status": "ok"}
        first, second = client.get("/ready"), client.get("/ready")
    assert first.json() == {"status": "ready"}
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


def test_the_openapi_description_has_every_route(server: RunningServer) -> None:
    with server.client() as client:
        paths = client.get("/openapi.json").raise_for_status().json()["paths"]
    assert {"/translate", "/languages", "/detect", "/v1/completions", "/v1/embeddings", "/metrics"} <= set(paths)
    assert paths["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]["q"]
