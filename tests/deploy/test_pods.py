"""What the pods are allowed, what they ask for, and how they start and end."""

from __future__ import annotations

import tomllib

import pytest
import yaml

from tests.deploy.rendering import ROOT, Manifest, Rendered, Workload
from uag_common.rpc.health import LIVE, READY
from uag_common.rpc.server import LAST_WORDS_SECONDS
from uag_common.telemetry.export import LAST_EXPORT_SECONDS

GPU = "nvidia.com/gpu"
USER = 10001
TMP = "/tmp"  # noqa: S108 - of a container
SHARED_MEMORY = "/dev/shm"  # noqa: S108
PROBES = {"startupProbe", "livenessProbe", "readinessProbe"}
HANDLERS = {"grpc", "httpGet", "tcpSocket", "exec"}
# The one container whose root may be written to is where a component of that name says so.
WRITABLE = {("all_components", "draft"), ("all_components", "verify")}


def test_the_namespace_takes_restricted_pods_alone(rendered: Rendered) -> None:
    labels = rendered.find("Namespace", "uag")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_pods_are_restricted(rendered: Rendered) -> None:
    for workload in rendered.workloads:
        security = workload.pod["securityContext"]
        assert security["runAsNonRoot"] is True
        assert (security["runAsUser"], security["runAsGroup"]) == (USER, USER)
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(workload.pod)
        kinds = {kind for volume in workload.pod["volumes"] for kind in set(volume) - {"name"}}
        assert kinds <= {"emptyDir", "configMap", "secret"}
        for container in workload.containers:
            _check_container(rendered, container)


def _check_container(rendered: Rendered, container: Manifest) -> None:
    security = container["securityContext"]
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    writable = (rendered.name, container["name"]) in WRITABLE
    assert security["readOnlyRootFilesystem"] is not writable, container["name"]
    assert not {"privileged", "runAsUser", "capabilities.add"} & set(security)


def test_pods_have_accounts_of_their_own_and_no_token(rendered: Rendered) -> None:
    for workload in rendered.workloads:
        assert workload.pod["serviceAccountName"] == workload.name
        assert workload.pod["automountServiceAccountToken"] is False
        account = rendered.find("ServiceAccount", workload.name)
        assert account["automountServiceAccountToken"] is False


def test_no_variable_comes_from_the_names_of_services(rendered: Rendered) -> None:
    """UAG_DRAFT_PORT of a Service `uag-draft` would be a setting that does not exist."""
    for workload in rendered.workloads:
        assert workload.pod["enableServiceLinks"] is False


def test_each_container_asks_for_what_it_needs(rendered: Rendered) -> None:
    for workload in rendered.workloads:
        for container in workload.containers:
            requests, limits = (container["resources"][key] for key in ("requests", "limits"))
            assert {"cpu", "memory"} <= set(requests), container["name"]
            assert "memory" in limits
            assert "cpu" not in limits, "a throttled service answers late to its probes"
            assert requests.get(GPU) == limits.get(GPU)


def test_who_wants_a_gpu_gets_to_one(rendered: Rendered) -> None:
    for workload in rendered.workloads:
        if GPU not in workload.main["resources"]["limits"]:
            continue
        assert {"key": GPU, "operator": "Exists", "effect": "NoSchedule"} in workload.pod[
            "tolerations"
        ]
        (shm,) = (v for v in workload.pod["volumes"] if v["name"] == "shm")
        assert shm["emptyDir"]["medium"] == "Memory"
        assert {"name": "shm", "mountPath": SHARED_MEMORY} in workload.main["volumeMounts"]
        variables = rendered.environment(workload.main)
        several = workload.main["resources"]["limits"][GPU] != "1"
        wanted = "cuda" if several else "cuda:0"
        assert variables[f"UAG_{workload.component.upper()}_DEVICE"] == wanted


def test_images_are_pinned(rendered: Rendered) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for workload in rendered.workloads:
        for container in workload.containers:
            name, _, tag = container["image"].partition(":")
            if name.startswith("uag-"):
                cuda = "-cuda" if GPU in workload.main["resources"]["limits"] else ""
                assert (name, tag) == (workload.name, project["version"] + cuda)
            else:
                assert "@sha256:" in tag


def test_each_running_container_is_probed_in_one_way_a_probe(rendered: Rendered) -> None:
    for workload in rendered.workloads:
        for container in workload.running:
            probes = PROBES & set(container)
            assert {"livenessProbe", "readinessProbe"} <= probes, container["name"]
            for kind in probes:
                assert len(HANDLERS & set(container[kind])) == 1, container["name"]
                _check_port(workload, container[kind])


def _check_port(workload: Workload, probe: Manifest) -> None:
    (handler,) = HANDLERS & set(probe)
    assert probe[handler]["port"] in workload.ports


def test_probes_ask_the_names_that_the_services_tell(rendered: Rendered) -> None:
    for workload in rendered.services:
        asked = {
            kind: workload.main[f"{kind}Probe"]["grpc"]["service"]
            for kind in ("startup", "liveness", "readiness")
        }
        # The orchestrator is ready when the target is: no restart of it helps until then.
        start = LIVE if workload.component == "orchestrator" else READY
        assert asked == {"startup": start, "liveness": LIVE, "readiness": READY}


def test_the_grace_holds_all_that_happens_in_it(rendered: Rendered) -> None:
    for workload in rendered.services:
        prefix = f"UAG_{workload.component.upper()}_"
        drain = float(rendered.environment(workload.main)[prefix + "DRAIN_SECONDS"])
        wait = workload.main["lifecycle"]["preStop"]["sleep"]["seconds"]
        end = 2 * LAST_WORDS_SECONDS + LAST_EXPORT_SECONDS
        assert workload.pod["terminationGracePeriodSeconds"] >= wait + drain + end


def test_the_target_drains_no_shorter_than_the_orchestrator(rendered: Rendered) -> None:
    drains = {
        workload.component: rendered.environment(workload.main)[
            f"UAG_{workload.component.upper()}_DRAIN_SECONDS"
        ]
        for workload in rendered.services
    }
    assert float(drains["verify"]) >= float(drains["orchestrator"])


def test_mounts_are_of_volumes_and_not_inside_one_another(rendered: Rendered) -> None:
    """A folder for a mount cannot be made inside a volume that is mounted read-only."""
    for workload in rendered.workloads:
        volumes = {volume["name"] for volume in workload.pod["volumes"]} | set(workload.claims)
        used = set()
        for container in workload.containers:
            paths = [mount["mountPath"] for mount in container["volumeMounts"]]
            used |= {mount["name"] for mount in container["volumeMounts"]}
            for path in paths:
                assert not [other for other in paths if other.startswith(f"{path}/")]
        assert used == volumes


def test_there_is_a_place_to_write(rendered: Rendered) -> None:
    for workload in rendered.services:
        mounts = {mount["mountPath"]: mount for mount in workload.main["volumeMounts"]}
        assert not mounts[TMP].get("readOnly")
        assert rendered.environment(workload.main)["HOME"] == TMP


@pytest.mark.parametrize("component", ["draft", "verify"])
def test_only_the_fetching_container_has_the_token_and_a_way_out(
    rendered: Rendered, component: str
) -> None:
    workload = rendered.workload(component)
    (fetch,) = workload.initial
    assert "HF_TOKEN" in {item["name"] for item in fetch["env"]}
    assert "HF_HUB_OFFLINE" not in rendered.environment(fetch)
    assert "HF_TOKEN" not in {item["name"] for item in workload.main["env"]}
    assert rendered.environment(workload.main)["HF_HUB_OFFLINE"] == "1"
    read = {mount["name"]: mount for mount in workload.main["volumeMounts"]}
    written = {mount["name"]: mount for mount in fetch["volumeMounts"]}
    assert read["models"]["readOnly"] is True
    assert not written["models"].get("readOnly")


def test_draft_and_verify_are_alike(renderings: dict[str, Rendered]) -> None:
    """Two files that differ in their names, and where a reason stands beside it."""
    rendered = renderings["cpu-demo"]
    draft, verify = (_without_names(rendered.workload(name)) for name in ("draft", "verify"))
    for pod in (draft, verify):
        pod.pop("affinity", None)
        pod.pop("terminationGracePeriodSeconds")
    assert draft == verify


def _without_names(workload: Workload) -> Manifest:
    text = yaml.safe_dump(workload.pod)
    suffixes = [item["configMapRef"]["name"] for item in workload.main["envFrom"]]
    for name in suffixes:
        text = text.replace(name, name.rpartition("-")[0])
    for word in (workload.component, workload.component.upper()):
        text = text.replace(word, "SERVICE")
    port = workload.main["ports"][0]["containerPort"]
    return dict(yaml.safe_load(text.replace(str(port), "PORT")))
