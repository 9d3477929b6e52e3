"""deploy/nginx.conf in a real nginx, in front of a real `regard serve` with the options that the file names."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from regard.serve.app import MEDIA_ROUTES
from regard.serve.settings import LimitsConfig
from tests.load.nginx import CONFIG, PROGRAM, find_ports, run_nginx
from tests.load.server import Server, run_server
from tests.tasks.media_models import make_png, write_image_model

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="nginx is not installed")
RATE = 12  # requests per minute of a client: more than one test sends, unless it is about rates
Client = Callable[..., httpx.Client]


@pytest.fixture(scope="module")
def replica(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    (options,) = {*re.findall(r"^# +regard serve my-model --port 800\d (.*)$", CONFIG.read_text(), re.MULTILINE)}
    models = {"en-de": folders["en-de"], "shapes": write_image_model(tmp_path_factory.mktemp("media") / "shapes")}
    with run_server(f"requests_per_minute={RATE}", options=options.split(), models=models) as server:
        yield server


@pytest.fixture(scope="module")
def port(replica: Server) -> Iterator[int]:
    (port,) = find_ports(1)
    with run_nginx([replica.port, replica.port], port):
        yield port


@pytest.fixture
def connect(port: int, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A function that makes a client; each test has an address of its own, and so its own rate."""
    number = 10 + [item.name for item in request.session.items].index(request.node.name) % 200
    clients: list[httpx.Client] = []

    def make(address: str = f"127.0.0.{number}", to: int = port, **options: Any) -> httpx.Client:
        transport = httpx.HTTPTransport(local_address=address, verify=False)
        clients.append(httpx.Client(base_url=f"http://127.0.0.1:{to}", transport=transport, timeout=60, **options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def test_nginx_listens_on_this_machine_only() -> None:
    assert re.findall(r"^\s*listen (.*);", CONFIG.read_text(), re.MULTILINE) == ["127.0.0.1:8080"]


def test_nginx_page_and_its_own_post_work(connect: Client, port: int) -> None:
    client = connect()
    assert "<html" in client.get("/").raise_for_status().text
    for name in ("localhost", "127.0.0.1"):
        headers = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}"}
        response = client.post("/translate", json={"q": "Two dogs.", "target": "de"}, headers=headers)
        assert "translatedText" in response.raise_for_status().json()


def test_nginx_forged_host_or_origin_is_refused(connect: Client, port: int) -> None:
    client, body = connect(), {"q": "Two dogs.", "target": "de"}
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert client.post("/translate", json=body, headers={"Host": f"evil.example:{port}"}).status_code == 421
    assert client.post("/translate", json=body, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("/translate", json=body, headers={"Origin": "http://localhost"}).status_code == 403


def test_nginx_reload_through_proxy_is_refused(connect: Client) -> None:
    assert connect().post("/reload/en-de").status_code == 403


def test_nginx_body_limits_equal_server_limits(connect: Client) -> None:
    limits = LimitsConfig()
    sizes = {"/translate": limits.body_bytes, "/translate_file": limits.file_bytes}
    for route, size in (sizes | dict.fromkeys(MEDIA_ROUTES, limits.media_bytes)).items():
        kind = "application/json" if route == "/translate" else "multipart/form-data; boundary=a"
        response = connect().post(route, content=bytes(size + 1), headers={"Content-Type": kind})
        assert response.status_code == 413, route
        assert set(response.json()) == {"error"}
        response = connect().post(route, content=bytes(size), headers={"Content-Type": kind})
        assert response.status_code in (400, 404, 422), route  # the replica read it all


def test_nginx_media_of_many_megabytes_pass(connect: Client) -> None:
    image = make_png(1) + bytes(9_900_000)  # readers ignore what follows the end of an image
    response = connect().post("/classify", files={"file": ("a.png", image)}, data={"model": "shapes"})
    assert len(response.raise_for_status().json()["data"]) == 1


def test_nginx_rate_limit_counts_the_real_client(connect: Client, replica: Server) -> None:
    client, other = connect("127.0.0.3"), connect("127.0.0.4")
    statuses = [client.get("/health").status_code for _ in range(5 * RATE)]
    assert statuses[0] == 200
    assert 429 in statuses
    forged = [client.get("/health", headers={"X-Forwarded-For": f"9.9.9.{n}"}).status_code for n in range(5)]
    assert 429 in forged  # an address of its own for each would give 200
    assert other.get("/health").status_code == 200
    stranger = connect("127.0.0.5", to=replica.port)  # not the trusted proxy
    statuses = [stranger.get("/health", headers={"X-Forwarded-For": f"9.9.8.{n}"}).status_code for n in range(5 * RATE)]
    assert 429 in statuses
