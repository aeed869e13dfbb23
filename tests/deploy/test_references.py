"""What one object says of another holds: selectors, names, ports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.deploy.rendering import DEPLOY, ROOT, Manifest, Rendered, Workload

# To be brought by whoever deploys; deploy/README.md says how.
SECRETS = {"uag-hub-token", "uag-orchestrator-tls", "uag-client-ca"}


def selects(selector: Manifest, labels: dict[str, str]) -> bool:
    """A label selector of Kubernetes, as far as it is used here."""
    if not selector.get("matchLabels", {}).items() <= labels.items():
        return False
    for expression in selector.get("matchExpressions", []):
        assert expression["operator"] == "In", expression
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return True


def _selected(rendered: Rendered, selector: Manifest) -> list[Workload]:
    return [item for item in rendered.workloads if selects(selector, item.labels)]


def test_a_workload_selects_its_own_pods_alone(rendered: Rendered) -> None:
    for workload in rendered.workloads:
        chosen = _selected(rendered, workload.manifest["spec"]["selector"])
        assert [item.name for item in chosen] == [workload.name]


def test_services_lead_to_ports_that_are_listened_on(rendered: Rendered) -> None:
    for service in rendered.of_kind("Service"):
        (workload,) = _selected(rendered, {"matchLabels": service["spec"]["selector"]})
        for port in service["spec"]["ports"]:
            assert port["targetPort"] in workload.ports, service["metadata"]["name"]


def test_budgets_cover_one_workload_and_let_nodes_be_drained(rendered: Rendered) -> None:
    covered = set()
    for budget in rendered.of_kind("PodDisruptionBudget"):
        (workload,) = _selected(rendered, budget["spec"]["selector"])
        covered.add(workload.name)
        assert budget["spec"]["maxUnavailable"] == 1
    assert covered == {workload.name for workload in rendered.services}


def test_stateful_pods_have_addresses(rendered: Rendered) -> None:
    for manifest in rendered.of_kind("StatefulSet"):
        service = rendered.find("Service", manifest["spec"]["serviceName"])
        assert service["spec"]["clusterIP"] == "None"
        labels = manifest["spec"]["template"]["metadata"]["labels"]
        assert service["spec"]["selector"].items() <= labels.items()


def test_affinity_and_spread_are_to_pods_that_exist(rendered: Rendered) -> None:
    found = 0
    for workload in rendered.workloads:
        for selector in _label_selectors(workload.pod):
            assert _selected(rendered, selector)
            found += 1
    assert found >= 3


def _label_selectors(value: Any) -> Iterator[Manifest]:
    if isinstance(value, list):
        for item in value:
            yield from _label_selectors(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "labelSelector":
                yield item
            else:
                yield from _label_selectors(item)


def test_the_draft_is_drawn_to_the_target(rendered: Rendered) -> None:
    for component in ("orchestrator", "draft"):
        (term,) = rendered.workload(component).pod["affinity"]["podAffinity"][
            "preferredDuringSchedulingIgnoredDuringExecution"
        ]
        selector = term["podAffinityTerm"]["labelSelector"]
        assert selects(selector, rendered.workload("verify").labels)


def test_config_maps_that_are_named_exist_and_are_used(rendered: Rendered) -> None:
    named = {
        source["configMapRef"]["name"]
        for workload in rendered.workloads
        for container in workload.containers
        for source in container.get("envFrom", [])
    } | {
        volume["configMap"]["name"]
        for workload in rendered.workloads
        for volume in workload.pod["volumes"]
        if "configMap" in volume
    }
    # Grafana's sidecar finds dashboards by their label.
    dashboards = {
        item["metadata"]["name"]
        for item in rendered.of_kind("ConfigMap")
        if "grafana_dashboard" in item["metadata"].get("labels", {})
    }
    assert named == rendered.names("ConfigMap") - dashboards


def test_secrets_are_those_that_the_readme_asks_for(rendered: Rendered) -> None:
    assert set(_secrets(rendered)) <= SECRETS
    text = (DEPLOY / "README.md").read_text()
    for name in _secrets(rendered):
        assert name in text


def _secrets(rendered: Rendered) -> Iterator[str]:
    for workload in rendered.workloads:
        for volume in workload.pod["volumes"]:
            if "secret" in volume:
                yield volume["secret"]["secretName"]
        for container in workload.containers:
            for item in container.get("env", []):
                if reference := item.get("valueFrom", {}).get("secretKeyRef"):
                    yield reference["name"]


def test_the_monitor_finds_the_metrics_of_all_three(rendered: Rendered) -> None:
    for monitor in rendered.of_kind("PodMonitor"):
        chosen = _selected(rendered, monitor["spec"]["selector"])
        assert {item.name for item in chosen} == {item.name for item in rendered.services}
        for workload in chosen:
            ports = {port["name"] for port in workload.main["ports"]}
            assert {item["port"] for item in monitor["spec"]["podMetricsEndpoints"]} <= ports


def test_who_scales_a_workload_alone_says_its_number(rendered: Rendered) -> None:
    scaled = {item["spec"]["scaleTargetRef"]["name"] for item in rendered.of_kind("ScaledObject")}
    for workload in rendered.services:
        assert ("replicas" in workload.manifest["spec"]) is (workload.name not in scaled)
    for item in rendered.of_kind("ScaledObject"):
        target = item["spec"]["scaleTargetRef"]
        assert target["name"] in rendered.names(target["kind"])
        _check_scaling(item["spec"])


def _check_scaling(spec: Manifest) -> None:
    down = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
    assert down["stabilizationWindowSeconds"] >= 1800
    assert 1 <= spec["minReplicaCount"] < spec["maxReplicaCount"]
    for trigger in spec["triggers"]:
        query = trigger["metadata"]["query"]
        assert 'namespace="uag"' in query
        for metric in re.findall(r"uag_\w+", query):
            assert f'"{metric}"' in _sources(), f"no metric is called {metric}"


@cache
def _sources() -> str:
    return "".join(path.read_text() for path in (ROOT / "uag_common").rglob("*.py"))
