"""With the component restricted-network: what must get through does, and what need not does not."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from tests.deploy.rendering import Manifest, Rendered
from tests.deploy.test_references import selects

OUTSIDE = "140.82.112.3"
METADATA_SERVER = "169.254.169.254"
OWN = "uag"
NAMESPACES = {
    name: {"kubernetes.io/metadata.name": name}
    for name in (OWN, "app", "elsewhere", "kube-system", "monitoring")
}
NAMESPACES["app"]["uag-client"] = "true"
Peer = tuple[str, dict[str, str]]
"""A namespace and the labels of a pod in it."""


@pytest.fixture(scope="session")
def network(renderings: dict[str, Rendered]) -> Rendered:
    return renderings["all_components"]


def _pod(network: Rendered, component: str) -> Peer:
    return OWN, network.workload(component).labels


def _fits(peer: Manifest, other: Peer | str) -> bool:
    """Whether a peer of a rule is that pod, or that address."""
    if isinstance(other, str):
        block = peer.get("ipBlock")
        if block is None or ip_address(other) not in ip_network(block["cidr"]):
            return False
        return not any(ip_address(other) in ip_network(part) for part in block.get("except", []))
    if "ipBlock" in peer:
        return False
    namespace, labels = other
    if "namespaceSelector" in peer:
        if not selects(peer["namespaceSelector"], NAMESPACES[namespace]):
            return False
    elif namespace != OWN:
        return False
    return selects(peer.get("podSelector", {}), labels)


def _allows(network: Rendered, pod: Peer, way: str, other: Peer | str, port: int) -> bool:
    """One side of a connection: nothing but what a policy of the pod allows."""
    if pod[0] != OWN:
        return True
    key = {"Ingress": "from", "Egress": "to"}[way]
    for policy in network.of_kind("NetworkPolicy"):
        spec = policy["spec"]
        if way not in spec["policyTypes"] or not selects(spec["podSelector"], pod[1]):
            continue
        for rule in spec.get(way.lower(), []):
            if port in {item["port"] for item in rule["ports"]} and any(
                _fits(peer, other) for peer in rule[key]
            ):
                return True
    return False


def _reaches(network: Rendered, source: Peer, target: Peer, port: int) -> bool:
    return _allows(network, source, "Egress", target, port) and _allows(
        network, target, "Ingress", source, port
    )


@pytest.mark.parametrize(
    ("source", "target", "port", "through"),
    [
        ("orchestrator", "draft", 50051, True),
        ("orchestrator", "verify", 50052, True),
        ("draft", "verify", 50052, False),
        ("verify", "draft", 50051, False),
        ("traces", "verify", 50052, False),
        ("draft", "orchestrator", 50050, False),
        ("orchestrator", "draft", 9464, False),
        ("orchestrator", "traces", 4317, True),
        ("draft", "traces", 4317, True),
        ("verify", "traces", 4317, True),
        ("draft", "traces", 16686, False),
    ],
)
def test_inside(network: Rendered, source: str, target: str, port: int, through: bool) -> None:
    assert _reaches(network, _pod(network, source), _pod(network, target), port) is through


CLIENT = ("app", {"uag-client": "true"})


@pytest.mark.parametrize(
    ("source", "target", "port", "through"),
    [
        (CLIENT, "orchestrator", 8443, True),
        (CLIENT, "orchestrator", 50050, True),
        ((OWN, {"uag-client": "true"}), "orchestrator", 8443, False),
        ((OWN, {}), "orchestrator", 8443, False),
        (("app", {}), "orchestrator", 8443, False),
        (("elsewhere", {"uag-client": "true"}), "orchestrator", 8443, False),
        (CLIENT, "verify", 50052, False),
        (CLIENT, "draft", 50051, False),
        (("monitoring", {}), "orchestrator", 9464, True),
        (("monitoring", {}), "draft", 9464, True),
        (("monitoring", {}), "verify", 9464, True),
        (("monitoring", {}), "verify", 50052, False),
        (CLIENT, "verify", 9464, False),
    ],
)
def test_from_outside(
    network: Rendered, source: Peer, target: str, port: int, through: bool
) -> None:
    assert _reaches(network, source, _pod(network, target), port) is through


@pytest.mark.parametrize(
    ("source", "address", "port", "through"),
    [
        ("draft", OUTSIDE, 443, True),
        ("verify", OUTSIDE, 443, True),
        ("verify", OUTSIDE, 80, False),
        ("orchestrator", OUTSIDE, 443, False),
        ("traces", OUTSIDE, 443, False),
        ("verify", METADATA_SERVER, 443, False),
        ("verify", "10.0.0.1", 443, False),
        ("verify", "fd00::1", 443, False),
        ("verify", "2001:db8::1", 443, True),
    ],
)
def test_to_outside(network: Rendered, source: str, address: str, port: int, through: bool) -> None:
    assert _allows(network, _pod(network, source), "Egress", address, port) is through


@pytest.mark.parametrize("source", ["orchestrator", "draft", "verify", "traces"])
def test_all_can_ask_for_names(network: Rendered, source: str) -> None:
    dns = ("kube-system", {"k8s-app": "kube-dns"})
    assert _allows(network, _pod(network, source), "Egress", dns, 53)


def test_nothing_goes_without_a_rule(network: Rendered) -> None:
    everything = network.find("NetworkPolicy", "deny-all")["spec"]
    assert everything == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_policies_are_for_pods_that_exist(rendered: Rendered) -> None:
    for policy in rendered.of_kind("NetworkPolicy"):
        spec: dict[str, Any] = policy["spec"]
        chosen = [item for item in rendered.workloads if selects(spec["podSelector"], item.labels)]
        assert chosen, policy["metadata"]["name"]
        assert "from" not in spec
        assert {way.lower() for way in spec["policyTypes"]} >= set(spec) & {"ingress", "egress"}
