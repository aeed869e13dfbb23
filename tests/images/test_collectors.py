"""Jaeger, Prometheus and Grafana as compose.yaml runs them: each is where the others look."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.images.compose import BASE, DEPLOY, read_compose
from tests.images.dockerfile import environment, read_image

SERVICES = read_compose(BASE)["services"]
OURS = ("orchestrator", "draft", "verify")
JAEGER = yaml.safe_load((DEPLOY / "jaeger" / "config.yaml").read_text(encoding="utf-8"))
PROMETHEUS = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))


def mounted_at(name: str, place: str) -> str:
    """The file of deploy/ that a container finds there."""
    volumes: list[list[str]] = [volume.split(":") for volume in SERVICES[name]["volumes"]]
    return next(source for source, target, *_ in volumes if target == place)


def connected(one: str, other: str) -> bool:
    return bool(set(SERVICES[one]["networks"]) & set(SERVICES[other]["networks"]))


@pytest.mark.parametrize("name", OURS)
def test_spans_go_where_jaeger_takes_them(name: str) -> None:
    told = SERVICES[name]["environment"]
    endpoint = urlsplit(told["OTEL_EXPORTER_OTLP_ENDPOINT"])
    taken = JAEGER["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"]
    assert endpoint.scheme == "http", "https would be TLS, which Jaeger is not set up for"
    assert endpoint.hostname == "jaeger"
    assert taken == f"0.0.0.0:{endpoint.port}"
    assert connected(name, "jaeger")
    assert told["OTEL_TRACES_SAMPLER"] == "parentbased_traceidratio"
    assert 0 <= float(told["OTEL_TRACES_SAMPLER_ARG"]) <= 1


def test_jaeger_is_made_of_parts_that_it_has() -> None:
    (pipeline,) = JAEGER["service"]["pipelines"].values()
    for kind in ("receivers", "processors", "exporters"):
        assert set(pipeline[kind]) == set(JAEGER[kind])
    assert set(JAEGER["service"]["extensions"]) == set(JAEGER["extensions"])
    store = JAEGER["exporters"]["jaeger_storage_exporter"]["trace_storage"]
    assert store in JAEGER["extensions"]["jaeger_storage"]["backends"]
    assert JAEGER["extensions"]["jaeger_query"]["storage"] == {"traces": store}


def test_jaeger_answers_where_it_is_published_and_asked() -> None:
    _, _, inner = SERVICES["jaeger"]["ports"][0].split(":")
    assert JAEGER["extensions"]["jaeger_query"]["http"]["endpoint"] == f"0.0.0.0:{inner}"
    health = urlsplit(SERVICES["jaeger"]["healthcheck"]["test"][-1])
    assert JAEGER["extensions"]["healthcheckv2"]["http"]["endpoint"] == health.netloc
    _, config = SERVICES["jaeger"]["command"]
    assert mounted_at("jaeger", config) == "./jaeger/config.yaml"


def test_prometheus_scrapes_each_service_where_it_tells_its_metrics() -> None:
    jobs = {job["job_name"]: job for job in PROMETHEUS["scrape_configs"]}
    assert set(jobs) == {f"uag-{name}" for name in OURS}
    for name in OURS:
        variables = environment(read_image(name), {"PATH": "/bin"}) | SERVICES[name]["environment"]
        host, _, port = variables[f"UAG_{name.upper()}_METRICS_LISTEN"].rpartition(":")
        assert host == "0.0.0.0"  # noqa: S104 - in a container, behind no published port
        (targets,) = jobs[f"uag-{name}"]["static_configs"]
        assert targets == {"targets": [f"{name}:{port}"]}
        assert connected("prometheus", name)


def test_prometheus_finds_its_files() -> None:
    config = "/etc/prometheus/prometheus.yml"
    assert mounted_at("prometheus", config) == "./prometheus/prometheus.yml"
    for rules in PROMETHEUS["rule_files"]:
        assert mounted_at("prometheus", f"/etc/prometheus/{rules}") == f"./prometheus/{rules}"


def test_grafana_finds_its_sources_and_the_dashboards() -> None:
    sources = _provisioned("datasources", "datasources")
    for source in sources:
        at = urlsplit(source["url"])
        assert source["type"] == at.hostname
        assert SERVICES[at.hostname]["ports"][0].endswith(f":{at.port}")
        assert connected("grafana", at.hostname)
    assert [source["type"] for source in sources if source.get("isDefault")] == ["prometheus"]
    (provider,) = _provisioned("dashboards", "providers")
    assert mounted_at("grafana", provider["options"]["path"]) == "./grafana/dashboards"


def _provisioned(kind: str, key: str) -> list[dict[str, Any]]:
    file = mounted_at("grafana", f"/etc/grafana/provisioning/{kind}/uag.yaml")
    content = yaml.safe_load((DEPLOY / file).read_text(encoding="utf-8"))
    assert content["apiVersion"] == 1
    told: list[dict[str, Any]] = content[key]
    return told
