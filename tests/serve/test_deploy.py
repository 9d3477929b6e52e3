"""The manifests in deploy/ name routes, settings and metrics that the server has."""

import shlex
import tomllib
from pathlib import Path
from typing import Any

import yaml

from regard.config.toml_file import SettingsFile
from regard.serve.metrics import Metrics
from regard.serve.settings import ServeSettings
from tests.serve.conftest import RunningServer

DEPLOY = Path(__file__).parents[2] / "deploy"


def read_manifests() -> dict[str, dict[str, Any]]:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    return {document["kind"]: document for document in documents}


def read_container() -> dict[str, Any]:
    (container,) = read_manifests()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return container


def read_serve_settings() -> ServeSettings:
    table = tomllib.loads(read_manifests()["ConfigMap"]["data"]["serve.toml"])
    return SettingsFile(ServeSettings).parse(table, {}, where="kubernetes.yaml")


def test_probes_ask_open_routes_of_the_server(server: RunningServer) -> None:
    probes = {name: probe for name, probe in read_container().items() if name.endswith("Probe")}
    assert set(probes) == {"startupProbe", "readinessProbe", "livenessProbe"}
    settings = read_serve_settings()
    with server.client() as client:
        for probe in probes.values():
            path = probe["httpGet"]["path"]
            assert path in settings.open_routes
            assert client.get(path).status_code == 200


def test_a_pod_outlives_its_drain() -> None:
    pod, container = read_manifests()["Deployment"]["spec"]["template"]["spec"], read_container()
    before = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > before + read_serve_settings().deadlines.drain


def test_volumes_and_ports_are_those_of_the_settings() -> None:
    settings, container = read_serve_settings(), read_container()
    assert container["ports"][0]["containerPort"] == settings.port
    mounts = [Path(mount["mountPath"]) for mount in container["volumeMounts"]]
    assert settings.keys_file is not None
    for path in (settings.keys_file, *settings.models.values(), Path(container["args"][1])):
        assert any(path.is_relative_to(mount) for mount in mounts)


def test_the_autoscaler_reads_a_metric_of_the_server() -> None:
    (metric,) = read_manifests()["HorizontalPodAutoscaler"]["spec"]["metrics"]
    (rule,) = yaml.safe_load((DEPLOY / "prometheus-adapter.yaml").read_text())["rules"]["custom"]
    assert metric["pods"]["metric"]["name"] == rule["name"]["as"]
    series = rule["seriesQuery"].split('"')[1]
    assert f"# TYPE {series} gauge" in Metrics().render().decode()


def test_the_image_starts_the_command_that_the_manifest_completes() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER")]
    (command,) = [line.partition(" ")[2] for line in lines if line.startswith("CMD [")]
    pod = read_manifests()["Deployment"]["spec"]["template"]["spec"]
    assert users == [str(pod["securityContext"]["runAsUser"])]
    assert shlex.split(command.strip("[]").replace(",", " ")) == read_container()["args"]
