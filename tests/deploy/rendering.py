"""What kustomize makes of a folder, as plain values. Knows kubectl and YAML, and no rule."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ALL_COMPONENTS = Path(__file__).parent / "all_components"
FOLDERS = {folder.name: folder for folder in sorted((DEPLOY / "overlays").iterdir())} | {
    ALL_COMPONENTS.name: ALL_COMPONENTS
}

Manifest = dict[str, Any]

EVERYWHERE = "0.0.0.0"  # noqa: S104 - compared with, not bound


class NoKubectlError(Exception):
    """Without it nothing can be rendered."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment or a StatefulSet."""

    manifest: Manifest

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def labels(self) -> dict[str, str]:
        """Of its pods."""
        return dict(self.manifest["spec"]["template"]["metadata"]["labels"])

    @property
    def component(self) -> str:
        return self.labels["app.kubernetes.io/component"]

    @property
    def pod(self) -> Manifest:
        return dict(self.manifest["spec"]["template"]["spec"])

    @property
    def main(self) -> Manifest:
        """The container that the workload is there for."""
        return dict(self.pod["containers"][0])

    @property
    def initial(self) -> list[Manifest]:
        """Containers that end before the main one starts."""
        return [item for item in self.pod.get("initContainers", []) if not _is_sidecar(item)]

    @property
    def running(self) -> list[Manifest]:
        """Containers that run as long as the pod, sidecars among them."""
        return [*self.pod["containers"], *filter(_is_sidecar, self.pod.get("initContainers", []))]

    @property
    def containers(self) -> list[Manifest]:
        return [*self.initial, *self.running]

    @property
    def ports(self) -> set[int]:
        """That its containers declare."""
        return {port["containerPort"] for item in self.running for port in item.get("ports", [])}

    @property
    def claims(self) -> dict[str, Manifest]:
        """The volumes that it claims for each pod, by name."""
        templates = self.manifest["spec"].get("volumeClaimTemplates", [])
        return {claim["metadata"]["name"]: claim for claim in templates}


@dataclass(frozen=True, slots=True)
class Rendered:
    """All that would be applied."""

    name: str
    manifests: tuple[Manifest, ...]

    def of_kind(self, *kinds: str) -> Iterator[Manifest]:
        return (item for item in self.manifests if item["kind"] in kinds)

    def names(self, kind: str) -> set[str]:
        return {item["metadata"]["name"] for item in self.of_kind(kind)}

    def find(self, kind: str, name: str) -> Manifest:
        return next(item for item in self.of_kind(kind) if item["metadata"]["name"] == name)

    @property
    def workloads(self) -> list[Workload]:
        return [Workload(item) for item in self.of_kind("Deployment", "StatefulSet")]

    @property
    def services(self) -> list[Workload]:
        """The three of ours."""
        return [self.workload(name) for name in ("orchestrator", "draft", "verify")]

    def workload(self, component: str) -> Workload:
        return next(item for item in self.workloads if item.component == component)

    def environment(self, container: Manifest) -> dict[str, str]:
        """The variables of a container, but for those that only the cluster can tell."""
        found: dict[str, str] = {}
        for source in container.get("envFrom", []):
            found |= self.find("ConfigMap", source["configMapRef"]["name"])["data"]
        return found | {
            item["name"]: item["value"] for item in container.get("env", []) if "value" in item
        }


def render(folder: Path) -> Rendered:
    """Raises NoKubectlError."""
    program = shutil.which("kubectl")
    if program is None:
        raise NoKubectlError("kubectl is missing: it renders the manifests")
    done = subprocess.run(
        [program, "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise AssertionError(f"{folder.name} cannot be rendered: {done.stderr.strip()}")
    return Rendered(folder.name, tuple(yaml.safe_load_all(done.stdout)))


def bytes_of(quantity: str) -> float:
    """A Kubernetes quantity of memory or disk."""
    factors = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
    return float(quantity[:-2]) * factors[quantity[-2:]]


def _is_sidecar(container: Manifest) -> bool:
    return container.get("restartPolicy") == "Always"
