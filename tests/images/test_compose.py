"""The compose files: each service's settings, its doors, its chains, and what waits for what."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest

from draft_service.settings import DraftSettings
from orchestrator.settings import OrchestratorSettings
from tests.images.compose import BASE, DEPLOY, GPU, read_compose, services_on_gpus
from tests.images.dockerfile import (
    DOCKERFILE,
    ROOT,
    environment,
    read_image,
    read_stages,
)
from uag_common.models import catalogue
from uag_common.models.settings import StoreSettings
from uag_common.models.source import HUB_ID
from uag_common.service_settings import ServiceSettings
from uag_common.settings import load
from verify_service.settings import VerifySettings

COMPOSE = read_compose(BASE)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
GPU_SERVICES = services_on_gpus()
OURS: dict[str, type[ServiceSettings]] = {
    "orchestrator": OrchestratorSettings,
    "draft": DraftSettings,
    "verify": VerifySettings,
}
MODELS = ("draft", "verify")
BOTH = pytest.mark.parametrize("services", [SERVICES, GPU_SERVICES], ids=["cpu", "gpu"])
EVERY_SERVICE = pytest.mark.parametrize("name", SERVICES)


def variables(services: dict[str, Any], name: str) -> dict[str, str]:
    """The environment of a container: the image's, and what the file says."""
    inherited = environment(read_image(name), {"PATH": "/bin"})
    return inherited | _told(services[name])


def settings(services: dict[str, Any], name: str) -> Any:
    return load(OURS[name], variables(services, name))


@BOTH
@pytest.mark.parametrize("name", OURS)
def test_each_service_takes_its_settings(services: dict[str, Any], name: str) -> None:
    """An unknown UAG_ variable, or a value that is none, stops a service."""
    assert settings(services, name).log_format == "json"
    others = {kind.PREFIX for kind in OURS.values()} - {OURS[name].PREFIX}
    told = services[name]["environment"]
    assert not [variable for variable in told if variable.startswith(tuple(others))]


@BOTH
def test_the_orchestrator_asks_where_the_models_listen(services: dict[str, Any]) -> None:
    own = settings(services, "orchestrator")
    for peer, address in (("draft", own.draft), ("verify", own.verify)):
        assert address == f"{peer}:{_port(settings(services, peer).listen)}"


def test_only_loopback_ports_are_published_and_none_of_a_model() -> None:
    published = {
        name: re.fullmatch(r"127\.0\.0\.1:(\d+):(\d+)", port)
        for name, service in SERVICES.items()
        for port in service.get("ports", ())
    }
    assert set(published) == {"orchestrator", "jaeger", "prometheus", "grafana"}
    ports = {name: found.groups() if found else None for name, found in published.items()}
    assert all(pair is not None and pair[0] == pair[1] for pair in ports.values()), ports
    assert ports["orchestrator"] == (_port(settings(SERVICES, "orchestrator").listen),) * 2


@EVERY_SERVICE
def test_what_a_container_may_do_is_as_little_as_can_be(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    (scratch,) = service["tmpfs"]
    assert re.fullmatch(r"/tmp:size=\d+[mg],mode=1777", scratch)  # noqa: S108 - the container's
    assert service["init"] is True
    assert not {"privileged", "cap_add", "pid", "ipc", "network_mode", "user"} & service.keys()


@EVERY_SERVICE
def test_an_image_is_built_here_or_pinned(name: str) -> None:
    service = SERVICES[name]
    if "build" in service:
        target = service["build"]["target"]
        assert (DEPLOY / service["build"]["context"]).resolve() == ROOT
        assert (ROOT / service["build"]["dockerfile"]) == DOCKERFILE
        assert target in read_stages(DOCKERFILE.read_text(encoding="utf-8"))
        assert f'title="uag-{target}"' in str(read_image(target))
        (version,) = re.findall(r'image\.version="([^"]+)"', str(read_image(target)))
        assert service["image"] == f"uag-{target}:{version}"
        # A registry may hold something of that name.
        assert service["pull_policy"] == "build"
    else:
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+@sha256:[0-9a-f]{64}", service["image"])


def test_the_models_are_fetched_by_the_one_container_that_may() -> None:
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert SERVICES["models"]["networks"] == ["outside"]
    holders = [name for name, service in SERVICES.items() if "HF_TOKEN" in _told(service)]
    assert holders == ["models"]
    assert not StoreSettings.from_environment(_told(SERVICES["models"])).offline
    for name in MODELS:
        assert SERVICES[name]["networks"] == ["inside"]
        assert StoreSettings.from_environment(variables(SERVICES, name)).offline
        assert variables(SERVICES, name)["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize("name", MODELS)
def test_what_was_fetched_is_read_where_it_was_written(name: str) -> None:
    (written,), (read,) = SERVICES["models"]["volumes"], SERVICES[name]["volumes"]
    assert read == f"{written}:ro"
    where = [
        StoreSettings.from_environment(environment(read_image(target), {"PATH": "/bin"})).root
        for target in (SERVICES["models"]["build"]["target"], name)
    ]
    assert where[0] == where[1]
    assert where[0].is_relative_to(written.split(":")[1])


@BOTH
def test_the_pair_that_is_fetched_is_the_pair_that_runs(services: dict[str, Any]) -> None:
    fetched = services["models"]["entrypoint"] + services["models"]["command"]
    running = [settings(services, name).model for name in MODELS]
    assert fetched == ["uag", "models", "check", *running]
    for model in running:
        pinned = (match := HUB_ID.fullmatch(model)) and re.fullmatch(
            r"[0-9a-f]{40}", match["revision"] or ""
        )
        assert pinned or model in catalogue.names(), f"{model} may be another one tomorrow"


def test_other_models_can_be_asked_for_in_one_place() -> None:
    given = {"UAG_DRAFT_MODEL": "org/small", "UAG_VERIFY_MODEL": "org/large"}
    for name in (BASE, GPU):
        services = read_compose(name, given)["services"]
        assert services["models"]["command"] == ["org/small", "org/large"]
        assert services["draft"]["environment"]["UAG_DRAFT_MODEL"] == "org/small"
        assert services["verify"]["environment"]["UAG_VERIFY_MODEL"] == "org/large"


@pytest.mark.parametrize("name", OURS)
def test_a_container_is_killed_later_than_it_drains(name: str) -> None:
    seconds = re.fullmatch(r"(\d+)s", SERVICES[name]["stop_grace_period"])
    assert seconds is not None
    # The last words of the calls that are cut off take up to two seconds more.
    assert float(seconds[1]) >= settings(SERVICES, name).drain_seconds + 2


def test_nothing_starts_before_what_it_needs() -> None:
    for name in MODELS:
        needed = SERVICES[name]["depends_on"]
        assert needed == {"models": {"condition": "service_completed_successfully"}}
    assert SERVICES["models"]["restart"] == "no", "or it would never be done"
    needed = SERVICES["orchestrator"]["depends_on"]
    assert needed["verify"] == {"condition": "service_healthy"}
    assert needed["draft"] == {"condition": "service_healthy", "required": False}


@pytest.mark.parametrize("name", MODELS)
def test_both_models_have_half_of_the_cores_or_less(name: str) -> None:
    assert settings(SERVICES, name).threads >= 1, "0 means all of them"


@pytest.mark.parametrize("name", MODELS)
def test_on_gpus_both_models_are_given_one(name: str) -> None:
    service = GPU_SERVICES[name]
    (device,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "device_ids": ["0"], "capabilities": ["gpu"]}
    assert settings(GPU_SERVICES, name).device == "cuda:0"


def test_on_gpus_all_that_holds_torch_is_built_for_them() -> None:
    stages = read_stages(DOCKERFILE.read_text(encoding="utf-8"))
    arguments = " ".join(item.text for item in stages["engine"].instructions)
    for name in (*MODELS, "models"):
        build = GPU_SERVICES[name]["build"]
        assert set(build["args"]) == {"TORCH_INDEX"}
        assert "TORCH_INDEX=" in arguments
        assert re.search(r"/whl/cu\d+$", build["args"]["TORCH_INDEX"])
        # Not under the name of the CPU's: whoever starts without the second file gets that.
        assert GPU_SERVICES[name]["image"] == f"{SERVICES[name]['image']}-cuda"
    assert GPU_SERVICES["orchestrator"] == SERVICES["orchestrator"]


def test_every_file_that_is_mounted_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source, target, *mode = volume.split(":")
            if source.startswith("."):
                assert (DEPLOY / source).exists(), source
                assert mode == ["ro"], f"{target} is ours, and not the container's to change"
            else:
                assert source in COMPOSE["volumes"]


@pytest.mark.parametrize("files", [(BASE,), (BASE, GPU)], ids=["cpu", "gpu"])
def test_compose_takes_the_files(files: tuple[str, ...]) -> None:
    docker = shutil.which("docker")
    if docker is None or not _has_compose(docker):
        pytest.skip("needs the docker command with its compose plugin (no engine)")
    named = [word for file in files for word in ("--file", str(DEPLOY / file))]
    command = [docker, "compose", *named, "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _has_compose(docker: str) -> bool:
    asked = subprocess.run([docker, "compose", "version"], capture_output=True, check=False)
    return asked.returncode == 0


def _told(service: dict[str, Any]) -> dict[str, str]:
    told: dict[str, str] = service.get("environment", {})
    return told


def _port(address: str) -> str:
    return address.rpartition(":")[2]
