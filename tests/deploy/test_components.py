"""The parts that are not of Kubernetes: Envoy's and Jaeger's configuration, alerts, dashboards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.deploy.prometheus_rule import OBJECT, RULES, prometheus_rule
from tests.deploy.rendering import ALL_COMPONENTS, DEPLOY, EVERYWHERE, Rendered
from uag_common.addresses import split

COMPONENTS = DEPLOY / "components"
GRAFANA = DEPLOY / "grafana"


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def _used(folder: Path) -> set[Path]:
    """The components that a kustomization takes, and those that these take."""
    direct = {
        (folder / path).resolve()
        for path in _yaml(folder / "kustomization.yaml").get("components", [])
    }
    return direct.union(*map(_used, direct))


def test_each_component_is_rendered_by_some_test() -> None:
    there = {path.parent.resolve() for path in COMPONENTS.rglob("kustomization.yaml")}
    folders = [ALL_COMPONENTS, *(DEPLOY / "overlays").iterdir()]
    assert set().union(*map(_used, folders)) == there


def test_the_readme_tells_of_each_overlay_and_component() -> None:
    text = (DEPLOY / "README.md").read_text()
    for kind in ("overlays", "components"):
        for folder in (DEPLOY / kind).iterdir():
            assert f"`{folder.name}`" in text, folder.name


def test_both_doors_are_the_same_but_for_the_clients_certificate() -> None:
    plain, mutual = (
        _yaml(COMPONENTS / name / "listener.yaml") for name in ("tls", "tls-client-ca")
    )
    socket = mutual["resources"][0]["filter_chains"][0]["transport_socket"]["typed_config"]
    assert socket.pop("require_client_certificate") is True
    common = socket["common_tls_context"]
    assert common.pop("validation_context_sds_secret_config")["name"] == "client-ca"
    assert mutual == plain


def test_the_door_leads_to_the_orchestrator_and_cuts_off_no_stream(
    renderings: dict[str, Rendered],
) -> None:
    rendered = renderings["all_components"]
    pod = rendered.workload("orchestrator")
    config = _yaml(COMPONENTS / "tls" / "envoy.yaml")
    (cluster,) = config["static_resources"]["clusters"]
    listen = rendered.environment(pod.main)["UAG_ORCHESTRATOR_LISTEN"]
    assert (_socket(cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"])) == (
        split(listen)
    )
    (probes,) = config["static_resources"]["listeners"]
    (door,) = _yaml(COMPONENTS / "tls" / "listener.yaml")["resources"]
    assert {_socket(probes)[1], _socket(door)[1]} | {9464} == pod.ports
    assert pod.main["livenessProbe"]["grpc"]["port"] == _socket(probes)[1]
    manager = door["filter_chains"][0]["filters"][0]["typed_config"]
    assert manager["stream_idle_timeout"] == "0s"
    (route,) = manager["route_config"]["virtual_hosts"][0]["routes"]
    assert route["route"]["timeout"] == "0s"


def _socket(owner: dict[str, Any]) -> tuple[str, int]:
    address = owner["address"]["socket_address"]
    return address["address"], address["port_value"]


def test_envoy_reads_files_that_are_mounted(renderings: dict[str, Rendered]) -> None:
    rendered = renderings["all_components"]
    pod = rendered.workload("orchestrator").pod
    (envoy,) = (item for item in pod["initContainers"] if item["name"] == "envoy")
    mounts = {mount["name"]: mount["mountPath"] for mount in envoy["volumeMounts"]}
    (volume,) = (item for item in pod["volumes"] if item["name"] == "envoy")
    files = rendered.find("ConfigMap", volume["configMap"]["name"])["data"]
    there = {f"{mounts['envoy']}/{name}" for name in files}
    there |= {f"{mounts['tls']}/tls.crt", f"{mounts['tls']}/tls.key"}
    there |= {f"{mounts['client-ca']}/ca.crt"}
    read = {value for text in files.values() for value in _files(yaml.safe_load(text))}
    assert read <= there
    assert there - read == {f"{mounts['envoy']}/envoy.yaml"}
    assert envoy["args"][:2] == ["--config-path", f"{mounts['envoy']}/envoy.yaml"]


def _files(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(_files, value))
    if not isinstance(value, dict):
        return set()
    own = {value[key] for key in ("filename", "path") if _is_file(value.get(key))}
    folders = value.get("watched_directory", {}).get("path")
    return (own | set().union(*map(_files, value.values()))) - {folders}


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("/etc/")


def test_jaeger_listens_where_it_is_reached(renderings: dict[str, Rendered]) -> None:
    rendered = renderings["all_components"]
    jaeger = rendered.workload("traces")
    (volume,) = (item for item in jaeger.pod["volumes"] if item["name"] == "config")
    data = rendered.find("ConfigMap", volume["configMap"]["name"])["data"]
    config = yaml.safe_load(data["config.yaml"])
    endpoints = (
        config["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"],
        config["extensions"]["jaeger_query"]["http"]["endpoint"],
    )
    assert {split(endpoint)[1] for endpoint in endpoints} == jaeger.ports
    assert all(split(endpoint)[0] == EVERYWHERE for endpoint in endpoints)
    assert jaeger.main["args"] == ["--config", "/etc/jaeger/config.yaml"]


def test_the_operators_alerts_are_those_of_the_rule_file(renderings: dict[str, Rendered]) -> None:
    assert OBJECT.read_text() == prometheus_rule(), "run `python -m tests.deploy.prometheus_rule`"
    rendered = renderings["all_components"].find("PrometheusRule", "uag")
    assert rendered["spec"] == _yaml(RULES)


def test_all_dashboards_reach_the_cluster() -> None:
    (generator,) = _yaml(GRAFANA / "kustomization.yaml")["configMapGenerator"]
    there = {path.relative_to(GRAFANA).as_posix() for path in GRAFANA.rglob("*.json")}
    assert set(generator["files"]) == there
    assert generator["options"]["labels"] == {"grafana_dashboard": "1"}
