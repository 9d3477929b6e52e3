"""The manifests in deploy/ name routes and settings that the server has."""

import json
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from regard.config.toml_file import SettingsFile
from regard.serve.settings import ServeConfig, add_key
from tests.serve.factories import RunningServer

DEPLOY = Path(__file__).parents[2] / "deploy"


def read_manifests() -> dict[str, dict[str, Any]]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    return {document["kind"]: document for document in documents}


def read_container() -> dict[str, Any]:
    (container,) = read_manifests()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return container


def read_serve_settings() -> ServeConfig:
    table = tomllib.loads(read_manifests()["ConfigMap"]["data"]["serve.toml"])
    return SettingsFile(ServeConfig).parse(table, {}, location="kubernetes.yaml")


def test_probes_ask_open_routes_of_the_server(server: RunningServer) -> None:
    probes = {name: probe for name, probe in read_container().items() if name.endswith("Probe")}
    assert set(probes) == {"startupProbe", "readinessProbe", "livenessProbe"}
    settings = read_serve_settings()
    with server.client() as client:
        for probe in probes.values():
            path = probe["httpGet"]["path"]
            assert path in settings.open_routes
            assert client.get(path).status_code == 200


def test_monitor_reads_metrics_with_its_key(start: Callable[..., RunningServer], tmp_path: Path) -> None:
    manifests, settings = read_manifests(), read_serve_settings()
    (endpoint,) = manifests["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] == read_container()["ports"][0]["name"]
    assert endpoint["authorization"]["credentials"]["name"] == "regard-metrics"
    labels = manifests["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert manifests["PodMonitor"]["spec"]["selector"]["matchLabels"] == labels
    key = add_key(tmp_path / "keys.txt", "prometheus")
    with start(keys_file=tmp_path / "keys.txt", open_routes=settings.open_routes).client() as client:
        assert client.get(endpoint["path"]).status_code == 401
        assert "regard:" in client.get(endpoint["path"], headers={"Authorization": f"Bearer {key}"}).text


def read_health_command(port: int) -> list[str]:
    """Return the command of the Dockerfile's health check, for another port."""
    (command,) = re.findall(r"^HEALTHCHECK .*\\\n +CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    program, *arguments = json.loads(command)
    assert program == "python"
    return [sys.executable, *(argument.replace("8000", str(port)) for argument in arguments)]


def test_health_check_with_keys_passes(start: Callable[..., RunningServer], tmp_path: Path) -> None:
    add_key(tmp_path / "keys.txt", "alice")
    server = start(keys_file=tmp_path / "keys.txt")
    with server.client() as client:
        assert client.get("/health").status_code == 401
    assert subprocess.run(read_health_command(server.port), check=False).returncode == 0  # noqa: S603


def test_health_check_without_server_or_with_server_error_fails() -> None:
    class Failing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(503)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Failing) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert subprocess.run(read_health_command(server.server_port), check=False).returncode == 1  # noqa: S603
        thread.join()
        port = server.server_port
    result = subprocess.run(read_health_command(port), check=False, capture_output=True)  # noqa: S603
    assert result.returncode == 1


def test_a_pod_outlives_its_drain() -> None:
    pod, container = read_manifests()["Deployment"]["spec"]["template"]["spec"], read_container()
    before = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > before + read_serve_settings().deadlines.drain


def test_volumes_and_ports_are_those_of_the_settings() -> None:
    settings, container = read_serve_settings(), read_container()
    assert container["ports"][0]["containerPort"] == settings.port
    mounts = [Path(mount["mountPath"]) for mount in container["volumeMounts"]]
    assert settings.keys_file is not None
    for path in (settings.keys_file, *settings.models.values(), Path(container["args"][-1])):
        assert any(path.is_relative_to(mount) for mount in mounts)


def test_autoscaler_target_is_below_the_core_that_a_busy_replica_uses() -> None:
    (metric,) = read_manifests()["HorizontalPodAutoscaler"]["spec"]["metrics"]
    requested_cores = float(read_container()["resources"]["requests"]["cpu"])
    share = metric["resource"]["target"]["averageUtilization"] / 100 * requested_cores
    assert metric["resource"]["name"] == "cpu"
    assert share < (read_serve_settings().threads or 0) <= float(read_container()["resources"]["limits"]["cpu"])


@pytest.mark.parametrize("has_keys", [False, True])
def test_sample_settings_are_valid(has_keys: bool) -> None:
    text = (DEPLOY / "serve.toml").read_text()
    if has_keys:
        text = text.replace("# keys_file", "keys_file").replace("# open_routes", "open_routes")
    config: ServeConfig = SettingsFile(ServeConfig).parse(tomllib.loads(text), {}, location="serve.toml")
    assert config.port == read_serve_settings().port
    assert (config.keys_file is not None) == has_keys
    assert (config.open_routes == read_serve_settings().open_routes) == has_keys


def test_the_image_starts_the_command_that_the_manifest_completes() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    (command,) = [line.partition(" ")[2] for line in lines if line.startswith("CMD [")]
    pod = read_manifests()["Deployment"]["spec"]["template"]["spec"]
    assert users == [str(pod["securityContext"]["runAsUser"])]
    assert shlex.split(command.strip("[]").replace(",", " ")) == read_container()["args"]
