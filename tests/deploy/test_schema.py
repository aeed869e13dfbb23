"""Each object is what the API server would take. For the kinds of operators, whose schemas are not
at hand, the few fields that are used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from tests.deploy.rendering import Manifest, Rendered

# The oldest version that has all that is used (sleep in preStop), and the newest with a schema.
VERSIONS = ("1.30", "1.37")

OPERATOR_KINDS = {
    "PodMonitor": ("monitoring.coreos.com/v1", {"jobLabel", "selector", "podMetricsEndpoints"}),
    "PrometheusRule": ("monitoring.coreos.com/v1", {"groups"}),
    "ScaledObject": (
        "keda.sh/v1alpha1",
        {
            "scaleTargetRef",
            "pollingInterval",
            "minReplicaCount",
            "maxReplicaCount",
            "advanced",
            "triggers",
        },
    ),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_each_object_follows_the_schema(renderings: dict[str, Rendered], version: str) -> None:
    seen = set()
    for rendered in renderings.values():
        for manifest in rendered.manifests:
            text = json.dumps(manifest)
            if manifest["kind"] not in OPERATOR_KINDS and text not in seen:
                seen.add(text)
                kubernetes_validate.validate(manifest, version, strict=True)


def test_kinds_of_operators_have_the_known_fields(rendered: Rendered) -> None:
    for manifest in rendered.of_kind(*OPERATOR_KINDS):
        version, fields = OPERATOR_KINDS[manifest["kind"]]
        assert manifest["apiVersion"] == version
        assert set(manifest["spec"]) == fields


def test_no_two_objects_are_one(rendered: Rendered) -> None:
    keys = [(item["kind"], item["metadata"]["name"]) for item in rendered.manifests]
    assert len(keys) == len(set(keys))


def test_all_stands_in_the_namespace(rendered: Rendered) -> None:
    (namespace,) = rendered.names("Namespace")
    for manifest in rendered.manifests:
        if manifest["kind"] != "Namespace":
            assert manifest["metadata"].get("namespace") == namespace, manifest["metadata"]["name"]


def test_what_must_be_text_is_text(rendered: Rendered) -> None:
    """`true` or `8` without quotes is no string, and the API server refuses it."""
    for manifest in rendered.manifests:
        for path, value in _texts(manifest, manifest["kind"]):
            assert isinstance(value, str), f"{path} is {value!r}"


def test_the_recommended_labels_are_there(rendered: Rendered) -> None:
    for workload in rendered.services:
        for labels in (workload.labels, workload.manifest["metadata"]["labels"]):
            assert {f"app.kubernetes.io/{name}" for name in LABELS} <= set(labels)


LABELS = ("name", "instance", "version", "component", "part-of")
_TEXT_MAPS = frozenset({"labels", "annotations", "matchLabels", "data", "metadata"})


def _texts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """All values of labels, annotations, ConfigMaps, triggers and variables."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}")
            if _is_text_map(key, value, path):
                yield from ((f"{path}.{key}.{name}", text) for name, text in item.items())
            if key == "env":
                yield from ((f"{path}.{item['name']}", item.get("value", "")) for item in item)


def _is_text_map(key: str, owner: Manifest, path: str) -> bool:
    if key == "metadata":
        # Of a trigger of KEDA; everywhere else it is the metadata of an object.
        return ".triggers[" in path
    return key in _TEXT_MAPS and isinstance(owner[key], dict)
